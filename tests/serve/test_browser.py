"""The page in a real browser: it answers while one types, and what is typed stays text."""

import threading
import time

import pytest
import torch
from models import make_run
from report import browser
from report.browser import Browser

import lrn
from lrn.names import TASKS
from lrn.serve import bind

pytestmark = pytest.mark.skipif(
    not (browser.PROGRAM and browser.DRIVER), reason="needs Chromium and its chromedriver"
)
LAPTOP, PHONE = (1100, 800), (390, 844)
EVIL = '<img src=x onerror="window.hacked = 1"><script>window.hacked = 1</script>{{7*7}}'


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    with Browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A task's server by its name."""
    folder, running = tmp_path_factory.mktemp("runs"), {}
    threads = torch.get_num_threads()
    torch.set_num_threads(1)

    def of(task):
        if task not in running:
            running[task] = bind(0)
            running[task].show(lrn.load(make_run(task, folder / task)))
            threading.Thread(target=running[task].serve_forever, daemon=True).start()
        return running[task]

    yield of
    for each in running.values():
        each.shutdown()
        each.server_close()
    torch.set_num_threads(threads)


def wait(shown, script, seconds=60):
    """The value of an expression as soon as it is true."""
    until = time.monotonic() + seconds
    while not (found := shown.ask(script)):
        assert time.monotonic() < until, (script, shown.ask("document.body.innerText"))
        time.sleep(0.05)
    return found


@pytest.fixture
def shown(opened, served):
    """The browser with a task's page, when its example is answered."""

    def show(task, size=LAPTOP, **how):
        opened.screen(*size, **how)
        opened.log("browser")
        opened.requests()
        opened.open(f"{served(task).address}/")
        wait(opened, 'document.querySelectorAll("section").length')
        return opened

    return show


def replace(shown, text, field=0):
    box = f'document.querySelectorAll("textarea")[{field}]'
    shown.ask(f"[{box}.focus(), {box}.select()]")
    shown.type(text)


@pytest.mark.parametrize("task", TASKS)
def test_every_task_is_drawn(task, shown, served):
    page = shown(task)
    running = served(task)
    example = running.model.task.example(running.model.loaded)
    assert page.ask('[...document.querySelectorAll("textarea")].map((box) => box.value)') == example
    options = {name: s.value for name, s in running.model.task.choices.items() if s is not None}
    views = running.answer({"texts": example, "options": options})["views"]
    assert page.ask('[...document.querySelectorAll("h2")].map((e) => e.textContent)') == [
        v["title"] for v in views
    ]
    values = page.ask('[...document.querySelectorAll("input")].map((e) => [e.name, Number(e.value)])')
    assert dict(values) == options
    for view, text in zip(
        views, page.ask('[...document.querySelectorAll("section")].map((e) => e.innerText)'), strict=True
    ):
        if view["kind"] == "bars":
            assert all(bar["name"] in text and bar["shown"] in text for bar in view["bars"])
        if view["kind"] == "shades":
            assert all(word["text"] in text for word in view["words"])
    assert [entry for entry in page.log("browser") if entry["level"] != "INFO"] == []
    asked = {address for address in page.requests() if not address.startswith("data:")}
    assert asked == {f"{running.address}/", f"{running.address}/answer"}
    page.screen(*PHONE, phone=True)
    assert page.ask("[innerWidth, document.documentElement.scrollWidth]") == [390, 390]


def test_it_answers_while_one_types(shown):
    page = shown("ner")
    replace(page, "Anna left")
    wait(page, 'document.querySelector("section")?.innerText.includes("Anna left")')
    page.type(" Borvik.")
    wait(
        page,
        'document.querySelector("section")?.innerText.includes("Anna left Borvik.") '
        '|| document.querySelector("section .text")?.textContent.includes("Borvik")',
    )
    replace(page, " ")
    assert wait(page, '!document.querySelector("section") && document.getElementById("status").textContent')
    assert page.ask('document.getElementById("status").textContent') == "Type a text."


@pytest.mark.parametrize("task", ["ner", "doc", "nli", "lm"])
def test_what_is_typed_stays_text(task, shown):
    page = shown(task)
    before = page.ask('document.querySelectorAll("img, script").length')
    replace(page, EVIL)
    wait(page, 'document.getElementById("result").textContent.includes("onerror")')
    assert page.ask("window.hacked ?? null") is None
    assert page.ask('document.querySelectorAll("img, script").length') == before
    assert page.ask('document.getElementById("result").textContent.includes("49")') is False


def test_the_latest_text_wins(shown, served, monkeypatch):
    """Answers that come too late are not shown."""
    page, running = shown("doc"), served("doc")
    answer = running.answer

    def slow(content, wanted=lambda: True):
        if "slow" in content["texts"][0]:
            time.sleep(1)
        return answer(content, wanted)

    monkeypatch.setattr(running, "answer", slow)
    replace(page, "slow")
    time.sleep(0.5)
    replace(page, "quick")
    has = 'document.querySelector("section:nth-of-type(2)")?.textContent.includes("quick")'
    wait(page, has)
    time.sleep(1.2)
    assert page.ask(has)


def test_errors_are_shown(shown, served, monkeypatch):
    page, running = shown("doc"), served("doc")

    def fail(*given):
        raise ValueError("<b>no</b>")

    monkeypatch.setattr(running, "answer", fail)
    replace(page, "what now")
    wait(page, 'document.querySelector("#status.wrong")?.textContent === "<b>no</b>"')
    monkeypatch.undo()
    replace(page, "and now")
    wait(page, '!document.querySelector("#status.wrong")')


def test_settings_count(shown):
    page = shown("rc")
    assert page.ask('document.querySelectorAll(".bars .name").length') == 3
    page.ask(
        '(() => { const best = document.querySelector("[name=best]"); best.value = 5;'
        ' best.dispatchEvent(new Event("input", { bubbles: true })) })()'
    )
    wait(page, 'document.querySelectorAll(".bars .name").length === 5')


def test_heads_can_be_chosen(shown, served):
    page, running = shown("nli"), served("nli")
    weights = running.answer({"texts": running.model.task.example(running.model.loaded)})["views"][1][
        "weights"
    ]
    first = 'Number(document.querySelector(".matrix tbody td").title.split(": ").pop())'
    mean = sum(head[0][0] for head in weights) / len(weights)
    assert page.ask(first) == pytest.approx(mean, abs=1e-3)
    page.ask('document.querySelectorAll(".heads button")[2].click()')
    assert page.ask(first) == pytest.approx(weights[1][0][0], abs=1e-3)


def test_the_dark_is_dark(shown):
    colour = "getComputedStyle(document.body).backgroundColor"
    light = shown("doc").ask(colour)
    dark = shown("doc", dark=True).ask(colour)
    assert light == "rgb(255, 255, 255)"
    assert dark == "rgb(23, 24, 26)"

"""The server: whom it answers, what it refuses, and that it answers for every task."""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest
import torch
from models import make_run

import lrn
from lrn import cli
from lrn.names import TASKS
from lrn.serve import HOST, bind, server
from lrn.serve.server import MOST, about, asked

every_task = pytest.mark.parametrize("task", TASKS)
JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """A task's model by its name."""
    folder, found = tmp_path_factory.mktemp("runs"), {}

    def of(task):
        if task not in found:
            found[task] = lrn.load(make_run(task, folder / task))
        return found[task]

    return of


@pytest.fixture(scope="module")
def served(models):
    """A task's server by its name, in a thread, on any free port."""
    running = {}

    def of(task):
        if task not in running:
            running[task] = bind(0)
            running[task].show(models(task))
            threading.Thread(target=running[task].serve_forever, daemon=True).start()
        return running[task]

    yield of
    for each in running.values():
        each.shutdown()
        each.server_close()


def ask(running, body=b"", *, method="POST", path="/answer", headers=None, host=None):
    """Status, headers and content of what is answered."""
    connection = http.client.HTTPConnection(HOST, running.server_port, timeout=60)
    try:
        connection.putrequest(method, path, skip_host=True)
        for name, value in {
            "Host": host or f"{HOST}:{running.server_port}",
            **(JSON | (headers or {})),
        }.items():
            if value is not None:
                connection.putheader(name, value)
        if "Content-Length" not in (headers or {}) and method == "POST":
            connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body)
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()
    finally:
        connection.close()


def said(running, content, **how):
    """Status and JSON of what is answered to JSON."""
    status, headers, body = ask(running, json.dumps(content).encode(), **how)
    assert headers["Content-Type"] == "application/json"
    return status, json.loads(body)


# What it is for -------------------------------------------------------------------------------------


@every_task
def test_every_task_is_answered(task, served, models):
    running, model = served(task), models(task)
    example = model.task.example(model.loaded)
    options = {name: s.value for name, s in model.task.choices.items() if s is not None}
    status, found = said(running, {"texts": example, "options": options})
    assert status == 200, found
    assert found["milliseconds"] > 0
    (expected,) = model.predict([example], details=True, **options)
    views = [server.to_json(view) for view in model.task.views(expected)]
    assert found["views"] == json.loads(json.dumps(views))
    assert found["views"]


@every_task
def test_every_task_has_a_page(task, served, models):
    status, headers, body = ask(served(task), method="GET", path="/")
    assert (status, headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    page = body.decode()
    assert models(task).task.title in page
    data = page.partition('id="about">')[2].partition("</script>")[0]
    example = models(task).task.example(models(task).loaded)
    assert json.loads(data) == about(models(task), example)


def test_a_connection_can_be_used_again(served):
    running = served("doc")
    connection = http.client.HTTPConnection(HOST, running.server_port, timeout=60)
    for _ in range(3):
        connection.request("POST", "/answer", json.dumps({"texts": ["it was"]}), JSON)
        answer = connection.getresponse()
        assert (answer.status, len(json.load(answer)["views"])) == (200, 3)
    connection.close()


def test_several_at_once(served):
    """One after the other, each with its own answer."""
    running, found = served("ner"), {}

    def work(number):
        text = f"Anna{number} left Borvik."
        views = said(running, {"texts": [text]})[1]["views"]
        found[number] = "".join(part["text"] for part in views[0]["parts"]) == text

    threads = [threading.Thread(target=work, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert found == dict.fromkeys(range(12), True)


def test_nobody_waits_for_an_answer_any_more(served, models, monkeypatch):
    """Whoever has gone while others were answered costs no more work."""
    running, texts = served("doc"), []
    predict = models("doc").predict
    monkeypatch.setattr(
        models("doc"), "predict", lambda asked, **how: texts.append(asked) or predict(asked, **how)
    )
    body = json.dumps({"texts": ["gone"]}).encode()
    with running._one_at_a_time:
        gone = socket.create_connection((HOST, running.server_port), 10)
        host = f"Host: {HOST}:{running.server_port}"
        gone.sendall(
            f"POST /answer HTTP/1.1\r\n{host}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n".encode()
            + body
        )
        deadline = time.monotonic() + 30
        while threading.active_count() < 3 and time.monotonic() < deadline:
            time.sleep(0.02)
        gone.close()
        time.sleep(0.2)
    assert said(running, {"texts": ["here"]})[0] == 200
    assert texts == [[["here"]]]


# Whom it answers ------------------------------------------------------------------------------------


def test_it_listens_on_this_machine_alone(served):
    assert served("doc").server_address[0] == "127.0.0.1"
    assert served("doc").address == f"http://127.0.0.1:{served('doc').server_port}"


@pytest.mark.parametrize("host", ["127.0.0.1:PORT", "localhost:PORT", "LOCALHOST:PORT"])
def test_hosts_that_it_is(host, served):
    host = host.replace("PORT", str(served("doc").server_port))
    assert said(served("doc"), {"texts": ["a"]}, host=host)[0] == 200
    assert ask(served("doc"), method="GET", path="/", host=host)[0] == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:PORT",
        "127.0.0.1",
        "localhost",
        "127.0.0.1:1",
        "127.0.0.1.evil.example:PORT",
        "localhost.:PORT",
        "[::1]:PORT",
        "0.0.0.0:PORT",
        "user@127.0.0.1:PORT",
        "127.0.0.1:PORT, evil.example",
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_hosts_that_it_is_not(host, method, served):
    host = host.replace("PORT", str(served("doc").server_port))
    path = {"GET": "/", "POST": "/answer"}[method]
    status, _, body = ask(served("doc"), b'{"texts": ["a"]}', method=method, path=path, host=host)
    assert status == 403
    assert "and no other" in json.loads(body)["error"]


@pytest.mark.parametrize("lines", ["", "Host: {0}\r\nHost: evil.example\r\n", "Host: {0}\r\nHost: {0}\r\n"])
def test_no_host_or_several(lines, served):
    running = served("doc")
    lines = lines.format(f"{HOST}:{running.server_port}")
    assert raw(running, f"GET / HTTP/1.1\r\n{lines}\r\n".encode()).startswith(b"HTTP/1.1 403 ")


def raw(running, content):
    """All that comes back for bytes."""
    with socket.create_connection((HOST, running.server_port), 60) as connection:
        connection.sendall(content)
        found = b""
        while part := connection.recv(65_536):
            found += part
    return found


@pytest.mark.parametrize("origin", ["http://127.0.0.1:PORT", "http://localhost:PORT"])
def test_its_own_page_may_ask(origin, served):
    origin = origin.replace("PORT", str(served("doc").server_port))
    assert said(served("doc"), {"texts": ["a"]}, headers={"Origin": origin})[0] == 200


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "https://127.0.0.1:PORT", "http://127.0.0.1:1", "", "file://"]
)
def test_other_pages_may_not(origin, served):
    origin = origin.replace("PORT", str(served("doc").server_port))
    status, found = said(served("doc"), {"texts": ["a"]}, headers={"Origin": origin})
    assert (status, found) == (403, {"error": "another page may not ask this server"})


# What it refuses ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [
        "/x",
        "//x",
        "/../../etc/passwd",
        "/..%2f..%2fetc/passwd",
        "/answer/",
        "/style.css",
        "/?a=b",
        "/answer?x",
        "*",
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_other_paths(path, method, served):
    status, _, body = ask(served("doc"), b'{"texts": ["a"]}', method=method, path=path)
    assert (status, json.loads(body)) == (404, {"error": "there is nothing here; the page is /"})


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/answer", 405),
        ("POST", "/", 405),
        ("PUT", "/", 501),
        ("OPTIONS", "/answer", 501),
        ("X", "/", 501),
    ],
)
def test_other_methods(method, path, status, served):
    found, headers, _ = ask(served("doc"), b"{}", method=method, path=path)
    assert found == status
    assert "Access-Control-Allow-Origin" not in headers


@pytest.mark.parametrize(
    "kind",
    [None, "text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "application/jsonp"],
)
def test_only_json(kind, served):
    assert said(served("doc"), {"texts": ["a"]}, headers={"Content-Type": kind})[0] == 415


def test_json_may_say_its_encoding(served):
    kind = {"Content-Type": "application/json; charset=utf-8"}
    assert said(served("doc"), {"texts": ["é東"]}, headers=kind)[0] == 200


def test_bodies_that_are_too_large(served):
    """Refused by what they say of themselves, before they are read; one byte less is read."""
    running = served("doc")
    status, _, body = ask(running, b"x" * (MOST + 1))
    assert (status, json.loads(body)["error"]) == (413, "a request may have 1,048,576 bytes")
    assert ask(running, b"x" * MOST)[0] == 400
    assert ask(running, b"", headers={"Content-Length": "9" * 400})[0] == 413
    assert said(running, {"texts": ["still there"]})[0] == 200


@pytest.mark.parametrize("length", ["-1", "1e3", "0x10", "٣", "+5", "a"])
def test_lengths_that_are_none(length, served):
    content = (
        f"POST /answer HTTP/1.1\r\nHost: {HOST}:{served('doc').server_port}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
    )
    assert raw(served("doc"), content.encode()).startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize(
    "line", ["", "Transfer-Encoding: chunked\r\n", "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n"]
)
def test_a_length_is_needed(line, served):
    content = (
        f"POST /answer HTTP/1.1\r\nHost: {HOST}:{served('doc').server_port}\r\n"
        f"Content-Type: application/json\r\n{line}\r\n"
    )
    assert raw(served("doc"), content.encode()).startswith(b"HTTP/1.1 411 ")


def test_what_follows_a_refused_request_is_no_request(served):
    """Nothing that is hidden in a body is taken for another one."""
    host = f"Host: {HOST}:{served('doc').server_port}\r\n"
    hidden = f"GET / HTTP/1.1\r\n{host}\r\n"
    refused = f"POST /answer HTTP/1.1\r\n{host}Content-Type: text/plain\r\nContent-Length: {len(hidden)}"
    content = f"{refused}\r\n\r\n{hidden}"
    assert raw(served("doc"), content.encode()).count(b"HTTP/1.1 ") == 1


@pytest.mark.parametrize(
    "line", [b"\x00\xff\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"GET /" + b"a" * 70_000]
)
def test_what_is_no_http(line, served):
    found = raw(served("doc"), line)
    assert b'{"error": ' in found
    assert b"<" not in found  # nothing of it comes back as a page
    assert said(served("doc"), {"texts": ["still there"]})[0] == 200


def test_a_body_that_does_not_come(served, monkeypatch):
    monkeypatch.setattr(server, "SECONDS", 0.3)
    content = (
        f"POST /answer HTTP/1.1\r\nHost: {HOST}:{served('doc').server_port}\r\n"
        "Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
    )
    began = time.monotonic()
    assert raw(served("doc"), content.encode()).startswith(b"HTTP/1.1 408 ")
    assert time.monotonic() - began < 15


BAD = {
    b"": "Expecting value",
    b"{": "Expecting",
    b"\xff\xfe": "",
    b"[" * 100_000: "nested too deeply",
    b"[]": "expected {",
    b"null": "expected {",
    b'{"texts": ["a"], "more": 1}': "expected {",
    b'{"options": {}}': "expected {",
    b'{"texts": "a"}': "texts must be a list",
    b'{"texts": ["a"], "options": []}': "options an object",
    b'{"texts": []}': "expected a text",
    b'{"texts": ["a", "b"]}': "expected a text",
    b'{"texts": [1]}': "expected a text",
    b'{"texts": [["a"]]}': "expected a text",
    b'{"texts": ["\\ud800"]}': "half a character",
    b'{"texts": ["a"], "options": {"files": ["/etc/passwd"]}}': "'files' cannot be",
    b'{"texts": ["a"], "options": {"threads": 1}}': "'threads' cannot be 1 here",
}


@pytest.mark.parametrize("body", BAD, ids=lambda body: repr(body[:40]))
def test_requests_that_are_none(body, served):
    status, _, content = ask(served("doc"), body)
    found = json.loads(content)
    assert status == 400
    assert set(found) == {"error"}
    assert BAD[body] in found["error"]
    assert "\n" not in found["error"]


@pytest.mark.parametrize(
    "value", ["1e999", "NaN", "-1", "10000", '"3"', "true", "null", "[1]", "2.5", "1" * 500]
)
def test_options_out_of_bounds(value, served):
    status, found = ask(served("lm"), f'{{"texts": ["a b"], "options": {{"words": {value}}}}}'.encode())[::2]
    assert status == 400
    assert "words" in json.loads(found)["error"]


@every_task
def test_texts_that_are_too_long(task, models):
    fields = models(task).task.fields
    texts = ["a" * field.most for field in fields]
    assert asked({"texts": texts}, models(task)) == (texts, {})
    with pytest.raises(
        ValueError, match=f"the {fields[-1].name} may have {fields[-1].most:,} characters here"
    ):
        asked({"texts": [*texts[:-1], texts[-1] + "a"]}, models(task))


def test_what_a_model_cannot_answer_is_said(served):
    assert said(served("rc"), {"texts": ["", "Who?"]}) == (
        400,
        {"error": "entry 0: the text is empty: there is nothing to read"},
    )


def test_our_own_mistakes(served, models, monkeypatch, capfd):
    def fail(*given, **how):
        raise RuntimeError("ours")

    monkeypatch.setattr(models("doc"), "predict", fail)
    status, found = said(served("doc"), {"texts": ["a"]})
    assert (status, found) == (500, {"error": "this did not work (RuntimeError): ours"})
    assert "Traceback" in capfd.readouterr().err


# What is typed is text ------------------------------------------------------------------------------


def test_headers(served):
    for method, path, body in (
        ("GET", "/", b""),
        ("POST", "/answer", b'{"texts": ["a"]}'),
        ("GET", "/x", b""),
    ):
        _, headers, _ = ask(served("doc"), body, method=method, path=path)
        policy = headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'; ")
        assert "unsafe" not in policy
        assert "http" not in policy
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["X-Frame-Options"] == "DENY"
        assert headers["Cache-Control"] == "no-store"
        assert "Access-Control-Allow-Origin" not in headers
        assert "Python" not in headers["Server"]


def test_nothing_is_logged(served, capfd):
    ask(served("doc"), b'{"texts": ["my secret"]}')
    ask(served("doc"), b"", path="/secret")
    assert capfd.readouterr() == ("", "")


# Ports ----------------------------------------------------------------------------------------------


def test_the_next_port_that_is_free(monkeypatch):
    with bind(0) as taken, bind(0) as free:
        first, last = sorted((taken.server_port, free.server_port))
        free.server_close()
        monkeypatch.setattr(server, "FIRST_PORT", taken.server_port)
        monkeypatch.setattr(server, "LAST_PORT", taken.server_port + 30)
        with bind() as found:
            assert taken.server_port < found.server_port <= taken.server_port + 30
        monkeypatch.setattr(server, "LAST_PORT", taken.server_port)
        with pytest.raises(ValueError, match="are all taken; choose another: --port"):
            bind()
        with pytest.raises(ValueError, match=f"^port {taken.server_port} is taken; choose another: --port$"):
            bind(taken.server_port)
        assert first != last


# The command ----------------------------------------------------------------------------------------


def test_the_command(models, tmp_path):
    """It says where the page is, answers, and ends quietly with Ctrl-C; a file will do as well as a run."""
    file = tmp_path / "model.safetensors"
    assert cli.main(["export", str(models("ner").source), str(file)]) == 0
    code = "import sys; from lrn import cli; sys.exit(cli.main(sys.argv[1:]))"
    process = subprocess.Popen(
        [sys.executable, "-c", code, "serve", str(file), "--port", "0", "--threads", "1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    try:
        line = process.stdout.readline()
        assert line.startswith(f"{file}: http://127.0.0.1:"), process.stderr.read()
        assert line.endswith(" (Ctrl-C ends it)\n")
        port = int(line.split()[1].rpartition(":")[2])
        connection = http.client.HTTPConnection(HOST, port, timeout=60)
        connection.request("POST", "/answer", json.dumps({"texts": ["Anna left."]}), JSON)
        assert connection.getresponse().status == 200
        connection.close()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        assert (process.returncode, out, err) == (0, "", "")
    finally:
        process.kill()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["none.safetensors"], "there is no file none.safetensors"),
        (["none"], "there is no run folder none"),
        ([__file__], "expected a run folder, or a file that ends in .safetensors"),
        (["run", "--port", "65536"], "--port must be from 0, which is any free one, to 65535, got 65536"),
        (["run", "--port", "-1"], "--port must be from 0"),
        (["run", "--accelerator", "gpu"], "unknown accelerator 'gpu'"),
        (["run", "--threads", "9999"], "threads must be from 0 to"),
    ],
)
def test_wrong_words(words, says, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["serve", *words]) == 2
    found = capsys.readouterr().err
    assert found.startswith("lrn: ")
    assert says in found
    assert found.count("\n") == 1


def test_a_damaged_file_is_said_before_anything_is_served(tmp_path, capsys):
    (tmp_path / "a.safetensors").write_text("no model")
    assert cli.main(["serve", str(tmp_path / "a.safetensors"), "--port", "0"]) == 2
    said = capsys.readouterr()
    assert said.err.startswith(f"lrn: {tmp_path / 'a.safetensors'} is not a safetensors file: ")
    assert said.out == ""


def test_the_browser_opens_only_if_told(models, monkeypatch, capsys):
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    monkeypatch.setattr(server.Server, "serve_forever", lambda self: None)
    for words in ([], ["--open"]):
        assert cli.main(["serve", str(models("ner").source), "--port", "0", "--threads", "1", *words]) == 0
    address = capsys.readouterr().out.split()[-4]
    assert opened == [address]

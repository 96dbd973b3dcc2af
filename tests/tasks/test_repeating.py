"""`lrn paper` has every table and figure, a screen each; tests/test_docs.py tries its commands and links."""

import json
import subprocess
import sys
from itertools import pairwise

import pytest

from lrn import cli, names
from lrn.tasks import paper, repeating, settings


def printed(capsys, *words):
    assert cli.main(["paper", *words]) == 0
    return capsys.readouterr().out


def test_every_table_and_figure_is_there(capsys):
    assert [name for name in repeating.NAMES if name.startswith("table")] == [
        f"table-{n}" for n in range(1, 8)
    ]
    assert {"figure-1", "section-5"} < set(repeating.NAMES)
    found = printed(capsys)
    for entry in repeating.ENTRIES:
        assert f"{entry.name}: {entry.title}\n" in found


@pytest.mark.parametrize("entry", repeating.ENTRIES, ids=repeating.NAMES)
def test_one_of_them(entry, capsys):
    found = printed(capsys, entry.name)
    assert found == entry.text()
    for part in (
        *(c.line for c in entry.commands),
        *(d.name for d in entry.data),
        *(m.page for m in entry.measured),
    ):
        assert part in found
    assert len(found.splitlines()) <= 36, "a screen"
    assert printed(capsys, entry.name.removeprefix("table-")) == found


def test_json(capsys):
    found = json.loads(printed(capsys, "--format", "json"))
    assert [entry["name"] for entry in found] == [*repeating.NAMES]
    (one,) = json.loads(printed(capsys, "6", "--format", "json"))
    assert one["data"][0]["files"] == "eng.train, eng.testa, eng.testb"
    assert one["commands"][0]["line"].startswith("lrn compare ner --preset paper ")


@pytest.mark.parametrize("entry", repeating.ENTRIES, ids=repeating.NAMES)
def test_no_command_needs_a_folder_that_another_has_made(entry):
    """A training is refused where a run is already, so that the commands would end halfway."""
    lines = [command.line.split() for command in entry.commands]
    folders = []
    for words in lines:
        flags = dict(pairwise(words))
        if words[:2] == ["lrn", "train"] and "UNIT" not in words:
            default = (words[2], flags.get("--unit", "lrn"), flags.get("--preset", "quick"))
            folders.append(flags.get("--out", default))
        elif words[:2] == ["lrn", "compare"]:
            folders.append(flags.get("--out", (words[2], flags.get("--preset", "quick"))))
    assert len(folders) == len(set(folders))


def test_every_preset_of_the_papers_is_repeated():
    lines = [command.line.split() for entry in repeating.ENTRIES for command in entry.commands]
    used = {(line[2], line[line.index("--preset") + 1]) for line in lines if "--preset" in line}
    for task in names.TASKS:
        presets = {preset for preset in settings(task).presets if preset.startswith("paper")}
        assert {(task, preset) for preset in presets} <= used


def test_the_data_is_that_of_the_papers_figures():
    """Name and size of the training part, by which its figures are told from others."""
    said = [f"{data.name}; {data.size}" for entry in repeating.ENTRIES for data in entry.data]
    for task in names.TASKS:
        for preset in settings(task).presets:
            for data in paper.on_its_data(task, preset):
                name, _, size = data.partition(", ")
                assert any(text.startswith(name) and size.split()[0] in text for text in said), data


def test_official_files_are_those_that_the_task_reads():
    for task, of in (("ner", "table-6"), ("doc", "table-2")):
        files = repeating.find(of).data[0].files
        assert all(name in files for name in settings(task).files[0])


def test_it_needs_no_torch():
    code = "import sys; from lrn import cli; cli.main(['paper']); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], stdout=subprocess.DEVNULL).returncode == 0

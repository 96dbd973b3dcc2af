"""What README and docs show, runs: Python blocks are executed, commands exist, links lead somewhere."""

import re
from pathlib import Path

import pytest

from lrn import cli
from lrn.tasks import NAMES

ROOT = Path(__file__).parent.parent
PAGES = sorted(page.relative_to(ROOT).as_posix() for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])
BLOCKS = [
    pytest.param(page, block, id=f"{page}-{i}")
    for page in PAGES
    for i, block in enumerate(re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.S))
]


@pytest.mark.parametrize(("page", "block"), BLOCKS)
def test_python_blocks_run(page, block):
    exec(compile(block, page, "exec"), {"__name__": "example"})


@pytest.mark.parametrize("page", PAGES)
def test_commands_exist(page, capsys):
    for command in set(re.findall(r"\blrn ([a-z]+)\b(?! is| and| at| with)", code_of(page))):
        try:
            code = cli.main([command, "--help"])
        except SystemExit as left:
            code = left.code
        assert code == 0, f"{page} shows `lrn {command}`"


def code_of(page):
    """What stands in backticks or in an indented or fenced block."""
    text = (ROOT / page).read_text()
    pieces = re.findall(r"`([^`\n]+)`", text) + re.findall(r"^ {4,}(\S.*)$", text, re.M)
    pieces += [line for block in re.findall(r"```sh\n(.*?)```", text, re.S) for line in block.splitlines()]
    commands = [piece for piece in pieces if piece.lstrip("$ ").startswith(("lrn ", ".venv/bin/lrn "))]
    return "\n".join(commands)


@pytest.mark.parametrize("page", PAGES)
def test_targets_of_make_exist(page):
    makefile = (ROOT / "Makefile").read_text()
    for target in set(re.findall(r"\bmake ([a-z]+)\b", code_of_make(page))):
        assert re.search(rf"^{target}:", makefile, re.M), f"{page} shows `make {target}`"


def code_of_make(page):
    text = (ROOT / page).read_text()
    return "\n".join(re.findall(r"`(make [^`]+)`", text) + re.findall(r"^ {4}(make .*)$", text, re.M))


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)", (ROOT / page).read_text()):
        if not target.startswith("http"):
            assert ((ROOT / page).parent / target).exists(), f"{page} links to {target}"


FILLED = {"UNIT": "lrn", "LR": "0.01"}  # what stands for something of the reader's own
SETTINGS = [
    pytest.param(page, words, id=f"{page}-{' '.join(words)[:60]}")
    for page in PAGES
    for words in {
        tuple(line.partition("#")[0].split()[2:])
        for line in code_of(page).splitlines()
        if re.match(r"(\$ )?(\.venv/bin/)?lrn train [a-z]+ ", line + " ") and "$" not in line
    }
]


@pytest.mark.parametrize(("page", "words"), SETTINGS)
def test_settings_shown_exist(page, words, capsys):
    """Every training shown is one that can be asked for: its settings are read, and printed."""
    task, *rest = (FILLED.get(word, word) for word in words)
    if task in NAMES:
        with pytest.raises(SystemExit) as left:
            cli.main(["train", task, *rest, "--print_config"])
        assert left.value.code == 0

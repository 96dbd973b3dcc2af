"""Imports point downward only, read from the sources: what a room may know of the others.

A room is a folder of src/lrn or a file beside them. To add one, give it its place in ``LAYERS``. An import
counts wherever it stands, inside functions too; only what is for type checkers alone does not.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

SOURCES = Path(__file__).parent.parent / "src" / "lrn"

# From the ground up. A room imports from its own layer and from those below; "lrn" stands for the package
# itself and its public names.
LAYERS = (
    ("names", "checks", "files", "late", "own", "progress"),
    ("recurrence",),
    ("units",),
    ("lrn", "migration"),
    ("training", "text", "nn", "analysis", "onnx"),
    ("tasks", "report", "bench"),
    ("commands", "compare", "doctor", "export", "flags", "options", "results", "serve", "share", "survey"),
    ("cli", "__main__"),
)
RANK = {room: rank for rank, rooms in enumerate(LAYERS) for room in rooms}
NEVER = {("report", "tasks"): "report gets typed results and knows no task"}

# What help and wrong words are answered from, and what may not come with it.
QUICK = (
    "names.py",
    "checks.py",
    "own.py",
    "flags.py",
    "options.py",
    "cli.py",
    "tasks/settings.py",
    "tasks/paper.py",
    "tasks/repeating.py",
    "tasks/*/config.py",
)
SLOW = ("torch", "lightning", "numpy", "matplotlib")


# Reading the sources ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Import:
    """A line of a file that imports a module."""

    file: Path
    line: int
    module: str
    at_once: bool  # when the file is imported, and not when a function runs

    def __str__(self) -> str:
        return f"{self.file}:{self.line} imports {self.module}"


def imports(file: Path, root: Path) -> Iterator[Import]:
    """All imports of a file; ``from lrn import x`` is lrn.x where that is a module."""
    package = ("lrn", *file.relative_to(root).parent.parts)
    for node, at_once in _statements(ast.parse(file.read_text(encoding="utf-8"), str(file)), True):
        for module in _modules(node, package, root):
            yield Import(file, node.lineno, module, at_once)


def _statements(node: ast.AST, at_once: bool) -> Iterator[tuple[ast.AST, bool]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            for other in child.orelse:
                yield other, at_once
                yield from _statements(other, at_once)
            continue
        yield child, at_once
        inside = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        yield from _statements(child, at_once and not inside)


def _modules(node: ast.AST, package: tuple[str, ...], root: Path) -> list[str]:
    if isinstance(node, ast.Import):
        return [name.name for name in node.names]
    if isinstance(node, ast.ImportFrom):
        base = package[: len(package) + 1 - node.level] if node.level else ()
        module = ".".join([*base, *([node.module] if node.module else [])])
        return [_submodule(module, name.name, root) for name in node.names]
    if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
        first = node.args[0].values[0] if isinstance(node.args[0], ast.JoinedStr) else node.args[0]
        if isinstance(first, ast.Constant):
            return [str(first.value).rstrip(".")]
    return []


def _submodule(module: str, name: str, root: Path) -> str:
    return f"{module}.{name}" if _file(f"{module}.{name}", root) else module


def _file(module: str, root: Path) -> Path | None:
    """The file of one of our modules."""
    first, *parts = module.split(".")
    place = root.joinpath(*parts)
    candidates = (place / "__init__.py", place.with_suffix(".py")) if parts else (root / "__init__.py",)
    return next((path for path in candidates if first == "lrn" and path.is_file()), None)


def room(module: str) -> str:
    """The room of one of our modules."""
    return module.split(".")[1] if "." in module else module


def room_of_file(file: Path, root: Path) -> str:
    first = file.relative_to(root).parts[0]
    return "lrn" if first == "__init__.py" else first.removesuffix(".py")


def edges(root: Path) -> list[tuple[str, str, Import]]:
    """From room to room, one for every line that goes there."""
    found = []
    for file in sorted(root.rglob("*.py")):
        for line in imports(file, root):
            ours = line.module == "lrn" or line.module.startswith("lrn.")
            if ours and room(line.module) != room_of_file(file, root):
                found.append((room_of_file(file, root), room(line.module), line))
    return found


# The rules --------------------------------------------------------------------------------------


def upward(root: Path) -> list[str]:
    """Every line that imports from above, or what its room may never know."""
    wrong = []
    for here, there, line in edges(root):
        if RANK[there] > RANK[here]:
            wrong.append(f"{line}: {there} is above {here}")
        elif (here, there) in NEVER:
            wrong.append(f"{line}: {NEVER[here, there]}")
    return wrong


def circles(root: Path) -> list[str]:
    """Every line between two rooms that need each other."""
    found = edges(root)
    reach = {here: {there for other, there, _ in found if other == here} for here in RANK}
    for middle in RANK:
        for here in RANK:
            if middle in reach[here]:
                reach[here] |= reach[middle]
    return [f"{line}: {there} needs {here}, too" for here, there, line in found if here in reach[there]]


def slow(root: Path) -> list[str]:
    """Every way from a file that must be quick to a package that is not, at import."""
    wrong = []
    for file in sorted(path for pattern in QUICK for path in root.glob(pattern)):
        module = ".".join(["lrn", *file.relative_to(root).with_suffix("").parts])
        ways = [(path,) for path in _loaded(module, root)]
        seen = set()
        while ways:
            way = ways.pop()
            if way[-1] in seen:
                continue
            seen.add(way[-1])
            for line in imports(way[-1], root):
                if line.at_once and line.module.partition(".")[0] in SLOW:
                    wrong.append(" → ".join([*(str(step) for step in way[:-1]), str(line)]))
                elif line.at_once:
                    ways += [(*way, inner) for inner in _loaded(line.module, root)]
    return wrong


def _loaded(module: str, root: Path) -> list[Path]:
    """The files that importing one of our modules runs: its packages' and its own."""
    parts = module.split(".")
    names = [".".join(parts[: n + 1]) for n in range(len(parts))]
    return [path for name in names if (path := _file(name, root))]


# The tests --------------------------------------------------------------------------------------


def listed(lines: list[str]) -> str:
    return "\n" + "\n".join(line.replace(f"{SOURCES.parent.parent}/", "") for line in lines)


def test_every_room_has_its_place():
    rooms = {room_of_file(file, SOURCES) for file in SOURCES.rglob("*.py")}
    assert not rooms - set(RANK), f"not in LAYERS: {rooms - set(RANK)}"


def test_imports_point_downward():
    assert not upward(SOURCES), listed(upward(SOURCES))


def test_no_two_rooms_need_each_other():
    assert not circles(SOURCES), listed(circles(SOURCES))


def test_what_answers_at_once_imports_nothing_slow():
    assert not slow(SOURCES), listed(slow(SOURCES))


# The tests of the reader ------------------------------------------------------------------------


@pytest.fixture
def house(tmp_path):
    """A house to build: files by name, as text."""

    def build(files):
        root = tmp_path / "lrn"
        for name, text in {"__init__": "", **files}.items():
            path = root / f"{name}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            (path.parent / "__init__.py").touch()
            path.write_text(text)
        return root

    return build


@pytest.mark.parametrize(
    "line",
    [
        "import lrn.tasks.lm",
        "from lrn import tasks",
        "from lrn.tasks import lm",
        "from lrn.tasks.lm import LM",
        "from ..tasks import lm",
        "from .. import tasks",
        "def run():\n    from lrn import tasks",
        "async def run():\n    import lrn.tasks",
        "if True:\n    try:\n        from lrn import tasks\n    except ImportError:\n        pass",
        "class A:\n    from lrn.tasks import lm",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    pass\nelse:\n    import lrn.tasks",
        "import importlib\nimportlib.import_module('lrn.tasks.lm')",
        "from importlib import import_module\nname = 'lm'\nimport_module(f'lrn.tasks.{name}')",
    ],
)
def test_every_way_to_import_is_seen(house, line):
    root = house({"nn/crf": line, "tasks/lm": ""})
    (found,) = upward(root)
    assert found.startswith(f"{root / 'nn' / 'crf.py'}:")
    assert found.endswith("tasks is above nn")


@pytest.mark.parametrize(
    "line",
    [
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from lrn import tasks",
        "import typing\nif typing.TYPE_CHECKING:\n    from lrn import tasks",
        "from lrn.nn import crf",
        "from lrn import make_unit",
        "import tasks",
        "import torch.nn",
    ],
)
def test_what_does_not_count(house, line):
    assert upward(house({"nn/crf": line, "tasks/lm": ""})) == []


def test_all_wrong_lines_are_named(house):
    root = house(
        {
            "recurrence/ops": "import lrn.units\n\nimport lrn.cli",
            "report/page": "def f():\n    import lrn.tasks.paper",
            "tasks/paper": "import lrn.files",
            "units/lrn": "import lrn.recurrence.ops",
            "files": "",
            "cli": "import lrn.report.page",
        }
    )
    assert [line.removeprefix(f"{root}/") for line in upward(root)] == [
        "recurrence/ops.py:1 imports lrn.units: units is above recurrence",
        "recurrence/ops.py:3 imports lrn.cli: cli is above recurrence",
        "report/page.py:2 imports lrn.tasks.paper: report gets typed results and knows no task",
    ]


def test_circles_are_seen_also_round_a_corner(house):
    root = house(
        {
            "nn/a": "import lrn.text.a",
            "text/a": "import lrn.analysis.a",
            "analysis/a": "import lrn.nn.a",
            "training/a": "import lrn.nn.a",
        }
    )
    assert upward(root) == []
    assert [line.removeprefix(f"{root}/") for line in circles(root)] == [
        "analysis/a.py:1 imports lrn.nn.a: nn needs analysis, too",
        "nn/a.py:1 imports lrn.text.a: text needs nn, too",
        "text/a.py:1 imports lrn.analysis.a: analysis needs text, too",
    ]


def test_slow_imports_are_seen_through_other_files(house):
    root = house(
        {
            "tasks/lm/config": "from lrn.training.config import A",
            "training/config": "import os",
            "training/__init__": "from lrn.training import loop",
            "training/loop": "import torch.nn\n\ndef f():\n    import lightning",
            "cli": "def f():\n    import torch",
            "checks": "from torch import Tensor",
            "tasks/__init__": "def f():\n    import torch\n\nimport numpy as np",
        }
    )
    assert [line.replace(f"{root}/", "") for line in slow(root)] == [
        "checks.py:1 imports torch",
        "tasks/lm/config.py → training/__init__.py → training/loop.py:1 imports torch.nn",
        "tasks/__init__.py:4 imports numpy",
    ]

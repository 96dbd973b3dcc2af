"""The built-in text is there, long enough, always the same, and none of it is in two parts."""

import os
import subprocess
import sys
import zipfile

import pytest

from lrn.text import builtin
from lrn.text.builtin import paragraphs, part_of, python_prose, tokenise

# The corpus


def test_size_and_shares():
    prose = python_prose()
    sizes = [sum(map(len, part)) for part in (prose.train, prose.valid, prose.test)]
    assert sum(sizes) > 150_000
    assert 0.7 < sizes[0] / sum(sizes) < 0.9
    assert min(sizes[1:]) / sum(sizes) > 0.05
    assert all(line for part in (prose.train, prose.valid, prose.test) for line in part)


def test_looks_like_english():
    words = [word for line in python_prose().train for word in line]
    assert 0.03 < words.count("the") / len(words) < 0.1
    assert not {">>>", "`", "*"} & set(words)
    assert all(word == "N" or word == word.lower() for word in words)


def test_same_in_another_process_with_other_hashes():
    code = "from lrn.text.builtin import python_prose; print(python_prose().hash)"
    command = [sys.executable, "-c", code]
    run = subprocess.run(
        command, env=os.environ | {"PYTHONHASHSEED": "7"}, capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == python_prose().hash


def test_part_of_is_stable():
    names = [f"module m{i}" for i in range(1000)]
    counts = {part: sum(part_of(name) == part for name in names) for part in ("train", "valid", "test")}
    assert counts == {"train": 782, "valid": 94, "test": 124}


# A library made for the test


@pytest.fixture
def library(tmp_path, monkeypatch):
    """An empty library: no topics, one folder, no zip."""
    monkeypatch.setattr(builtin, "_topics", dict)
    monkeypatch.setattr(builtin, "_library", lambda: [tmp_path])
    monkeypatch.setattr(builtin, "python_prose", python_prose.__wrapped__)
    return tmp_path


def names(parts, count):
    """As many module names of each of these parts."""
    found = []
    for part in parts:
        found += [name for i in range(1000) if part_of(f"module {(name := f'm{i}')}") == part][:count]
    return found


def write(library, *modules):
    for name in modules:
        text = f'"""This is the purpose of the module {name}."""'
        (library / f"{name}.py").write_text(text)


def test_modules_go_to_their_parts(library):
    train, valid, test = names(["train", "valid", "test"], 1)
    write(library, train, valid, test)
    prose = builtin.python_prose()
    for part, name in ((prose.train, train), (prose.valid, valid), (prose.test, test)):
        assert part == [["this", "is", "the", "purpose", "of", "the", "module", name, "."]]


def test_no_paragraph_twice(library):
    modules = names(["train", "valid", "test"], 2)
    write(library, *modules)
    for name in modules:
        with (library / f"{name}.py").open("a") as file:
            file.write('\ndef f():\n    """Every module\n    says the same."""\n')
    prose = builtin.python_prose()
    lines = prose.train + prose.valid + prose.test
    assert lines.count(["every", "module", "says", "the", "same", "."]) == 1


def test_unreadable_modules_are_skipped(library):
    modules = names(["train", "valid", "test"], 1)
    write(library, *modules)
    (library / "broken.py").write_text('"""This is the beginning of a broken module."""\ndef')
    (library / "null.py").write_bytes(b'"""This is the beginning of a broken module."""\0')
    (library / "latin.py").write_bytes(b'"""This is the \xe9nd of it all, really."""')
    (library / "deep.py").write_text('"""This is the last of them all."""\n' + "-" * 10_000 + "1")
    (library / "gone.py").symlink_to(library / "nowhere")
    for folder in ("test", "tests", "site-packages", "dist-packages", "lib-dynload", "__pycache__"):
        (library / folder).mkdir()
        (library / folder / "a.py").write_text('"""This is the beginning of a test."""')
    prose = builtin.python_prose()
    assert [len(part) for part in (prose.train, prose.valid, prose.test)] == [1, 1, 1]


def test_library_in_a_zip(library, monkeypatch):
    modules = names(["train", "valid", "test"], 1)
    with zipfile.ZipFile(library / "python.zip", "w") as archive:
        archive.writestr("os.py", "")
        for name in modules:
            archive.writestr(f"package/{name}.py", f'"""This is the purpose of {name}."""')
    monkeypatch.undo()
    monkeypatch.setattr(sys, "path", [str(library / "python.zip"), str(library), "", "nowhere"])
    monkeypatch.setattr(builtin.sysconfig, "get_path", lambda name: str(library / "nowhere"))
    found = [text for name, text in builtin._documents() if name.startswith("module package.")]
    assert sorted(found) == sorted(f"This is the purpose of {name}." for name in modules)


def test_missing_topics(library, monkeypatch):
    def missing():
        raise ModuleNotFoundError("No module named 'pydoc_data'")

    monkeypatch.setattr(builtin, "_topics", missing)
    write(library, *names(["train", "valid", "test"], 1))
    assert builtin.python_prose().train


def test_nothing_found(library):
    with pytest.raises(RuntimeError, match=r"built-in text cannot be read: .*nothing for train, valid, test"):
        builtin.python_prose()


def test_docstrings_below_conditions():
    source = b'''
"""module"""
class A:
    """class"""
    async def f(self):
        """method"""
        def g():
            """inner"""
try:
    import x
except ImportError:
    def x(): """handler"""
else:
    def x():
        "else"
text = """no docstring"""
'''
    assert list(builtin._docstrings(source)) == ["module", "class", "method", "inner", "handler", "else"]


# From documentation to prose

TEXT = """Heading of the text
===================

f(x[, y]) -> int
Do the *work* of ``f``
in one go.

Use it like this:

>>> f(3)
...  # more of the same
4
and the output goes on

The table says it::

    the code of an example is here

+---+---+
| a | the table |
+---+---+

* the first item of
  a list
* the second item of it

   if x and y: z = f(x)[0] + g(y)

   stmt ::= "a" ["," b]
"""


def test_paragraphs():
    assert list(paragraphs(TEXT)) == [
        "Do the work of f in one go.",
        "Use it like this:",
        "The table says it:",
        "the first item of a list",
        "the second item of it",
    ]


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", ""),
        ("It isn't (yet) there.", "it isn't ( yet ) there ."),
        ("At 1,000.5 or 0x1F, not 3.", "at N or N , not N ."),
        ("The built-in os.path... see i.e. __init__!", "the built-in os.path ... see i.e. __init__ !"),
        ("Ünïcode -- too", "ünïcode -- too"),
    ],
)
def test_tokenise(text, tokens):
    assert tokenise(text) == tokens.split()

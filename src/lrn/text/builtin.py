"""Text that every Python brings along, so that everything runs without a download.

It is read from the user's own Python at run time; none of it is part of this package.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib
import inspect
import platform
import re
import sys
import sysconfig
import warnings
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

Lines = list[list[str]]

SKIPPED = {"test", "tests", "idle_test", "__pycache__", "encodings", "pydoc_data"}
"""Folders without prose of their own: tests, and codecs that all say the same."""

UNREADABLE = (OSError, SyntaxError, ValueError, RuntimeError, MemoryError, zipfile.BadZipFile, zlib.error)
"""What a damaged, foreign or locked file may raise (MemoryError: nested too deep). One less does no harm."""


@dataclass(frozen=True)
class Prose:
    """English text in three parts, one sentence a line, each line a list of tokens."""

    train: Lines
    valid: Lines
    test: Lines
    python: str
    """The version of the Python the text was read from: it is not the same in another."""
    hash: str
    """SHA-256 of all tokens: equal hashes, equal text."""


@functools.cache
def python_prose() -> Prose:
    """Return the prose of Python's language reference and of the docstrings of its standard library.

    No paragraph occurs twice. A topic or module is in one part as a whole, chosen by its name:
    about 80 % of them for training, 10 % each for validation and test.
    Read once in a process and kept, so leave the lists as they are.

    >>> prose = python_prose()
    >>> len(prose.train) > len(prose.valid)
    True
    """
    parts: dict[str, Lines] = {"train": [], "valid": [], "test": []}
    seen: set[tuple[str, ...]] = set()
    for name, text in _documents():
        part = parts[part_of(name)]
        for paragraph in paragraphs(text):
            sentences = [tokenise(sentence) for sentence in SENTENCE_END.split(paragraph)]
            key = tuple(token for sentence in sentences for token in sentence)
            if key not in seen:
                seen.add(key)
                part += sentences
    empty = [part for part, lines in parts.items() if not lines]
    if empty:
        raise RuntimeError(
            f"the built-in text cannot be read: this Python ({sys.executable}) has neither the language "
            f"reference (pydoc_data.topics) nor the sources of its standard library "
            f"({sysconfig.get_path('stdlib')}), or too little of them (nothing for {', '.join(empty)}). "
            "Give a text of your own instead"
        )
    return Prose(**parts, python=platform.python_version(), hash=_hash(parts))


def part_of(name: str) -> str:
    """Return the part a document belongs to, by its name alone: the same on every machine, in every run.

    >>> part_of("topic assert")
    'train'
    """
    tenth = hashlib.sha256(name.encode()).digest()[0] * 10 // 256
    return {0: "test", 1: "valid"}.get(tenth, "train")


def _hash(parts: dict[str, Lines]) -> str:
    sha = hashlib.sha256()
    for lines in parts.values():
        sha.update("\n".join(" ".join(line) for line in lines).encode())
        sha.update(b"\n\n")
    return sha.hexdigest()


# Where the text comes from


def _documents() -> Iterator[tuple[str, str]]:
    """Yield name and text of every topic and of every docstring, always in the same order."""
    try:
        topics = _topics()
    except ImportError:  # some distributions leave it out
        topics = {}
    for name in sorted(topics):
        yield f"topic {name}", topics[name]
    for name, docstring in docstrings():
        yield f"module {name}", docstring


def _topics() -> dict[str, str]:
    """Return the language reference behind ``help()``, which differs a little from Python to Python."""
    topics: dict[str, str] = importlib.import_module("pydoc_data.topics").topics
    return topics


def docstrings() -> Iterator[tuple[str, str]]:
    """Yield module and text of every docstring of Python's library, always in the same order.

    >>> any(module == "json.encoder" and "JSON" in text for module, text in docstrings())
    True
    """
    modules: dict[str, bytes] = {}
    for root in _library():
        for name, source in _sources(root, ""):
            modules.setdefault(name, source)
    for name in sorted(modules):
        for docstring in _docstrings(modules[name]):
            yield name, docstring


def _library() -> Iterator[Path | zipfile.Path]:
    """Yield the places of the standard library: a folder or, in packed applications, a zip file."""
    yield Path(sysconfig.get_path("stdlib"))
    for entry in sys.path:
        try:
            if zipfile.is_zipfile(entry) and zipfile.Path(entry, "os.py").exists():
                yield zipfile.Path(entry)
        except UNREADABLE:
            continue


def _sources(folder: Path | zipfile.Path, package: str) -> Iterator[tuple[str, bytes]]:
    """Yield full name and source of every module below ``folder``."""
    try:
        entries: list[Path | zipfile.Path] = [*folder.iterdir()]
    except UNREADABLE:
        return
    for entry in entries:
        name = entry.name.removesuffix(".py")
        # site-packages, lib-dynload, config-3.11-…: what is no identifier is no module
        if not name.isidentifier() or name in SKIPPED:
            continue
        try:
            if entry.name.endswith(".py"):
                yield package + name, entry.read_bytes()
            elif entry.is_dir():
                yield from _sources(entry, f"{package}{name}.")
        except UNREADABLE:
            continue


def _docstrings(source: bytes) -> Iterator[str]:
    """Yield the docstrings of a module, found without running it."""
    if b'"""' not in source and b"'''" not in source:
        return  # parsing takes most of the time
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about old string escapes
            pending: list[ast.AST] = [ast.parse(source)]
    except UNREADABLE:
        return
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text:
                yield text
        for field in ("orelse", "handlers", "body"):  # also below `if` and `try`, but not inside expressions
            inner = getattr(node, field, None)
            if isinstance(inner, list):
                pending += reversed(inner)


# From documentation to prose

SIGNATURE = re.compile(r"(class |async |await |def )?[\w.*]+ ?\(.*\)\s*((->|=>|--).*|:)?")
BULLET = re.compile(r"([*+•-]|\(?\w[.)]|:[\w ]+:)\s+(?=\S)")
RULE = re.compile(r"[-=*~^+|_#.\s]{3,}")
COLUMNS = re.compile(r"\S {3,}\S")
ENGLISH = re.compile(r"\b(the|an?|of|to|be|are|this|that|it|by|on|which|can|will|may|was|when)\b", re.I)
CODE = re.compile(r"::=|^(class|def|async def|if|for|while|with) [^.]*\):|^(import|from \S+ import) |^@\w")
SYMBOL = re.compile(r"[][(){}=<>|\\_%&@#$^~+/*]")
SENTENCE_END = re.compile(r"(?<=[.!?])(?<!e\.g\.)(?<!i\.e\.)\s+(?=[A-Z\"'(])")
TOKEN = re.compile(r"(?:[a-z]\.){2,}|\d+(?:[.,]?\w+)*|\w+(?:[-'.]\w+)*|\.{3}|--+|[^\w\s]")
PLAIN = str.maketrans(
    {"“": '"', "”": '"', "‘": "'", "’": "'", "–": "--", "—": "--", "…": "...", "`": "", "*": ""}
)


def paragraphs(text: str) -> Iterator[str]:
    """Yield the prose of a documentation text, one paragraph or list item at a time, each on one line.

    Examples, code, signatures, headings and tables are left out; so is mark-up.

    >>> list(paragraphs("spam(eggs)\\nFry the *eggs*\\nin a pan.\\n\\n>>> spam(3)\\n3"))
    ['Fry the eggs in a pan.']
    """
    literal: int | None = None
    for block in re.split(r"\n\s*?\n", inspect.cleandoc(text)):
        lines = [line for line in block.splitlines() if line.strip()]
        if not lines:
            continue
        indent = len(lines[0]) - len(lines[0].lstrip())
        if literal is not None and indent > literal:
            continue  # the code that a paragraph ending in `::` announces
        literal = indent if lines[-1].endswith("::") else None
        for item in _items([line.strip() for line in lines]):
            while item and SIGNATURE.fullmatch(item[0]):
                item.pop(0)
            paragraph = _plain("\n".join(item))
            if _is_prose(paragraph, item):
                yield re.sub("::$", ":", paragraph)


def _plain(text: str) -> str:
    """Remove mark-up and line ends."""
    text = re.sub(r"(?<=\w)-\n(?=\w)", "-", text)  # a line may end in "built-"
    text = re.sub(r":\w+:`", "", text)  # :class:`Spam`
    text = re.sub(r"(?<!`)`([^`']+)'", r"'\1'", text)  # `spam', as quotes were once written
    return " ".join(text.translate(PLAIN).split())


def _items(lines: list[str]) -> Iterator[list[str]]:
    """Yield a block's list items, or the whole block: only what stands before its first example."""
    if any(RULE.fullmatch(line) for line in lines):
        return  # a heading or a table
    item: list[str] = []
    for line in lines:
        if line.startswith(">>>"):
            break
        bullet = BULLET.match(line)
        if bullet:
            yield item
            item = [line[bullet.end() :]]
        else:
            item.append(line)
    yield item


def _is_prose(paragraph: str, lines: list[str]) -> bool:
    words = re.findall(r"[A-Za-z]+", paragraph)
    if len(words) < 4 or sum(bool(COLUMNS.search(line)) for line in lines) * 2 > len(lines):
        return False
    if len(SYMBOL.findall(paragraph)) * 12 > len(paragraph) or CODE.search(paragraph):
        return False
    whole = paragraph[0].isupper() and paragraph[-1] in ".!?:"
    return whole or bool(ENGLISH.search(paragraph))


def tokenise(text: str) -> list[str]:
    """Split a text into words in lower case and punctuation, with ``N`` for numbers.

    >>> tokenise("Don't use os.path, e.g. in Python 2.7.")
    ["don't", 'use', 'os.path', ',', 'e.g.', 'in', 'python', 'N', '.']
    """
    return ["N" if token[0].isdigit() else token for token in TOKEN.findall(text.lower())]

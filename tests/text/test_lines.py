"""Lines from files and from standard input, whoever wrote them."""

import io

import pytest

from lrn.text.lines import STEP, Reading, each_line, lines_at_hand


@pytest.fixture
def given(monkeypatch):
    """As standard input."""
    return lambda content: monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))


def written(folder, name, content):
    path = folder / name
    path.write_bytes(content)
    return path


CONTENTS = {
    "plain": (b"one\ntwo\n", ["one", "two"]),
    "without a last line end": (b"one\ntwo", ["one", "two"]),
    "Windows": (b"one\r\n\r\ntwo\r\n", ["one", "", "two"]),
    "blank lines": (b"\none\n\n\n", ["", "one", "", ""]),
    "blanks stay": (b"  one \t\n", ["  one \t"]),
    "byte order mark": ("\ufeffone\ntwo\n".encode(), ["one", "two"]),
    "a mark of the first line only": ("one\n\ufefftwo\n".encode(), ["one", "\ufefftwo"]),
    "umlauts": ("Grüße, 東京\n".encode(), ["Grüße, 東京"]),
    "no line end but \\n": ("one\u2028two\x0bthree\x85four\n".encode(), ["one\u2028two\x0bthree\x85four"]),
    "empty": (b"", []),
}


@pytest.mark.parametrize(("content", "lines"), CONTENTS.values(), ids=CONTENTS)
def test_the_same_from_a_file_and_from_standard_input(content, lines, given, tmp_path):
    given(content)
    assert list(each_line()) == lines
    assert list(each_line([written(tmp_path, "file", content)])) == lines


def test_several_files_in_their_order(given, tmp_path):
    """Standard input is left alone."""
    given(b"unread\n")
    first = written(tmp_path, "b", "\ufeffone".encode())
    second = written(tmp_path, "a", "\ufefftwo\n".encode())
    assert list(each_line([str(first), second, first])) == ["one", "two", "one"]


def test_a_line_is_there_as_soon_as_it_was_written(monkeypatch):
    """Whoever talks to us over a pipe waits for an answer before the next line."""

    class Pipe:
        read = 0

        def __iter__(self):
            for line in (b"one\n", b"two\n"):
                self.read += 1
                yield line

    class Input:
        buffer = Pipe()

    monkeypatch.setattr("sys.stdin", Input)
    lines = each_line()
    assert next(lines) == "one"
    assert Input.buffer.read == 1


@pytest.mark.parametrize("most", [1, 2, 100])
@pytest.mark.parametrize(("content", "lines"), CONTENTS.values(), ids=CONTENTS)
def test_lines_at_hand_are_the_same_lines(content, lines, most, given):
    given(content)
    groups = list(lines_at_hand(most))
    assert [line for group in groups for line in group] == lines
    assert all(0 < len(group) <= most for group in groups)


def test_where_there_is_nothing_it_is_said(given, tmp_path, capsys):
    """Nothing else would be: a command that has read nothing looks like one that has failed."""
    some, none = written(tmp_path, "some", b"\n"), written(tmp_path, "none", b"")
    given(b"")
    assert [*each_line(), *lines_at_hand(3), *each_line([some, none])] == [""]
    expected = "standard input is empty: there is nothing to read\n"
    assert capsys.readouterr().err == f"{expected}{expected}{none} is empty: there is nothing to read\n"


class Slow(io.RawIOBase):
    """A pipe that gives a piece at a time; it fails if a piece is asked for that was not written."""

    def __init__(self, *pieces):
        self.pieces = list(pieces)

    def readable(self):
        return True

    def readinto(self, buffer):
        piece = self.pieces.pop(0)
        buffer[: len(piece)] = piece
        return len(piece)


def test_nobody_waits_for_lines_that_are_not_there(monkeypatch):
    pipe = Slow(b"one\n", b"two\nthree\nfo", b"u", b"r\r\nfive\n", b"six", b"")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BufferedReader(pipe)))
    groups = lines_at_hand(2)
    for group, left in ((["one"], 5), (["two", "three"], 4), (["four", "five"], 2), (["six"], 0)):
        assert next(groups) == group
        assert len(pipe.pieces) == left
    assert list(groups) == []


def test_a_line_at_hand_that_is_not_utf8(given):
    given(b"one\ntwo\nGr\xfc\xdfe\n")
    groups = lines_at_hand(2)
    assert next(groups) == ["one", "two"]
    with pytest.raises(ValueError, match=r"^standard input, line 3: not UTF-8 text: "):
        next(groups)


@pytest.mark.parametrize("kind", ["absent", "folder"])
def test_a_file_that_is_none(kind, tmp_path):
    """Said before the first line of the others, whose results would be lost in front of it."""
    good = written(tmp_path, "good", b"one\n")
    if kind == "folder":
        (tmp_path / kind).mkdir()
    with pytest.raises(FileNotFoundError, match=f"there is no file {tmp_path / kind}"):
        next(each_line([good, tmp_path / kind]))


@pytest.mark.parametrize(
    ("content", "number"), [(b"\xff\n", 1), (b"one\n\nGr\xfc\xdfe\n", 3), ("one\n".encode("utf-16"), 1)]
)
def test_what_is_not_utf8(content, number, given, tmp_path):
    path = written(tmp_path, "file", content)
    with pytest.raises(
        ValueError, match=f"^{path}, line {number}: not UTF-8 text: .*: iconv -f latin1 -t utf-8$"
    ):
        list(each_line([path]))
    given(content)
    with pytest.raises(ValueError, match=f"^standard input, line {number}: not UTF-8 text: "):
        list(each_line())


def test_lines_before_the_wrong_one_are_given(tmp_path):
    lines = each_line([written(tmp_path, "file", b"one\n\xff\n")])
    assert next(lines) == "one"
    with pytest.raises(ValueError, match="line 2"):
        next(lines)


def test_the_share_of_what_is_read(tmp_path):
    """By bytes over all files, not at every line, and all of it in the end."""
    small = written(tmp_path, "small", b"one\ntwo\n")
    large = written(tmp_path, "large", b"0123456789abcde\n" * (STEP // 4))
    told = []
    reading = Reading([small, large], told.append)
    assert list(reading.lines(small)) == [(1, "one"), (2, "two")]
    assert told == [8 / (8 + 4 * STEP)]
    assert sum(1 for _ in reading.lines(large)) == STEP // 4
    assert told == sorted(told)
    assert len(told) == 6
    assert told[-1] == 1

"""Reading the published CSV files, in one process or several, and keeping what came of it."""

import csv
import errno
import multiprocessing
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lrn.tasks.doc import csv_set
from lrn.tasks.doc.csv_set import read_folder
from lrn.tasks.doc.documents import ARRAYS, Builder
from lrn.tasks.doc.task import TASK
from lrn.text import workers
from lrn.text.tokens import basic_tokens

TRAIN = '"1","Bad.","Never again"\n"2","Good","Again!"\n'
TEST = '"2","So good"\n'


@pytest.fixture(autouse=True)
def _own_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("LRN_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def folder(tmp_path):
    return written(tmp_path / "data")


def written(folder, train=TRAIN, test=TEST, classes=None):
    folder.mkdir(exist_ok=True)
    for name, text in (("train.csv", train), ("test.csv", test), ("classes.txt", classes)):
        if text is not None:
            (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return folder


def texts(documents, part="train"):
    part = getattr(documents, part)
    return [" ".join(documents.types[t] for t in part.document(n)) for n in range(len(part))]


def arrays(documents):
    parts = [
        getattr(part, kind)
        for part in (documents.train, documents.test)
        for kind in ("tokens", "offsets", "labels")
    ]
    return [list(documents.types), documents.counts.tolist(), *(array.tolist() for array in parts)]


def kept(tmp_path):
    """What lies in the cache."""
    return sorted(path.name for path in (tmp_path / "cache" / "documents").glob("*"))


def same(rows, **more):
    builder = Builder()
    for part, label, text in rows:
        builder.add(part, label, basic_tokens(text))
    return builder.build(["1", "2"], **more)


@pytest.fixture
def calls(monkeypatch):
    """Which texts are cut into tokens."""
    seen = []
    monkeypatch.setattr(csv_set, "basic_tokens", lambda text: seen.append(text) or basic_tokens(text))
    return seen


# What is in the files


def test_a_small_set(folder):
    documents = read_folder(folder)
    assert texts(documents) == ["Bad . Never again", "Good Again !"]
    assert texts(documents, "test") == ["So good"]
    assert documents.train.labels.tolist() == [0, 1]
    assert documents.test.labels.tolist() == [1]
    assert documents.classes == ("1", "2")
    expected = same(
        [("train", 0, "Bad. Never again"), ("train", 1, "Good Again!"), ("test", 1, "So good")],
        source=str(folder),
    )
    assert documents.about == expected.about
    assert arrays(documents) == arrays(expected)
    assert read_folder(folder).about == expected.about


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ('1,"a\nb"\n2,c\n', ["a b", "c"]),
        ('1,"say ""hi"""\n2,c\n', ['say " hi "', "c"]),
        ('"1","a"\r\n"2","c"\r\n', ["a", "c"]),
        ('"1","a"\r\n\r\n"2","x\r\ny"', ["a", "x y"]),
        ('\n1,a\n  \n""\n\n2,c\n\n', ["a", "c"]),
        (r'1,"a\nb \""c\"""' + "\n2,c", ['a b " c "', "c"]),
        ("1,a,b,,c\n2,d", ["a b c", "d"]),
        (' 1 ,a\n02,"c', None),
        (" 1 ,a\n02,c", ["a", "c"]),
        ("\ufeff1,a\n2,c\n", ["a", "c"]),
        ('\ufeff"1","a"\n2,c\n', ["a", "c"]),
        ('1,""\n2,\u200b \n', ["<unk>", "<unk>"]),
        ("1,a\0b\n2,\u2028c\x85d\n", ["ab", "cd"]),
        ('1,a "b" c\n2,"d"e\n', ['a " b " c', "de"]),
    ],
)
def test_rows(rows, expected, tmp_path):
    folder = written(tmp_path / "data", rows)
    if expected is None:
        with pytest.raises(ValueError, match="line 2: a quote is opened and never closed"):
            read_folder(folder)
    else:
        assert texts(read_folder(folder)) == expected


FIELD = st.text(st.characters(codec="utf-8"), max_size=12) | st.text('a",\n\r\\n ', max_size=12)


@given(st.lists(st.tuples(st.integers(1, 2), FIELD, FIELD), max_size=8))
def test_any_text_survives(tmp_path_factory, rows):
    folder = tmp_path_factory.mktemp("data")
    rows = [(1, "a", "b"), (2, "c", "d"), *rows]
    for part in ("train", "test"):
        with (folder / f"{part}.csv").open("w", newline="", encoding="utf-8") as file:
            csv.writer(file, quoting=csv.QUOTE_ALL).writerows(rows)
    joined = [f"{a} {b}".replace('\\"', '"').replace("\\n", " ") for _, a, b in rows]
    expected = same(
        [
            (part, row[0] - 1, text)
            for part in ("train", "test")
            for row, text in zip(rows, joined, strict=True)
        ]
    )
    assert read_folder(folder).about["fingerprint"] == expected.about["fingerprint"]


@pytest.mark.parametrize(
    ("rows", "doubtful"),
    [
        ('1,a\n2,"b\n1,no taller than 5 feet 10"\n', {"rows": 1, "first_line": 2}),
        ('1,"a\n"\n2,"b\n1,c\n2,d"\n1,"a\n12,5"\n', {"rows": 2, "first_line": 3}),
        ('1,a\n2,"' + "b\n" * 20 + '"\n', {"rows": 1, "first_line": 2}),
        ('1,a\n2,"' + "b\n" * 18 + '"\n', None),
        ('1,"a, 2,b"\n2,"b\nin 1,c"\n', None),
    ],
)
def test_rows_that_may_be_several(rows, doubtful, monkeypatch, tmp_path):
    """It may be meant, so that it is no error; but it is said, whether it is read now or was before."""
    monkeypatch.setattr(csv_set, "MOST_LINES", 20)
    folder = written(tmp_path / "data", rows)
    expected = {"train.csv": doubtful} if doubtful else None
    for _ in range(2):
        documents = read_folder(folder)
        assert documents.about.get("doubtful") == expected
        said = TASK.warnings(documents, None)
        if doubtful:
            (text,) = said
            more = ", and 1 more," if doubtful["rows"] == 2 else ""
            assert text.startswith(
                f"train.csv: the row that begins on line {doubtful['first_line']}{more} goes"
            )
        else:
            assert said == []


def test_names_of_classes(tmp_path):
    documents = read_folder(written(tmp_path / "data", classes="\ufeffNew York \r\nSão Paulo\n\n"))
    assert documents.classes == ("New York", "São Paulo")
    assert documents.about["classes"] == ["New York", "São Paulo"]


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"train": b"1,a\n2,b\xff\n"}, r"train\.csv, line 2: not UTF-8"),
        (
            {"train": "label,text\n1,a\n2,b\n"},
            r"train\.csv, line 1: .* from 1, got 'label'.* header, remove it",
        ),
        ({"train": "1,a\n0,b\n"}, r"train\.csv, line 2: .* from 1, got '0'"),
        ({"train": "1,a\n\n-1,b\n"}, "line 3: .* got '-1'"),
        ({"train": "1,a\n1.5,b\n"}, "line 2: .* got '1.5'"),
        ({"train": "1,a\n²,b\n"}, "line 2: .* got '²'"),
        ({"train": f"1,a\n{'9' * 500},b\n"}, "line 2: .* got '999"),
        ({"train": "1,a\n257,b\n"}, "line 2: the label is 257, but there may be at most 256"),
        ({"train": '1,"a\nb"\n2\n'}, "line 3: expected a label and a text, got one column: '2'"),
        ({"train": '1,a\n2,"b\nc\n'}, "line 2: a quote is opened and never closed"),
        ({"train": "1,a\r2,b\r"}, "line 1: new-line"),
        ({"train": '"1","a"\n"2","b\n"1","c"\n"2","d"\n'}, r"train\.csv, line 2: .* would swallow the rows"),
        ({"train": '1,a\n2,"b\n1,c\n2,"d"\n'}, "line 2: .* would swallow the rows"),
        ({"train": '1,"a "b","c\n2,"d"\n'}, "line 1: .* would swallow the rows"),
        ({"train": '1,a\n2,"b\nc "d" e"\n'}, "line 2: .* not doubled"),
        ({"train": ""}, r"train\.csv is empty"),
        ({"test": "\n\n"}, r"test\.csv is empty"),
        ({"train": "2,a\n2,b\n"}, r"train\.csv: every document has the label 2"),
        ({"train": "1,a\n4,b\n2,c\n"}, r"train\.csv: no document has the label 3, but some have 4"),
        ({"test": '1,"a\n"\n3,b\n'}, r"test\.csv, line 3: the label is 3, but those of train.csv end at 2"),
        ({"classes": "a\nb\nc\n"}, r"classes\.txt names 3 classes, but train\.csv has 2 labels"),
        ({"classes": "a\na\n"}, r"classes\.txt gives two classes the same name: 'a'"),
        ({"classes": b"a\n\xff\n"}, r"classes\.txt, line 2: not UTF-8"),
        ({"train": f'1,a\n2,"{"b" * 1001}"\n'}, "line 2: .* more than 1,000"),
        ({"train": '1,a\n2,"' + "b\n" * 501}, "line 2: .* more than 1,000 .* not closed"),
        ({"train": "1,a\n,,\n"}, "line 2: .* whole number from 1, got ''"),
    ],
)
def test_files_that_are_wrong(files, said, monkeypatch, tmp_path):
    monkeypatch.setattr(csv_set, "LONGEST", 1000)
    folder = written(tmp_path / "data", **files)
    with pytest.raises(ValueError, match=said):
        read_folder(folder, processes=1)
    assert kept(tmp_path) == []
    assert not [*(tmp_path / "cache" / "documents").iterdir()]


def test_the_limit_of_the_csv_module_is_as_before(folder, tmp_path):
    before = csv.field_size_limit()
    read_folder(folder)
    with pytest.raises(ValueError, match="empty"):
        read_folder(written(tmp_path / "data", train=""))
    assert csv.field_size_limit() == before


def test_a_field_longer_than_the_csv_module_allows_by_itself(tmp_path):
    documents = read_folder(written(tmp_path / "data", f'1,"{"b " * 200_000}"\n2,a\n'))
    assert documents.train.lengths.tolist() == [200_000, 1]


@pytest.mark.parametrize("present", [None, [], ["test.csv"]])
def test_what_is_missing(present, tmp_path):
    folder = tmp_path / "data"
    if present is not None:
        folder.mkdir()
        for name in present:
            (folder / name).write_text(TEST)
    with pytest.raises(FileNotFoundError) as error:
        read_folder(folder)
    said = str(error.value)
    assert str(folder) in said
    assert ("no folder" in said) == (present is None)
    assert ("lacks train.csv and test.csv" in said) == (present == [])
    assert ("lacks train.csv;" in said) == (present == ["test.csv"])
    assert "train.csv, test.csv; as Zhang et al. (2015) published them" in said
    assert said.endswith("without --data documents of our own making are used")
    assert not (tmp_path / "cache").exists()


def test_progress(monkeypatch, tmp_path):
    monkeypatch.setattr(csv_set, "PIECE_ROWS", 10)
    shares = []
    read_folder(written(tmp_path / "data", "1,a\n2,b\n" * 50, "1,a\n" * 50), shares.append)
    assert len(shares) == 15
    assert shares == sorted(shares)
    assert 0 < shares[0] < 0.2
    assert shares[-1] == 1


# Several processes


def many_rows(seed, count):
    draw = np.random.default_rng(seed)
    rows = [
        " ".join(f"w{n}" for n in (1 / (1e-4 + draw.random(size))).astype(int))
        for size in draw.integers(0, 40, count)
    ]
    return "".join(f'"{n % 3 + 1}","{text}\nend."\n' for n, text in enumerate(rows))


@pytest.fixture
def many(monkeypatch, tmp_path):
    monkeypatch.setattr(csv_set, "SMALL", 0)
    monkeypatch.setattr(csv_set, "PIECE_ROWS", 50)
    return written(tmp_path / "data", many_rows(1, 1230), many_rows(2, 70))


def test_workers_make_no_difference(many, monkeypatch, tmp_path):
    found = []
    for processes, rows in ((1, 50), (2, 50), (1, 7)):
        monkeypatch.setenv("LRN_CACHE", str(tmp_path / f"cache{processes}{rows}"))
        monkeypatch.setattr(csv_set, "PIECE_ROWS", rows)
        found.append(read_folder(many, processes=processes))
    assert found[0].about == found[1].about == found[2].about
    assert arrays(found[0]) == arrays(found[1]) == arrays(found[2])
    assert len(found[0].train) == 1230
    assert not multiprocessing.active_children()


def test_small_files_start_no_process(folder, monkeypatch):
    monkeypatch.setattr(workers, "ProcessPoolExecutor", None)
    read_folder(folder, processes=2)


def test_an_error_while_workers_are_busy(many, tmp_path):
    with (many / "test.csv").open("a") as file:
        file.write("9,x\n")
    with pytest.raises(ValueError, match=r"test\.csv, line 141: the label is 9"):
        read_folder(many, processes=2)
    assert not multiprocessing.active_children()
    assert not [*(tmp_path / "cache" / "documents").iterdir()]


def test_ctrl_c_while_workers_are_busy(many, tmp_path):
    def interrupt(share):
        if share > 0.3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        read_folder(many, interrupt, processes=2)
    assert not multiprocessing.active_children()
    assert not [*(tmp_path / "cache" / "documents").iterdir()]


def test_a_worker_that_dies(many, tmp_path):
    def kill(share):
        for process in multiprocessing.active_children():
            os.kill(process.pid, signal.SIGKILL)

    with pytest.raises(ValueError, match=r"died.*memory"):
        read_folder(many, kill, processes=2)
    assert not [*(tmp_path / "cache" / "documents").iterdir()]


# The cache


def test_nothing_is_read_twice(folder, calls):
    first = read_folder(folder)
    assert len(calls) == 3
    second = read_folder(folder)
    third = read_folder(folder / ".." / folder.name)
    assert len(calls) == 3
    assert arrays(first) == arrays(second) == arrays(third)
    assert first.about == second.about
    assert third.about["source"] != first.about["source"]
    assert not second.train.tokens.flags.writeable


@pytest.mark.parametrize("name", ["train.csv", "test.csv", "classes.txt"])
def test_a_change_is_noticed(name, folder, calls, tmp_path):
    read_folder(folder)
    before = kept(tmp_path)
    if name == "classes.txt":
        written(folder, classes="a\nb\n")
    else:
        os.utime(folder / name, ns=(1, 1))
    read_folder(folder)
    assert len(calls) == 6
    assert len(kept(tmp_path)) == 1
    assert kept(tmp_path) != before


def shorten(path):
    path.write_bytes(path.read_bytes()[:-8])


def empty(path):
    path.write_bytes(b"")


DAMAGE = [(name, harm) for name in ARRAYS for harm in (Path.unlink, shorten, empty)]
DAMAGE += [("about.json", harm) for harm in (Path.unlink, shorten, empty)]
DAMAGE += [
    ("about.json", lambda path, text=text: path.write_text(text))
    for text in ("{}", "[]", "null", '{"types": 1, "train": 1, "test": 1}')
]


@pytest.mark.parametrize(("name", "harm"), DAMAGE)
def test_a_damaged_cache_is_made_anew(name, harm, folder, calls, tmp_path):
    whole = arrays(read_folder(folder))
    (place,) = (tmp_path / "cache" / "documents").iterdir()
    harm(place / name)
    again = read_folder(folder)
    assert arrays(again) == whole
    assert len(calls) == 6
    assert [*(tmp_path / "cache" / "documents").iterdir()] == [place]
    read_folder(folder)
    assert len(calls) == 6


SAID = "cannot write to the cache folder .*: {}; LRN_CACHE sets another$"


def test_a_disk_that_is_full(folder, tmp_path):
    """Writes fail from some byte on, and fail again on closing."""
    written(folder, "1,a b c d\n2,b\n" * 5000)
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, limit[1]))
    try:
        with pytest.raises(ValueError, match=SAID.format(os.strerror(errno.EFBIG))) as error:
            read_folder(folder)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert str(tmp_path / "cache") in str(error.value)
    assert "\n" not in str(error.value)
    assert not [*(tmp_path / "cache" / "documents").iterdir()]


def test_no_torch():
    """Worker processes import it; each would need seconds and hundreds of megabytes more."""
    code = "import lrn.tasks.doc.csv_set, sys; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0

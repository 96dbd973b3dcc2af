"""Saved states: what is damaged, foreign or crafted is told from what is good, and nothing is executed."""

import hashlib
import io
import json
import pickle

import pytest
import torch
from runs import same

from lrn.training import checkpoint

STATE = {
    "model": {"weight": torch.arange(6.0).view(2, 3), "half": torch.ones(2, dtype=torch.bfloat16)},
    "states": [(torch.zeros(1), torch.ones(1)), None],
    "figures": {"loss": 1.5, "best": float("inf"), "epoch": 3, "averaging": True, "name": "lrn"},
}


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "a.ckpt"
    checkpoint.save(path, "lm", STATE)
    return path


def wrapped(content, **header):
    """A file with everything right about it but, maybe, the content."""
    line = {
        "kind": "lrn checkpoint",
        "version": checkpoint.VERSION,
        "task": "lm",
        "bytes": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
    }
    return json.dumps(line | header).encode() + b"\n" + content


def saved(value):
    room = io.BytesIO()
    torch.save(value, room)
    return room.getvalue()


def test_round_trip(path):
    same(checkpoint.load(path, "lm"), STATE)


def test_the_files_of_this_test_are_right(path):
    path.write_bytes(wrapped(saved(STATE)))
    same(checkpoint.load(path, "lm"), STATE)


@pytest.mark.parametrize("share", [0.0, 0.001, 0.02, 0.1, 0.5, 0.9, 0.999])
def test_truncated(share, path):
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(ValueError, match=rf"{path} is (damaged|not an lrn checkpoint)"):
        checkpoint.load(path, "lm")


def test_any_byte_changed(path):
    """Every byte of the first line, and every 13th of the rest."""
    content = path.read_bytes()
    line = content.index(b"\n") + 1
    for place in [*range(line), *range(line, len(content), 13), len(content) - 1]:
        changed = bytearray(content)
        changed[place] ^= 1
        path.write_bytes(changed)
        with pytest.raises(ValueError, match=str(path)):
            checkpoint.load(path, "lm")


def test_longer(path):
    path.write_bytes(path.read_bytes() + b"\0")
    with pytest.raises(ValueError, match=r"damaged: .* bytes where there should be"):
        checkpoint.load(path, "lm")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n",
        b"hello\n",
        b"{}\n",
        b"[1]\n",
        b"null\n",
        b"[" * 9_000,
        b"\xff" * 50,
        saved(STATE),
        b"\0" * 20_000,
    ],
)
def test_foreign(content, path):
    path.write_bytes(content)
    with pytest.raises(ValueError, match="is not an lrn checkpoint"):
        checkpoint.load(path, "lm")


def test_no_length(path):
    path.write_bytes(wrapped(saved(STATE), bytes="many"))
    with pytest.raises(ValueError, match="does not give its length"):
        checkpoint.load(path, "lm")


def test_another_task(path):
    with pytest.raises(ValueError, match="belongs to task 'lm', not to 'ner'"):
        checkpoint.load(path, "ner")


@pytest.mark.parametrize("version", [0, 1, None, "2"])
def test_another_version(version, path):
    path.write_bytes(wrapped(saved(STATE), version=version))
    with pytest.raises(ValueError, match=f"is of version {version}; this lrn reads version 2"):
        checkpoint.load(path, "lm")


def test_missing(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no saved state .*none\.ckpt"):
        checkpoint.load(tmp_path / "none.ckpt", "lm")


class Malice:
    """Makes a file when it is unpickled."""

    def __init__(self, mark):
        self.mark = str(mark)

    def __reduce__(self):
        return open, (self.mark, "w")


@pytest.mark.filterwarnings("ignore:Detected pickle protocol")
@pytest.mark.parametrize("protocol", [0, 2, 5])
@pytest.mark.parametrize("form", ["zip", "pickle", "inside"])
def test_nothing_is_executed(form, protocol, path, tmp_path):
    mark = tmp_path / "executed"
    if form == "pickle":
        content = pickle.dumps(Malice(mark), protocol)
    else:
        room = io.BytesIO()
        value = {"model": {"weight": Malice(mark)}} if form == "inside" else Malice(mark)
        torch.save(value, room, pickle_protocol=max(protocol, 2))
        content = room.getvalue()
    path.write_bytes(wrapped(content))
    with pytest.raises(ValueError, match="holds more than plain data and is not loaded") as error:
        checkpoint.load(path, "lm")
    assert "\n" not in str(error.value)
    assert not mark.exists()


def test_the_malice_would_work(tmp_path):
    mark = tmp_path / "executed"
    pickle.loads(pickle.dumps(Malice(mark))).close()
    assert mark.exists()


@pytest.mark.parametrize("value", [[1, 2], torch.zeros(2), "text"])
def test_no_state(value, path):
    path.write_bytes(wrapped(saved(value)))
    with pytest.raises(ValueError, match="does not hold a saved state but a"):
        checkpoint.load(path, "lm")

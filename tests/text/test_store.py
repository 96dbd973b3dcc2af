"""Things by name, in a folder."""

import numpy as np
import pytest
import torch

from lrn.text.store import Folder


def test_texts_and_tables(tmp_path):
    (tmp_path / "a.json").write_text("é東", encoding="utf-8")
    np.save(tmp_path / "b.npy", np.ones((2, 3), np.float32))
    store = Folder(tmp_path)
    assert store.text("a.json") == "é東"
    assert torch.equal(store.table("b.npy", 2), torch.ones(2, 3))
    assert store.folder("bert") == tmp_path / "bert"
    assert store.place("a.json") == str(tmp_path / "a.json")


@pytest.mark.parametrize("read", [Folder.text, lambda store, name: store.table(name, 2)])
def test_what_is_missing(read, tmp_path):
    with pytest.raises(FileNotFoundError, match=f"^{tmp_path} cannot be used: its none is missing$"):
        read(Folder(tmp_path), "none")


def test_what_is_damaged(tmp_path):
    (tmp_path / "a").write_bytes(b"\xff\xfe")
    with pytest.raises(ValueError, match=r"a is damaged: not UTF-8 text \(invalid start byte\)"):
        Folder(tmp_path).text("a")
    with pytest.raises(ValueError, match="a is damaged"):
        Folder(tmp_path).table("a", 2)

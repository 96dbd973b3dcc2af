"""Folders of ELMo models: which files count, and options that cannot be meant."""

import json
import subprocess
import sys

import pytest
from elmo_files import OPTIONS, changed, write_elmo

from lrn.text.elmo_folder import check_folder, copy_folder, fingerprint, needed_files, read_options


@pytest.fixture
def folder(tmp_path):
    return write_elmo(tmp_path / "elmo")


def write_options(folder, options):
    (folder / "options.json").write_text(options if isinstance(options, str) else json.dumps(options))


def test_sizes(folder):
    options = read_options(folder)
    assert (options.width, options.kept_layers) == (10, 3)
    assert options.filters == ((1, 3), (2, 4), (4, 6))
    assert (options.cell_clip, options.projection_clip, options.residual) == (0.3, 0.1, True)


@pytest.mark.parametrize(
    "names",
    [
        ("elmo_2x4096_512_2048cnn_2xhighway_options.json", "elmo_2x4096_512_2048cnn_2xhighway_weights.hdf5"),
        ("options.json", "lm_weights.hdf5"),
        ("some.json", "some.hdf5"),
    ],
)
def test_names(names, tmp_path):
    folder = write_elmo(tmp_path / "elmo", names=names)
    assert [path.name for path in needed_files(folder)] == list(names)
    if names[1] != "some.hdf5":  # what says that it is weights counts, whatever is beside it
        (folder / "embeddings.hdf5").touch()
        assert [path.name for path in needed_files(folder)] == list(names)


def test_two_that_could_be_meant(folder):
    (folder / "weights.hdf5").rename(folder / "a_weights.hdf5")
    (folder / "b_weights.hdf5").touch()
    with pytest.raises(ValueError, match=r"several files \*weights\*.hdf5: a_weights.hdf5, b_weights.hdf5"):
        check_folder(folder)


def test_files_that_are_missing(folder, tmp_path):
    (folder / "weights.hdf5").unlink()
    with pytest.raises(
        FileNotFoundError, match=r"elmo lacks weights.hdf5; expected options.json, weights.hdf5"
    ):
        check_folder(folder)
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        check_folder(tmp_path / "none")
    with pytest.raises(ValueError, match="is a file, not the folder"):
        check_folder(folder / "options.json")


@pytest.mark.parametrize("content", ["[]", '"text"', "{}", '{"lstm": {}}', '{"model_type": "bert"}'])
def test_a_foreign_json(folder, content):
    write_options(folder, content)
    with pytest.raises(ValueError, match=r"options.json is not the options of an ELMo that reads characters"):
        check_folder(folder)


@pytest.mark.parametrize("content", ["{", "", "\xff"])
def test_what_is_not_json(folder, content):
    (folder / "options.json").write_bytes(content.encode("latin-1"))
    with pytest.raises(ValueError, match=r"options.json is damaged"):
        check_folder(folder)


@pytest.mark.parametrize(
    ("lstm", "char_cnn", "said"),
    [
        ({"dim": None}, {}, "no lstm.dim"),
        ({"dim": 0}, {}, "lstm.dim is 0; expected a whole number from 1"),
        ({"dim": "8"}, {}, "lstm.dim is '8'"),
        ({"dim": True}, {}, "lstm.dim is True"),
        ({"n_layers": 1.5}, {}, "lstm.n_layers is 1.5"),
        ({"projection_dim": -1}, {}, "lstm.projection_dim is -1"),
        ({"cell_clip": -3}, {}, "lstm.cell_clip is -3; expected a positive number"),
        ({"proj_clip": "x"}, {}, "lstm.proj_clip is 'x'"),
        ({}, {"activation": "gelu"}, "char_cnn.activation is 'gelu'; allowed: relu, tanh"),
        ({}, {"activation": None}, "no char_cnn.activation"),
        ({}, {"filters": []}, r"char_cnn.filters is \[\]; expected pairs"),
        ({}, {"filters": [[1, 2, 3]]}, r"char_cnn.filters is \[\[1, 2, 3\]\]"),
        ({}, {"filters": [[0, 2]]}, "expected pairs of a width and a count"),
        ({}, {"filters": 3}, "char_cnn.filters is 3"),
        ({}, {"filters": [[13, 2]]}, "a filter reads 13 characters, but a word has at most 12"),
        ({}, {"n_highway": -1}, "char_cnn.n_highway is -1"),
        ({}, {"embedding": {}}, "no char_cnn.embedding.dim"),
        ({}, {"embedding": 4}, "no char_cnn.embedding.dim"),
        ({}, {"n_characters": 100}, "char_cnn.n_characters is 100; expected 262"),
        ({}, {"max_characters_per_token": 2}, "char_cnn.max_characters_per_token is 2"),
    ],
)
def test_options_that_cannot_be_meant(folder, lstm, char_cnn, said):
    write_options(folder, changed(lstm, char_cnn))
    with pytest.raises(ValueError, match=said) as caught:
        check_folder(folder)
    assert "\n" not in str(caught.value)


def test_one_direction_alone(folder):
    write_options(folder, {**OPTIONS, "bidirectional": False})
    with pytest.raises(ValueError, match="bidirectional is False"):
        check_folder(folder)


def test_a_copy_is_the_same_model(folder, tmp_path):
    (folder / "notes.txt").write_text("something else")
    copy_folder(folder, tmp_path / "run" / "elmo")
    assert {path.name for path in (tmp_path / "run" / "elmo").iterdir()} == {"options.json", "weights.hdf5"}
    assert fingerprint(tmp_path / "run" / "elmo") == fingerprint(folder)
    write_options(folder, changed(lstm={"cell_clip": 5}))
    assert fingerprint(tmp_path / "run" / "elmo") != fingerprint(folder)


def test_no_torch():
    code = "import sys, lrn.text.elmo_folder; print('torch' in sys.modules, 'h5py' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False False\n"

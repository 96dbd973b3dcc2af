"""ELMo: the original's numbers, the same by plain loops, states, and files that are damaged."""

import copy
import json
import os
import pickle
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch
from elmo_files import OPTIONS, changed, draw_weights, write_elmo

from lrn.text import elmo
from lrn.text.elmo import Characters, Elmo
from lrn.text.elmo_folder import read_options

DATA = Path(os.environ.get("LRN_SHARED_DATA", Path(__file__).parents[3] / "shared/data"))
FIXTURE = DATA / "elmo-fixture"
SENTENCES = [
    ["The", "cat", "naps", "."],
    ["Zürich", "!"],
    ["x"],
    ["a", "b", "abcdefghijklmnop", "naïve", "a"],
]


@pytest.fixture
def folder(tmp_path):
    return write_elmo(tmp_path / "elmo")


# The original's numbers ---------------------------------------------------------------------------


@pytest.mark.skipif(not FIXTURE.is_dir(), reason="needs the original's toy weights")
class TestFixture:
    def test_the_last_layer_with_states_carried(self):
        """Three batches of texts were read side by side, a sentence of each at a time."""
        texts = json.loads((FIXTURE / "sentences.json").read_text())
        expected = [h5py.File(FIXTURE / f"lm_embeddings_{k}.hdf5") for k in range(3)]
        model = Elmo(FIXTURE, carried=True)
        for number in range(10):
            found = model.read([text[number].split() for text in texts])
            for row, file in zip(found, expected, strict=True):
                both = np.concatenate(file[str(number)][()], -1)  # [length, 2 P]
                np.testing.assert_allclose(row[:, -1], both, rtol=0, atol=1e-5)

    def test_words_alone(self):
        words = (FIXTURE / "vocab_test.txt").read_text().split()
        with h5py.File(FIXTURE / "elmo_token_embeddings.hdf5") as file:
            expected = np.tile(file["embedding"][()], 2)
        (found,) = Elmo(FIXTURE).read([words])
        np.testing.assert_allclose(found[:, 0], expected, rtol=0, atol=1e-5)


# The same by plain loops --------------------------------------------------------------------------


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


class Plain:
    """An ELMo in float64: one word, one direction and one step after the other."""

    def __init__(self, options, weights):
        self.lstm, self.cnn = options["lstm"], options["char_cnn"]
        self.weights = {name: value.astype(np.float64) for name, value in weights.items()}
        self.states = {}

    def word(self, text):
        longest = self.cnn["max_characters_per_token"]
        inner = {"<S>": [256], "</S>": [257]}.get(text, [*text.encode()][: longest - 2])
        numbers = [258, *inner, 259]
        numbers += [260] * (longest - len(numbers))
        spelt = self.weights["char_embed"][numbers]  # [C, E]
        activation = np.tanh if self.cnn["activation"] == "tanh" else lambda x: np.maximum(x, 0)
        found = []
        for n, (reads, count) in enumerate(self.cnn["filters"]):
            weight, bias = self.weights[f"CNN/W_cnn_{n}"][0], self.weights[f"CNN/b_cnn_{n}"]
            for k in range(count):
                places = range(longest - reads + 1)
                found.append(
                    max(activation((spelt[p : p + reads] * weight[..., k]).sum() + bias[k]) for p in places)
                )
        x = np.array(found)
        for n in range(self.cnn["n_highway"]):
            part = {
                key: self.weights[f"CNN_high_{n}/{key}"]
                for key in ("W_carry", "b_carry", "W_transform", "b_transform")
            }
            carry = sigmoid(x @ part["W_carry"] + part["b_carry"])
            x = carry * np.maximum(x @ part["W_transform"] + part["b_transform"], 0) + (1 - carry) * x
        if "CNN_proj/W_proj" in self.weights:
            x = x @ self.weights["CNN_proj/W_proj"] + self.weights["CNN_proj/b_proj"]
        return x

    def walk(self, inputs, direction, layer, row):
        name = f"RNN_{direction}/RNN/MultiRNNCell/Cell{layer}/LSTMCell"
        weight, bias, projection = (self.weights[f"{name}/{key}"] for key in ("W_0", "B", "W_P_0"))
        key = (direction, layer, row)
        h, c = self.states.get(key, (np.zeros(self.lstm["projection_dim"]), np.zeros(self.lstm["dim"])))
        out = []
        for x in inputs:
            i, g, f, o = np.split(np.concatenate([x, h]) @ weight + bias, 4)
            c = sigmoid(f + 1) * c + sigmoid(i) * np.tanh(g)
            if self.lstm.get("cell_clip"):
                c = np.clip(c, -self.lstm["cell_clip"], self.lstm["cell_clip"])
            h = (sigmoid(o) * np.tanh(c)) @ projection
            if self.lstm.get("proj_clip"):
                h = np.clip(h, -self.lstm["proj_clip"], self.lstm["proj_clip"])
            out.append(h)
        self.states[key] = h, c
        return out

    def read(self, words, row=0):
        """``[length, layers, width]``."""
        tokens = [self.word(word) for word in ["<S>", *words, "</S>"]]
        directions = []
        for direction in range(2):
            x = tokens[:: -1 if direction else 1]
            layers = [x]
            for layer in range(self.lstm["n_layers"]):
                out = self.walk(x, direction, layer, row)
                if layer and self.lstm["use_skip_connections"]:
                    out = [a + b for a, b in zip(out, x, strict=True)]
                layers.append(x := out)
            directions.append([step[:: -1 if direction else 1] for step in layers])
        both = np.concatenate([np.array(found) for found in directions], -1)  # [layers, T + 2, 2 P]
        return both[:, 1:-1].swapaxes(0, 1)


def same(found, expected):
    assert found.shape == expected.shape
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-6)


VARIANTS = {
    "as it is": OPTIONS,
    "tanh": changed(char_cnn={"activation": "tanh"}),
    "no residual": changed(lstm={"use_skip_connections": False}),
    "no clips": changed(lstm={"cell_clip": None, "proj_clip": None}),
    "one layer": changed(lstm={"n_layers": 1}),
    "three layers": changed(lstm={"n_layers": 3}),
    "no highway": changed(char_cnn={"n_highway": 0}),
    "one filter": changed(char_cnn={"filters": [[3, 4]]}),
    "long words": changed(char_cnn={"max_characters_per_token": 50}),
    "a filter as long as a word": changed(char_cnn={"filters": [[12, 4], [1, 2]]}),
    "counted without the padding": changed(char_cnn={"n_characters": 261}),
}


@pytest.mark.parametrize("options", VARIANTS.values(), ids=VARIANTS)
def test_every_layer(options, tmp_path):
    model = Elmo(write_elmo(tmp_path, options))
    for found, words in zip(model.read(SENTENCES), SENTENCES, strict=True):
        same(found, Plain(options, draw_weights(options)).read(words))


def test_clips_matter():
    """So that the test above would see it if one were left out."""
    reads = [
        Plain(changed(lstm=lstm), draw_weights()).read(SENTENCES[0])
        for lstm in ({}, {"cell_clip": None}, {"proj_clip": None})
    ]
    assert np.abs(reads[0] - reads[1]).max() > 0.01
    assert np.abs(reads[0] - reads[2]).max() > 0.01


def test_without_a_projection_of_words(tmp_path):
    options = changed(lstm={"projection_dim": 13})  # as many as filters
    weights = {name: value for name, value in draw_weights(options).items() if "proj" not in name}
    (found,) = Elmo(write_elmo(tmp_path, options, weights=weights)).read(SENTENCES[:1])
    same(found, Plain(options, weights).read(SENTENCES[0]))


def test_states_are_carried(folder):
    """Row by row; one that a smaller batch leaves out keeps its states, and zeros are those of a new one."""
    model, plain = Elmo(folder, carried=True), Plain(OPTIONS, draw_weights())
    for batch in (SENTENCES[:2], SENTENCES[1:], SENTENCES[:1], SENTENCES[::-1]):
        for row, (found, words) in enumerate(zip(model.read(batch), batch, strict=True)):
            same(found, plain.read(words, row))
    model.forget()
    same(model.read(SENTENCES[:1])[0], Plain(OPTIONS, draw_weights()).read(SENTENCES[0]))


def test_states_are_not_carried(folder):
    model = Elmo(folder)
    first, second = model.read(SENTENCES), model.read(SENTENCES)
    for a, b in zip(first, second, strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_sentence_does_not_depend_on_those_beside_it(folder):
    model = Elmo(folder)
    for found, words in zip(model.read(SENTENCES), SENTENCES, strict=True):
        np.testing.assert_allclose(found, model.read([words])[0], rtol=0, atol=1e-6)


def test_chunks_of_steps_and_words_make_no_difference(folder, monkeypatch):
    whole = Elmo(folder).read(SENTENCES)
    monkeypatch.setattr(elmo, "PRODUCTS", 100)
    monkeypatch.setattr(elmo, "WORDS", 3)
    for a, b in zip(Elmo(folder).read(SENTENCES), whole, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-6)


def test_padding_is_zeros(folder):
    model = Elmo(folder)
    found = model(model.characters.batch(SENTENCES))
    assert found.shape == (4, 5, 3, 10)
    for row, words in zip(found, SENTENCES, strict=True):
        assert row[: len(words)].abs().amax((1, 2)).min() > 0
        assert not row[len(words) :].any()


def test_it_is_not_trained(folder):
    model = Elmo(folder)
    assert not list(model.parameters())
    assert not model(model.characters.batch(SENTENCES)).requires_grad
    assert not model.training


# Words as characters ------------------------------------------------------------------------------


def test_characters(folder):
    characters = Characters(read_options(folder))
    assert characters.word("hé") == [258, ord("h"), 0xC3, 0xA9, 259]
    assert characters.word("x" * 30) == [258, *[ord("x")] * 10, 259]
    assert characters.word("") == [258, 259]
    assert characters.word("<S>") == [258, 256, 259]
    assert characters.word("\ud800a") == [258, ord("a"), 259]  # half a character that is none
    batch = characters.batch([["a", "b", "a"], ["a"]])
    assert batch.characters.shape == (4, 3 + 4)  # two words and two marks; the widest filter reads 4
    assert len(batch.words) == 8


@pytest.mark.parametrize("sentences", [[], [[]], [["a"], []]])
def test_no_words(folder, sentences):
    with pytest.raises(ValueError, match="at least one word"):
        Characters(read_options(folder)).batch(sentences)


# Files that are none ------------------------------------------------------------------------------


def change_weights(folder, change):
    weights = draw_weights()
    change(weights)
    write_elmo(folder, weights=weights)


@pytest.mark.parametrize(
    "name",
    ["char_embed", "CNN/W_cnn_1", "CNN_high_1/b_carry", "CNN_proj/b_proj"]
    + [f"RNN_{n}/RNN/MultiRNNCell/Cell1/LSTMCell/{key}" for n in (0, 1) for key in ("W_0", "B", "W_P_0")],
)
def test_weights_that_are_missing_or_have_another_shape(folder, name):
    change_weights(folder, lambda weights: weights.pop(name))
    with pytest.raises(ValueError, match=rf"weights.hdf5 lacks {name}, which the options want$"):
        Elmo(folder)
    change_weights(folder, lambda weights: weights.update({name: weights[name][:-1]}))
    with pytest.raises(ValueError, match=rf"{name} has shape \[.+\], but the options want \[.+\]$"):
        Elmo(folder)
    change_weights(folder, lambda weights: weights.update({f"{name}/inside": weights.pop(name)}))
    with pytest.raises(ValueError, match=f"{name} is not a table of numbers"):
        Elmo(folder)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_weights_that_are_not_finite(folder, value):
    change_weights(folder, lambda weights: weights["CNN/b_cnn_0"].fill(value))
    with pytest.raises(ValueError, match="CNN/b_cnn_0 has numbers that are not finite"):
        Elmo(folder)


@pytest.mark.parametrize("kind", ["S3", "i4", h5py.string_dtype()])
def test_weights_that_are_not_numbers(folder, kind):
    values = np.full((3,), 1 if kind == "i4" else b"abc")
    with h5py.File(folder / "weights.hdf5", "a") as file:
        del file["CNN/b_cnn_0"]
        file.create_dataset("CNN/b_cnn_0", data=values, dtype=kind)
    with pytest.raises(ValueError, match="CNN/b_cnn_0 is not a table of numbers"):
        Elmo(folder)


@pytest.mark.parametrize("content", [b"", b"\x89HDF\r\n\x1a\nnothing", b"PK\x03\x04", pickle.dumps([1])])
def test_a_file_that_is_not_hdf5(folder, content):
    (folder / "weights.hdf5").write_bytes(content)
    with pytest.raises(ValueError, match=r"weights.hdf5 is damaged, or not HDF5: [^\n]+$"):
        Elmo(folder)


def test_a_file_that_was_cut_off(folder):
    path = folder / "weights.hdf5"
    path.write_bytes(path.read_bytes()[:-3000])
    with pytest.raises(ValueError, match=r"weights.hdf5[^\n]+$"):
        Elmo(folder)


def test_nothing_elsewhere_is_opened(folder, tmp_path):
    """Links to other files, tables kept in other files, and tables made of those of other files."""
    with h5py.File(tmp_path / "other.hdf5", "w") as file:
        file["secret"] = np.ones(3, np.float32)
    (tmp_path / "raw").write_bytes(np.ones(3, np.float32).tobytes())
    virtual = h5py.VirtualLayout((3,), "f4")
    virtual[:] = h5py.VirtualSource(tmp_path / "other.hdf5", "secret", (3,))
    outside = [(str(tmp_path / "raw"), 0, 12)]
    changes = {
        "lacks": lambda file: file.update(
            {"CNN/b_cnn_0": h5py.ExternalLink(tmp_path / "other.hdf5", "secret")}
        ),
        "in another file": lambda file: file.create_dataset("CNN/b_cnn_0", (3,), "f4", external=outside),
        "kept in": lambda file: file.create_virtual_dataset("CNN/b_cnn_0", virtual),
    }
    for said, change in changes.items():
        write_elmo(folder)
        with h5py.File(folder / "weights.hdf5", "a") as file:
            del file["CNN/b_cnn_0"]
            change(file)
        with pytest.raises(ValueError, match=said):
            Elmo(folder)


def test_half_precision_weights(folder):
    """They are read as float32."""
    weights = {name: value.astype(np.float16) for name, value in draw_weights().items()}
    (found,) = Elmo(write_elmo(folder, weights=weights)).read(SENTENCES[:1])
    same(found, Plain(OPTIONS, weights).read(SENTENCES[0]))


def test_without_h5py(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(ModuleNotFoundError, match=r"^ELMo needs h5py: pip install 'lrn-torch\[elmo\]'$"):
        Elmo(folder)


def test_a_copy_has_states_of_its_own(folder):
    model = Elmo(folder, carried=True)
    model.read(SENTENCES)
    other = copy.deepcopy(model)
    other.forget()
    a, b = model.read(SENTENCES[:1])[0], other.read(SENTENCES[:1])[0]
    assert np.abs(a - b)[:, 1:].max() > 1e-3
    assert torch.equal(model.words.table, other.words.table)

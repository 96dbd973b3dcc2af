"""Reading column files of every kind, and numbering words."""

from pathlib import Path

import pytest
import torch
from torch.nn.utils.rnn import pack_padded_sequence

from lrn.tasks.ner import generator
from lrn.tasks.ner.data import Codes, Sentence, encode, read_builtin, read_conll, read_folder

FOUR = """-DOCSTART- -X- -X- O

EU NNP I-NP I-ORG
rejects VBZ I-VP O
German JJ I-NP I-MISC
call NN I-NP O

Peter NNP I-NP I-PER
Blackburn NNP I-NP I-PER
"""


def write(folder, name, text):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_four_columns_in_iob1(tmp_path):
    first, second = read_conll(write(tmp_path, "eng.train", FOUR))
    assert first == Sentence(("EU", "rejects", "German", "call"), ("B-ORG", "O", "B-MISC", "O"))
    assert second == Sentence(("Peter", "Blackburn"), ("B-PER", "I-PER"))


@pytest.mark.parametrize("tags", ["I-PER I-PER O", "B-PER I-PER O", "B-PER E-PER O"])
def test_two_columns_in_any_scheme(tags, tmp_path):
    text = "\r\n".join(f"{w}\t{t}" for w, t in zip(("Anna", "Falk", "ran"), tags.split(), strict=True))
    (sentence,) = read_conll(write(tmp_path, "train.txt", text))
    assert sentence.tags == ("B-PER", "I-PER", "O")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a O\nb X O\n", "line 2: expected 2 columns like the lines before, got 3"),
        ("a\n", "line 1: expected a word and a tag"),
        ("a O\n\nb PER\n", "line 3: 'PER' is not a tag"),
        (b"a O\n\xff O\n", "line 2: not UTF-8"),
        ("\n\n", "empty"),
        (
            "a O\n" * 501,
            r"train\.txt: all its 501 words are one sentence; there must be a blank line after each",
        ),
    ],
)
def test_files_that_are_wrong(text, said, tmp_path):
    path = write(tmp_path, "train.txt", text)
    with pytest.raises(ValueError, match=said) as error:
        read_conll(path)
    assert "train.txt" in str(error.value)


def test_folders(tmp_path):
    write(tmp_path, "eng.train", FOUR)
    said = r"lacks eng\.testa and eng\.testb; expected .* or train\.txt, .*own making"
    with pytest.raises(FileNotFoundError, match=said):
        read_folder(tmp_path)
    write(tmp_path, "eng.testa", FOUR)
    write(tmp_path, "eng.testb", FOUR)
    about = read_folder(tmp_path).about
    assert about["train"] == {"sentences": 2, "tokens": 6, "entities": 3}


CONLL = Path(__file__).parents[4] / "shared" / "data" / "conll2003"


def test_conll_2003(tmp_path):
    import lzma

    names = ("eng.train", "eng.testa", "eng.testb")
    if not all((CONLL / f"{name}.xz").exists() for name in names):
        pytest.skip("no CoNLL-2003 here")
    for name in names:
        write(tmp_path, name, lzma.decompress((CONLL / f"{name}.xz").read_bytes()))
    about = read_folder(tmp_path).about
    counts = [tuple(about[part].values()) for part in ("train", "valid", "test")]
    assert counts == [(14041, 203621, 23499), (3250, 51362, 5942), (3453, 46435, 5648)]


def test_codes():
    codes = Codes.of([Sentence(("Anna", "ran"), ("B-PER", "O"))], ["falk", "ran"])
    assert codes.words.words == ("<pad>", "anna", "ran", "falk", "<unk>")
    assert codes.tags.words == ("<pad>", "O", "B-PER")
    assert set("Anraflk") <= set(codes.characters.words)


def test_encode():
    codes = Codes.of([Sentence(("Anna", "ran"), ("B-PER", "O"))])
    batch = encode([["Anna", "ran", "anna"], ["ran"]], codes, [["B-PER", "O", "O"], ["O"]])
    tokens = batch.tokens
    assert tokens.words.tolist() == [[1, 2, 1], [2, 0, 0]]
    assert batch.lengths.tolist() == [3, 1]
    assert batch.mask.tolist() == [[True] * 3, [True, False, False]]
    assert batch.tags.tolist() == [[2, 1, 1], [1, 0, 0]]
    spelt = [
        codes.characters.decode(row[:n]) for row, n in zip(tokens.characters.tolist(), [4, 3, 4], strict=True)
    ]
    assert ["".join(word) for word in spelt][:2] == ["Anna", "ran"]
    assert tokens.character_packing.lengths.tolist() == [4, 3, 4]
    assert tokens.spellings.tolist() == [[0, 1, 2], [1, 0, 0]]
    unknown = encode([["Zoe"]], codes)
    assert unknown.tokens.words.tolist() == [[len(codes.words) - 1]]


@pytest.mark.parametrize("count", [1, 5, 40])
def test_encode_packs_as_torch_packs(count):
    """Equally long sentences too, and words: in which order they are added up changes the last digits."""
    sentences = [s.words for s in read_builtin(count).train]
    batch = encode(sentences, Codes.of(read_builtin(count).train))
    for numbers, packing in (
        (batch.tokens.words, batch.packing),
        (batch.tokens.characters, batch.tokens.character_packing),
    ):
        expected = pack_padded_sequence(numbers, packing.lengths, batch_first=True, enforce_sorted=False)
        for ours, theirs in zip(packing.pack(numbers), expected, strict=True):
            assert torch.equal(ours, theirs)


def test_generated_sentences():
    once = list(generator.sentences(200, part="train", seed=1))
    assert once == list(generator.sentences(200, part="train", seed=1))
    assert once != list(generator.sentences(200, part="train", seed=2))
    assert all(len(words) == len(tags) for words, tags in once)
    with pytest.raises(ValueError, match="part"):
        next(generator.sentences(1, part="dev"))


def test_held_out_names_and_templates_are_not_in_training():
    data = read_builtin(3000)
    known = {word for s in data.train for word, tag in zip(s.words, s.tags, strict=True) if tag != "O"}
    shared = set(generator.SHARED) | set(generator.SUFFIXES) | set(generator.EVENTS)
    names = {word for s in data.test for word, tag in zip(s.words, s.tags, strict=True) if tag != "O"}
    assert not (names & known) - shared
    assert not set(generator.TRAIN_TEMPLATES) & set(generator.HELD_OUT_TEMPLATES)


def test_only_surroundings_tell_shared_names_apart():
    kinds = {}
    for words, tags in generator.sentences(3000):
        for word, tag in zip(words, tags, strict=True):
            if word in generator.SHARED:
                kinds.setdefault(word, set()).add(tag[2:])
    assert all({"PER", "LOC", "ORG"} <= found for found in kinds.values())
    assert len(kinds) == len(generator.SHARED)


def test_who_waits_sees_how_far_it_is(tmp_path):
    for name, sentences in (("train", 3), ("valid", 1), ("test", 1)):
        (tmp_path / f"{name}.txt").write_text("Anna B-PER\n\n" * sentences)
    told = []
    read_folder(tmp_path, told.append)
    assert told == [0.6, 0.8, 1.0]

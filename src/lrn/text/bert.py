"""BERT for pairs of sentences: a vector for each word in its context, and one for the pair.

The model is a folder in Hugging Face's format: ``transformers`` builds the network, and its weights are read
here, as plain tensors. No code from the folder is run, and nothing is looked for elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from lrn.checks import install
from lrn.files import read_json, text_lines
from lrn.text.batches import Batch, padded
from lrn.text.bert_folder import (
    CONFIG,
    check_folder,
    copy_folder,
    fingerprint,
    needed_files,
    read_config,
    read_settings,
)

__all__ = [
    "Encoder",
    "PieceBatch",
    "WordPieces",
    "check_folder",
    "copy_folder",
    "fingerprint",
    "word_features",
]

CLASSES = {"bert": "Bert", "distilbert": "DistilBert", "electra": "Electra"}
SPECIAL = ("[CLS]", "[SEP]", "[UNK]")
LONGEST_WORD = 100  # characters; a longer one is unknown
POOLER = ("pooler.dense.weight", "pooler.dense.bias")
OLD_NAMES = {"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"}


# Words as pieces ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class PieceBatch(Batch):
    """B pairs as word pieces: [CLS] premise [SEP] hypothesis [SEP], and padding at the end.

    So nothing in a pair depends on the pairs beside it.
    """

    pieces: Tensor  # [B, L]
    segments: Tensor  # [B, L] 0 up to the first [SEP] and on padding, 1 behind it
    mask: Tensor  # [B, L] True where there is a piece
    premise: (
        Tensor  # [B, P] the column of each word's first piece; 0, which is that of [CLS], behind the last
    )
    hypothesis: Tensor  # [B, H]


class WordPieces:
    """A vocabulary of word pieces, as a BERT's folder has it; whether case is kept is for the folder to say.

    ``tokenizer_config.json`` says so, else ``tokenizer.json``; where neither is there, case is kept if a
    piece has a capital letter.
    """

    def __init__(self, folder: Path) -> None:
        folder = Path(folder)
        check_folder(folder, weights=False)
        config = read_config(folder)
        self.longest: int = config.get("max_position_embeddings", 512)
        self._tokenizer, vocabulary = _tokenizer(folder)
        missing = [name for name in SPECIAL if name not in vocabulary]
        if missing:
            raise ValueError(f"the vocabulary in {folder} has no {' and no '.join(missing)}")
        if max(vocabulary.values()) >= config.get("vocab_size", 30_522):
            raise ValueError(f"the vocabulary in {folder} has more pieces than {folder / CONFIG} says")
        self._first, self._separator, self._unknown = (vocabulary[name] for name in SPECIAL)
        self._known: dict[str, list[int]] = {}

    def pieces(self, word: str) -> list[int]:
        """Return the numbers of the pieces of one word alone, at least that of [UNK]."""
        if word not in self._known:
            found = self._tokenizer.encode(word, add_special_tokens=False).ids
            self._known[word] = found or [self._unknown]
        return self._known[word]

    def pairs(self, premises: Sequence[Sequence[str]], hypotheses: Sequence[Sequence[str]]) -> PieceBatch:
        """Make a batch of pairs of sentences; each sentence is given as its words."""
        rows, segments = [], []
        columns: tuple[list[list[int]], list[list[int]]] = ([], [])
        for number, pair in enumerate(zip(premises, hypotheses, strict=True), 1):
            row, ends = [self._first], []
            for sentence, found in zip(pair, columns, strict=True):
                found.append(self._add(row, sentence))
                ends.append(len(row))
            if len(row) > self.longest:
                text = " ".join(pair[0])[:40]
                raise ValueError(
                    f"pair {number} of {len(premises)} ({text!r} …) has {len(row):,} word pieces, "
                    f"but this BERT reads at most {self.longest:,}"
                )
            rows.append(row)
            segments.append([0] * ends[0] + [1] * (ends[1] - ends[0]))
        if not rows:
            raise ValueError("a batch is of at least one pair")
        mask = padded([[1] * len(row) for row in rows]).bool()
        return PieceBatch(padded(rows), padded(segments), mask, *map(padded, columns))

    def _add(self, row: list[int], sentence: Iterable[str]) -> list[int]:
        """Append the pieces of a sentence and a [SEP] to a row; returns the columns of its words."""
        columns = []
        for word in sentence:
            columns.append(len(row))
            row.extend(self.pieces(word))
        row.append(self._separator)
        return columns


def _tokenizer(folder: Path) -> tuple[Any, dict[str, int]]:
    """Make what cuts a word into pieces, and the number of each piece.

    It knows no special pieces: a word of the data that is written like one is text.
    """
    _import("transformers")  # brings tokenizers; what is said where it is missing is about it
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

    vocabulary, said = _vocabulary(folder)
    said |= {name: value for name, value in read_settings(folder).items() if value is not None}
    cased = any(piece != piece.lower() for piece in vocabulary if not piece.startswith("["))
    try:
        model = models.WordPiece(vocabulary, unk_token="[UNK]", max_input_chars_per_word=LONGEST_WORD)
        normalizer = normalizers.BertNormalizer(
            lowercase=said.get("do_lower_case", not cased),
            strip_accents=said.get("strip_accents"),  # by default where it also lowers
            handle_chinese_chars=said.get("tokenize_chinese_chars", True),
        )
    except (TypeError, OverflowError) as error:
        raise ValueError(f"the vocabulary in {folder} is damaged: {error}") from None
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return tokenizer, vocabulary


def _vocabulary(folder: Path) -> tuple[dict[str, int], dict[str, Any]]:
    """Return the number of each piece, and what the same file says about how to read a text."""
    path = needed_files(folder, weights=False)[1]
    if path.suffix == ".txt":
        with path.open("rb") as file:
            pieces = {piece: number - 1 for number, piece in text_lines(file, path)}
        return pieces, {}
    content = read_json(path)
    try:
        model, normalizer = content["model"], content.get("normalizer") or {}
        if model.get("type", "WordPiece") != "WordPiece" or normalizer.get("type") != "BertNormalizer":
            raise ValueError(
                f"{path} is not a vocabulary of BERT's: it has no WordPiece, or no BertNormalizer"
            )
        vocabulary = {**model["vocab"]}
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path} is damaged: {error!r}") from None
    names = {
        "lowercase": "do_lower_case",
        "strip_accents": "strip_accents",
        "handle_chinese_chars": "tokenize_chinese_chars",
    }
    said = {ours: value for name, ours in names.items() if (value := normalizer.get(name)) is not None}
    return vocabulary, said


# The model ----------------------------------------------------------------------------------------


class Encoder(nn.Module):
    """A BERT that gives each word of a pair the last layer's vector of its first piece.

    Besides it gives a vector for the pair: what BERT's pooler makes of [CLS]. Where a BERT's weights have no
    pooler, as those trained to guess words alone, it begins as the identity, so the vector is tanh of the
    last layer's at [CLS]. DistilBERT and ELECTRA know no pooler: the vector is the last layer's at [CLS].

    Args:
        folder: in Hugging Face's format; :func:`check_folder` says what may be in it.
        weights: False leaves the weights to be loaded from a saved state; they need not be in the folder.
    """

    def __init__(self, folder: Path, weights: bool = True) -> None:
        super().__init__()
        folder = Path(folder)
        check_folder(folder, weights)
        config = read_config(folder, weights)
        self.kind: str = config["model_type"]
        network = _network(self.kind, config, folder / CONFIG)
        self.model: nn.Module = network
        self.width: int = network.config.hidden_size
        if weights:
            _load(network, needed_files(folder, weights=True)[2])

    def forward(self, batch: PieceBatch) -> tuple[Tensor, Tensor, Tensor]:
        """Return features of the premises' words ``[B, P, F]``, the hypotheses' ``[B, H, F]`` and the pairs'.

        Those of pairs are ``[B, F]``. Behind the last word of a sentence there are zeros.
        """
        given = {"input_ids": batch.pieces, "attention_mask": batch.mask}
        if self.kind != "distilbert":
            given["token_type_ids"] = batch.segments
        found = self.model(**given, return_dict=True)
        last = found.last_hidden_state  # [B, L, F]
        pooled = last[:, 0] if self.kind != "bert" else found.pooler_output  # [B, F]
        return _at(last, batch.premise), _at(last, batch.hypothesis), pooled


def word_features(
    encoder: Encoder,
    words: WordPieces,
    premises: Sequence[Sequence[str]],
    hypotheses: Sequence[Sequence[str]],
) -> tuple[list[NDArray[np.float32]], NDArray[np.float32]]:
    """Compute what :func:`lrn.text.features.cached` keeps: the model is not trained, and nothing is dropped.

    Returns, for each pair, features of its premise's and then its hypothesis' words, ``[P + H, F]``, and
    those of all pairs, ``[B, F]``.
    """
    training = encoder.training
    encoder.eval()
    try:
        with torch.inference_mode():
            batch = words.pairs(premises, hypotheses).to(next(encoder.parameters()).device)
            premise, hypothesis, pooled = (found.float().cpu().numpy() for found in encoder(batch))
    finally:
        encoder.train(training)
    rows = [
        np.concatenate([premise[n, : len(pair[0])], hypothesis[n, : len(pair[1])]])  # [P + H, F]
        for n, pair in enumerate(zip(premises, hypotheses, strict=True))
    ]
    return rows, pooled


def _at(last: Tensor, columns: Tensor) -> Tensor:
    """Return the vectors in these columns of each row, zeros for column 0; ``[B, L, F]`` to ``[B, P, F]``."""
    places = columns.unsqueeze(-1)  # [B, P, 1]
    return torch.take_along_dim(last, places, 1).masked_fill(places == 0, 0.0)


def _network(kind: str, config: dict[str, Any], path: Path) -> Any:
    """Build the network that ``config.json`` describes, with first weights."""
    transformers = _import("transformers")
    try:
        settings = getattr(transformers, f"{CLASSES[kind]}Config").from_dict(config)
        network = getattr(transformers, f"{CLASSES[kind]}Model")(settings)
    except Exception as error:  # whatever settings that cannot be meant make it raise
        raise ValueError(f"{path} describes no {CLASSES[kind]}: {_first_line(error)}") from None
    return network.float()


def _load(model: Any, path: Path) -> None:
    """Copy weights from a file into the network, as float32; other weights in it, of heads, are left."""
    weights = _read_weights(path, f"{model.base_model_prefix}.")
    wanted = model.state_dict()
    missing = [name for name in wanted if name not in weights]
    if sorted(missing) == sorted(POOLER):
        identity = torch.eye(model.config.hidden_size), torch.zeros(model.config.hidden_size)
        weights |= dict(zip(POOLER, identity, strict=True))
    elif missing:
        raise ValueError(f"{path} lacks {len(missing)} weights that {CONFIG} wants, {missing[0]} for one")
    for name, value in wanted.items():
        if weights[name].shape != value.shape:
            given, expected = list(weights[name].shape), list(value.shape)
            raise ValueError(f"{path}: {name} has shape {given}, but {CONFIG} wants {expected}")
    model.load_state_dict({name: weights[name] for name in wanted})


def _read_weights(path: Path, prefix: str) -> dict[str, Tensor]:
    """Read tensors by the names that they have in the bare network."""
    try:
        if path.suffix == ".safetensors":
            found = import_module("safetensors.torch").load_file(path)
        else:
            found = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # whatever a crafted file makes the reader raise
        raise ValueError(f"{path} is damaged, or not only tensors: {_first_line(error)}") from None
    if not isinstance(found, dict) or not all(isinstance(value, Tensor) for value in found.values()):
        raise ValueError(f"{path} does not hold tensors by name")
    if any(name.startswith(prefix) for name in found):  # with a head that the model was trained for
        found = {name.removeprefix(prefix): value for name, value in found.items() if name.startswith(prefix)}
    return {_new_name(name): value for name, value in found.items()}


def _new_name(name: str) -> str:
    for old, new in OLD_NAMES.items():
        name = name.replace(old, new)
    return name


def _first_line(error: Exception) -> str:
    return "".join(str(error).strip().splitlines()[:1]) or type(error).__name__


def _import(package: str) -> Any:
    try:
        return import_module(package)
    except ModuleNotFoundError as error:
        if error.name != package:
            raise
        raise ModuleNotFoundError(f"BERT needs {package}: {install('bert')}", name=package) from None

"""Words cut into pieces by byte-pair encoding (Sennrich et al., 2016), learnt and applied by ``tokenizers``.

In text a piece that does not end its word has ``@@`` behind it, as subword-nmt writes it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from lrn.files import write_text
from lrn.text.vocabulary import UNKNOWN

MORE = "@@"
_END = "</w>"


class Subwords:
    """Pairs of pieces that are joined, in order.

    >>> subwords = Subwords.learn(Counter({"low": 5, "lower": 2, "newest": 6}), merges=4)
    >>> subwords.cut("low"), subwords.cut("lowest")
    (('lo@@', 'w'), ('lo@@', 'we@@', 's@@', 't'))
    >>> joined(["lo@@", "w@@", "er", "new"])
    ['lower', 'new']
    """

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self._model = tokenizer.model
        merges = self.to_json()["model"]["merges"]
        self._parts: dict[str, tuple[str, str]] = {}
        for first, second in merges:
            self._parts.setdefault(first + second, (first, second))

    @classmethod
    def learn(cls, counts: Counter[str], merges: int) -> Subwords:
        """Learn so many merges, or as many as there are to learn, from words and how often they occur."""
        from tokenizers import Tokenizer, models, trainers

        letters = {letter for word in counts for letter in word}
        last = {word[-1] + _END for word in counts}
        trainer = trainers.BpeTrainer(
            vocab_size=1 + len(letters) + len(last) + merges,
            end_of_word_suffix=_END,
            special_tokens=[UNKNOWN],
            show_progress=False,
        )
        tokenizer = Tokenizer(models.BPE(unk_token=UNKNOWN, end_of_word_suffix=_END))
        tokenizer.train_from_iterator(_texts(counts), trainer)
        return cls(tokenizer)

    def __len__(self) -> int:
        return len(self._parts)

    def cut(self, word: str, known: Container[str] | None = None) -> tuple[str, ...]:
        """The pieces of a word; of a piece that is not ``known``, the smaller ones that it was joined of.

        A letter that training did not have is ``<unk>``.
        """
        found = [token.value for token in self._model.tokenize(word)]
        if known is not None:
            found = [part for piece in found for part in self._known(piece, known)]
        return tuple(map(_written, found))

    def _known(self, piece: str, known: Container[str]) -> Iterator[str]:
        if _written(piece) in known or piece not in self._parts:
            yield piece
            return
        for part in self._parts[piece]:
            yield from self._known(part, known)

    def save(self, path: Path) -> None:
        """Write the merges in the form of ``tokenizers``: whole or, when something fails, not at all."""
        write_text(path, self._tokenizer.to_str(pretty=True) + "\n")

    def to_json(self) -> Any:
        """The merges as what a file of ``tokenizers`` holds."""
        return json.loads(self._tokenizer.to_str())

    @classmethod
    def read(cls, text: str, source: object) -> Subwords:
        """Read the content of such a file, which errors call ``source``.

        Only the pieces and the merges are taken from it: whatever else ``tokenizers`` could be told there,
        such as patterns to cut text by, is not.
        """
        from tokenizers import Tokenizer, models

        try:
            vocabulary, merges = _parts_of(text)
            model = models.BPE(vocabulary, merges, unk_token=UNKNOWN, end_of_word_suffix=_END)
        except Exception as error:  # tokenizers has no errors of its own
            raise ValueError(f"{source} holds no merges: {error}") from None
        return cls(Tokenizer(model))


def _parts_of(text: str) -> tuple[dict[str, int], list[tuple[str, str]]]:
    """The pieces with their numbers and the merges, checked: what does not fit could end the process."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not JSON ({error})") from None
    model = content.get("model") if isinstance(content, dict) else None
    if not isinstance(model, dict) or model.get("type") != "BPE":
        raise ValueError('expected {"model": {"type": "BPE", …}}')
    vocabulary, merges = model.get("vocab"), model.get("merges")
    if not isinstance(vocabulary, dict) or not isinstance(merges, list):
        raise ValueError("it lacks vocab or merges")
    if sorted(number for number in vocabulary.values() if type(number) is int) != [*range(len(vocabulary))]:
        raise ValueError("its pieces are not numbered from 0")
    if UNKNOWN not in vocabulary:
        raise ValueError(f"it has no {UNKNOWN}")
    pairs = []
    for merge in merges:
        if not isinstance(merge, list) or len(merge) != 2 or not all(isinstance(part, str) for part in merge):
            raise ValueError(f"{merge!r:.40} is no pair of pieces")
        first, second = merge
        if first not in vocabulary or second not in vocabulary or first + second not in vocabulary:
            raise ValueError(f"{first!r} and {second!r} cannot be joined: not all of it is a piece")
        if not first or not second:
            raise ValueError(f"{first!r} and {second!r} cannot be joined: one is empty")
        pairs.append((first, second))
    return vocabulary, pairs


def _texts(counts: Counter[str]) -> Iterator[str]:
    """Texts of one word as often as it occurs, for a trainer that counts words itself.

    Without a rule of its own for what a word is, it takes each text for one.
    """
    for word, count in counts.items():
        for _ in range(count):
            yield word


def _written(piece: str) -> str:
    if piece == UNKNOWN:
        return piece
    return piece.removesuffix(_END) if piece.endswith(_END) else piece + MORE


def joined(pieces: Iterable[str]) -> list[str]:
    """The words of pieces in which ``@@`` says that a word goes on.

    >>> joined(["Wach@@", "stube", "."]), joined(["cut", "of@@"])
    (['Wachstube', '.'], ['cut', 'of'])
    """
    words: list[str] = []
    open_word = False
    for piece in pieces:
        part = piece.removesuffix(MORE)
        if open_word:
            words[-1] += part
        else:
            words.append(part)
        open_word = piece.endswith(MORE)
    return words


def is_cut(lines: Sequence[str]) -> bool:
    """Whether text is cut into pieces already.

    >>> is_cut(["a g@@ lass ."]), is_cut(["write me @@ home"])
    (True, False)
    """
    return any(MORE + " " in line.replace(f" {MORE} ", " ") for line in lines)

"""What a model reads of a token: its word's vector, what its characters say, contextual features."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lrn.nn.dropout import Dropout, WordDropout, check_probability
from lrn.nn.linear import Linear
from lrn.nn.reset_gru import ResetGRU
from lrn.units.unit import Unit, hidden

if TYPE_CHECKING:
    from lrn.text.batches import Tokens


class WordInput(nn.Module):
    """One vector a token: that of its word, that of its spelling and, where given, contextual features.

    The parts are made by the caller, who so says how wide they are and how they begin.

    Args:
        word_vectors: numbers of words to vectors: an ``nn.Embedding``, or :class:`FrozenWords`.
        spelling: the W spellings of :class:`Tokens` to vectors ``[W, S]``: :class:`SpellingRNN` or
            :class:`SpellingPool`.
        drop_words: what training does to numbers of words before they are looked up.

    >>> from lrn.text.batches import Tokens
    >>> spelling = SpellingPool(nn.Embedding(9, 4))
    >>> words = WordInput(nn.Embedding(5, 6), spelling, WordDropout(0.1, becomes=0))
    >>> tokens = Tokens(torch.tensor([[1, 3, 1]]), torch.tensor([[0, 1, 0]]), torch.tensor([[8, 1], [2, 0]]))
    >>> words(tokens).shape, words(tokens, torch.ones(1, 3, 7)).shape
    (torch.Size([1, 3, 10]), torch.Size([1, 3, 17]))
    """

    def __init__(self, word_vectors: nn.Module, spelling: nn.Module, drop_words: WordDropout) -> None:
        super().__init__()
        self.word_vectors = word_vectors
        self.spelling = spelling
        self.drop_words = drop_words

    def forward(self, tokens: Tokens, features: Tensor | None = None) -> Tensor:
        """Return vectors ``[B, T, width]`` of padded tokens, or ``[N, width]`` of packed ones.

        ``features`` are what a contextual encoder says of each token: ``[B, T, F]``, or ``[N, F]``.
        """
        vectors: Tensor = self.word_vectors(self.drop_words(tokens.words))
        spelt = self.spelling(tokens)[tokens.spellings]  # [W, S] -> [B, T, S] or [N, S]
        parts = [vectors, spelt] if features is None else [vectors, spelt, features]
        return torch.cat(parts, -1)


class SpellingRNN(nn.Module):
    """The vector of a spelling: the last states of a recurrent layer over its characters, in both directions.

    Args:
        character_vectors: the vectors of the characters, of which number 0 is none.
        unit: a bidirectional unit of one layer, batch first.

    >>> import lrn
    >>> from lrn.text.batches import Packing, Tokens
    >>> unit = lrn.LRN(4, 3, bidirectional=True, batch_first=True)
    >>> tokens = Tokens(*torch.tensor([[1, 2], [0, 1]]), torch.tensor([[8, 1], [2, 0]]), Packing.of([2, 1]))
    >>> SpellingRNN(nn.Embedding(9, 4), unit)(tokens).shape
    torch.Size([2, 6])
    """

    def __init__(self, character_vectors: nn.Module, unit: Unit) -> None:
        super().__init__()
        self.character_vectors = character_vectors
        self.unit = unit

    def forward(self, tokens: Tokens) -> Tensor:
        """Return the vectors of the W spellings, ``[W, 2 * H]``."""
        packing = tokens.character_packing
        if packing is None:
            raise ValueError("a recurrent layer over characters needs to know how they are packed")
        vectors = self.character_vectors(tokens.characters)  # [W, C, E]
        _, state = self.unit(packing.pack(vectors))
        h = hidden(state)  # [2, W, H]
        return torch.cat([h[0], h[1]], -1)


class SpellingGRU(nn.Module):
    """The vector of a spelling: the last states of two :class:`ResetGRU`, one a direction.

    Args:
        character_vectors: the vectors of the characters, of which number 0 is none.
        hidden: width of the states.
        dropout: of the numbers in the characters' vectors, the same ones for all characters of a spelling.

    >>> from lrn.text.batches import Packing, Tokens
    >>> tokens = Tokens(*torch.tensor([[1, 2], [0, 1]]), torch.tensor([[8, 1], [2, 0]]), Packing.of([2, 1]))
    >>> SpellingGRU(nn.Embedding(9, 4), hidden=3)(tokens).shape
    torch.Size([2, 6])
    """

    def __init__(self, character_vectors: nn.Embedding, hidden: int, dropout: float = 0.0) -> None:
        super().__init__()
        width = character_vectors.embedding_dim
        self.character_vectors = character_vectors
        self.dropout = check_probability("dropout", dropout)
        self.forwards = ResetGRU(width, hidden)
        self.backwards = ResetGRU(width, hidden)

    def forward(self, tokens: Tokens) -> Tensor:
        """Return the vectors of the W spellings, ``[W, 2 * H]``."""
        packing = tokens.character_packing
        if packing is None:
            raise ValueError("a recurrent layer over characters needs to know how they are packed")
        vectors = self.character_vectors(tokens.characters)  # [W, C, E]
        if self.training and self.dropout:
            vectors = vectors * F.dropout(vectors.new_ones(len(vectors), 1, vectors.shape[2]), self.dropout)
        packed, sizes = packing.pack(vectors).data, packing.batch_sizes.tolist()  # [N, E]
        states = [self.forwards.last(packed, sizes), self.backwards.last(packed, sizes, reverse=True)]
        return torch.cat(states, -1).index_select(0, packing.back)


class SpellingPool(nn.Module):
    """The vector of a spelling: the largest numbers in the vectors of its characters, through a linear map.

    What is behind the last character counts as zeros, and all words but the longest have some.

    Args:
        character_vectors: the vectors of the characters, of which number 0 is none.
        dropout: of the numbers in the characters' vectors.
    """

    def __init__(self, character_vectors: nn.Embedding, dropout: float = 0.0) -> None:
        super().__init__()
        width = character_vectors.embedding_dim
        self.character_vectors = character_vectors
        self.dropout = Dropout(dropout)
        self.linear = Linear(width, width)

    def forward(self, tokens: Tokens) -> Tensor:
        """Return the vectors of the W spellings, ``[W, E]``."""
        characters = tokens.characters
        vectors = self.dropout(self.character_vectors(characters))  # [W, C, E]
        vectors = vectors * (characters != 0).unsqueeze(-1)
        spelt: Tensor = self.linear(vectors.amax(1))  # [W, E]
        return spelt

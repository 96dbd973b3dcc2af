"""ELMo: the layers of a language model that reads in both directions, for each word of a sentence.

The model is a folder with the official ``options.json`` and ``weights.hdf5``. Weights are read as plain
numbers, by the names and the shapes that they must have: nothing in the files is run, and nothing that they
point to elsewhere is opened.

A word is its UTF-8 bytes. Filters of several widths run over them, and the greatest value of each is taken;
highways and a projection follow. Then LSTMs with a projection read the sentence, with a mark at either end,
in either direction. Peters et al., 2018.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from lrn.checks import install
from lrn.text.batches import Batch, Packing
from lrn.text.elmo_folder import CHARACTERS, Options, needed_files, read_options

BEGIN, END, WORD_BEGIN, WORD_END, PADDING = range(256, CHARACTERS)  # behind the 256 bytes
SENTENCE = {"<S>": BEGIN, "</S>": END}  # the marks of a sentence, one at either end
FORGET = 1.0  # added to the forget gate, whatever bias is stored
WORDS = 512  # that the filters read at a time
PRODUCTS = 2**24  # numbers that the inputs' products of some steps may be


# Words as characters ------------------------------------------------------------------------------


@dataclass(frozen=True)
class CharacterBatch(Batch):
    """B sentences with a mark at either end: W different words by their characters, and where they stand.

    N is the number of words of all sentences, marks included.
    """

    characters: Tensor  # [W, C]
    words: Tensor  # [N] which of them, packed
    packing: Packing  # of the sentences with their marks
    mirror: Tensor  # [N] for each packed step, that which is as far from the sentence's other end
    inner: Tensor  # [B, T] the packed step of each word that is no mark; 0, which is one, behind the last


class Characters:
    """The numbers of words' characters, as an ELMo knows them."""

    def __init__(self, options: Options) -> None:
        self.longest = options.characters
        self.widest = max(width for width, _ in options.filters)

    def word(self, word: str) -> list[int]:
        """Return the numbers of a word's bytes between the marks of its begin and its end.

        What is written like a mark of a sentence is one, as in the original.
        """
        if word in SENTENCE:
            return [WORD_BEGIN, SENTENCE[word], WORD_END]
        spelt = word.encode("utf-8", "ignore")[: self.longest - 2]
        return [WORD_BEGIN, *spelt, WORD_END]

    def batch(self, sentences: Sequence[Sequence[str]]) -> CharacterBatch:
        """Make a batch of sentences, each given as its words; none is empty."""
        if not sentences or not all(sentences):
            raise ValueError("a batch is of sentences of at least one word")
        first, last = SENTENCE
        numbers: dict[str, int] = {}
        rows = [
            [numbers.setdefault(word, len(numbers)) for word in (first, *words, last)] for words in sentences
        ]
        packing = Packing.of([len(row) for row in rows])
        padded = np.zeros(packing.mask.shape, np.int64)  # [B, T + 2]
        for place, row in zip(padded, rows, strict=True):
            place[: len(row)] = row
        mirror, inner = _places(packing)
        words = torch.from_numpy(padded).flatten()[packing.places]  # [N]
        return CharacterBatch(self._table([*map(self.word, numbers)]), words, packing, mirror, inner)

    def _table(self, spelt: Sequence[Sequence[int]]) -> Tensor:
        """Lay words one below the other, ``[W, C]``.

        Filters read the padding, too: it is as long as what one of them reads, where the longest word leaves
        room for it. More would give them nothing that they have not read.
        """
        size = min(self.longest, max(map(len, spelt)) + self.widest)
        table = np.full((len(spelt), size), PADDING, np.int64)
        for place, word in zip(table, spelt, strict=True):
            place[: len(word)] = word
        return torch.from_numpy(table)


def _places(packing: Packing) -> tuple[Tensor, Tensor]:
    """Return what a batch calls ``mirror`` and ``inner``."""
    steps = torch.zeros(packing.mask.shape, dtype=torch.int64)  # [B, T + 2] the packed step at each place
    steps.view(-1)[packing.places] = torch.arange(len(packing.places))
    column = torch.arange(steps.shape[1])
    turned = (packing.lengths[:, None] - 1 - column).clamp(min=0)  # [B, T + 2]
    mirror = steps.gather(1, turned).view(-1)[packing.places]
    inside = column[1:-1] < packing.lengths[:, None] - 1  # [B, T]
    return mirror, torch.where(inside, steps[:, 1:-1], 0)


# The model ----------------------------------------------------------------------------------------


class Elmo(nn.Module):
    """An ELMo that stays as it is: three layers of features for each word, where it has two of LSTMs.

    The first is what the characters of the word alone say, twice; the others are what the LSTMs of either
    direction say of it in its sentence.

    Args:
        folder: with ``options.json`` and ``weights.hdf5``.
        carried: whether the LSTMs begin a batch in the states in which they ended the one before, row by row,
            as the original does. Else, and after :meth:`forget`, a sentence does not depend on others.
    """

    def __init__(self, folder: Path, carried: bool = False) -> None:
        super().__init__()
        self.options = read_options(Path(folder))
        self.characters = Characters(self.options)
        self.carried = carried
        with _Weights(needed_files(Path(folder))[1]) as weights:
            self.words = _WordEncoder(self.options, weights)
            self.layers = nn.ModuleList(_Layer(self.options, weights, n) for n in range(self.options.layers))
        self.requires_grad_(False)
        self.eval()

    def forget(self) -> None:
        """Let the LSTMs begin the next batch in states of zeros."""
        for layer in cast(Iterable[_Layer], self.layers):
            layer.states = None

    @torch.no_grad()
    def forward(self, batch: CharacterBatch) -> Tensor:
        """Return the features of all layers, ``[B, T, layers, width]``, with zeros behind the last word."""
        if not self.carried:
            self.forget()
        words = self.words(batch.characters)[batch.words]  # [N, P]
        both = torch.stack([words, words[batch.mirror]])  # [2, N, P]
        found = [torch.cat([words, words], 1)]
        sizes = batch.packing.batch_sizes.tolist()
        for number, layer in enumerate(self.layers):
            out = layer(both, sizes, batch.packing.order)  # [2, N, P]
            both = out + both if number and self.options.residual else out
            found.append(torch.cat([both[0], both[1][batch.mirror]], 1))  # [N, 2 P]
        layers = torch.stack(found, 1)  # [N, layers, 2 P]
        places = batch.inner.flatten()
        inner = layers.index_select(0, places).masked_fill((places == 0)[:, None, None], 0.0)
        return inner.view(*batch.inner.shape, *layers.shape[1:])  # [B, T, layers, 2 P]

    def read(self, sentences: Sequence[Sequence[str]]) -> list[NDArray[np.float32]]:
        """Return the features of sentences that are given as their words, ``[length, layers, width]`` each.

        These are what :func:`lrn.text.features.cached` keeps.
        """
        batch = self.characters.batch(sentences).to(next(self.buffers()).device)
        found = self(batch).float().cpu().numpy()
        return [row[: len(words)] for row, words in zip(found, sentences, strict=True)]


class _WordEncoder(nn.Module):
    """What characters say of words: filters, highways, projection."""

    table: Tensor  # [characters, E]
    projection: Tensor
    projection_bias: Tensor

    def __init__(self, options: Options, weights: _Weights) -> None:
        super().__init__()
        self.activation = torch.relu if options.activation == "relu" else torch.tanh
        self.register_buffer("table", weights["char_embed", CHARACTERS, options.character_width])
        self.filters, self.highways = options.filters, options.highways
        for number, (width, count) in enumerate(options.filters):
            weight = weights[f"CNN/W_cnn_{number}", 1, width, options.character_width, count]
            self.register_buffer(f"filter_{number}", weight[0].permute(2, 1, 0).contiguous())
            self.register_buffer(f"filter_bias_{number}", weights[f"CNN/b_cnn_{number}", count])
        size = sum(count for _, count in options.filters)
        for number in range(options.highways):
            for part in ("carry", "transform"):
                name = f"CNN_high_{number}"
                self.register_buffer(f"{part}_{number}", weights[f"{name}/W_{part}", size, size])
                self.register_buffer(f"{part}_bias_{number}", weights[f"{name}/b_{part}", size])
        # a model whose filters are as many as its LSTMs read may have been trained without a projection
        self.projected = size != options.projection or "CNN_proj" in weights
        if self.projected:
            self.register_buffer("projection", weights["CNN_proj/W_proj", size, options.projection])
            self.register_buffer("projection_bias", weights["CNN_proj/b_proj", options.projection])

    def forward(self, characters: Tensor) -> Tensor:
        """Return a vector for each word, ``[W, C]`` to ``[W, P]``."""
        return torch.cat([self._words(some) for some in characters.split(WORDS)])

    def _words(self, characters: Tensor) -> Tensor:
        spelt = self.table[characters].transpose(1, 2)  # [W, E, C]
        found = []
        for n in range(len(self.filters)):
            read = F.conv1d(spelt, self.get_buffer(f"filter_{n}"), self.get_buffer(f"filter_bias_{n}"))
            found.append(self.activation(read.amax(2)))  # [W, filters of a kind]
        x = torch.cat(found, 1)  # [W, filters]
        for n in range(self.highways):
            carry, transform = (
                torch.addmm(self.get_buffer(f"{part}_bias_{n}"), x, self.get_buffer(f"{part}_{n}"))
                for part in ("carry", "transform")
            )
            x = torch.lerp(x, transform.relu(), carry.sigmoid())
        return torch.addmm(self.projection_bias, x, self.projection) if self.projected else x


class _Layer(nn.Module):
    """An LSTM with a projection in each direction; both walk side by side.

    The fused order of the gates is input, forget, output, candidate.
    """

    input: Tensor  # [2, P, 4 D]
    hidden: Tensor  # [2, P, 4 D]
    bias: Tensor  # [2, 1, 4 D]
    projection: Tensor  # [2, D, P]

    def __init__(self, options: Options, weights: _Weights, number: int) -> None:
        super().__init__()
        size, cells = options.projection, options.cells
        self.cell_clip, self.projection_clip = options.cell_clip, options.projection_clip
        parts: list[tuple[Tensor, Tensor, Tensor]] = []
        for direction in range(2):
            name = f"RNN_{direction}/RNN/MultiRNNCell/Cell{number}/LSTMCell"
            weight, bias = weights[f"{name}/W_0", 2 * size, 4 * cells], weights[f"{name}/B", 4 * cells]
            weight, bias = _gates(weight), _gates(bias)
            bias[cells : 2 * cells] += FORGET
            parts.append((weight, bias, weights[f"{name}/W_P_0", cells, size]))
        weight, bias, projection = (torch.stack(both) for both in zip(*parts, strict=True))
        self.register_buffer("input", weight[:, :size].contiguous())
        self.register_buffer("hidden", weight[:, size:].contiguous())
        self.register_buffer("bias", bias[:, None])
        self.register_buffer("projection", projection)
        self.states: tuple[Tensor, Tensor] | None = None  # [2, rows, P] and [2, rows, D]

    def forward(self, x: Tensor, sizes: list[int], order: Tensor) -> Tensor:
        """Walk over packed steps, of which there are ``sizes`` rows each, ``[2, N, P]`` to the same."""
        h, c = (state[:, order] for state in self._states(x, sizes[0]))
        out = torch.empty_like(x)
        begin = 0
        for some in _chunks(sizes, 2 * self.bias.shape[2]):
            end = begin + sum(some)
            products = torch.baddbmm(self.bias, x[:, begin:end], self.input)  # [2, steps, 4 D]
            for gates, to in zip(products.split(some, 1), out[:, begin:end].split(some, 1), strict=True):
                self._step(gates, h[:, : gates.shape[1]], c[:, : gates.shape[1]])
                to.copy_(h[:, : gates.shape[1]])
            begin = end
        self._keep(h, c, order)
        return out

    def _step(self, gates: Tensor, h: Tensor, c: Tensor) -> None:
        """Take a step, in place; ``gates`` is the input's part of them, ``[2, rows, 4 D]``."""
        cells = c.shape[2]
        gates = torch.baddbmm(gates, h, self.hidden)
        i, f, o = gates[..., : 3 * cells].sigmoid_().chunk(3, 2)
        c.mul_(f).addcmul_(i, gates[..., 3 * cells :].tanh_())
        if self.cell_clip is not None:
            c.clamp_(-self.cell_clip, self.cell_clip)
        new = torch.bmm(o.mul_(c.tanh()), self.projection)
        if self.projection_clip is not None:
            new.clamp_(-self.projection_clip, self.projection_clip)
        h.copy_(new)

    def _states(self, x: Tensor, rows: int) -> tuple[Tensor, Tensor]:
        """Return the states of so many rows, zeros for those that there were none of before."""
        empty = (
            x.new_zeros(2, rows, self.projection.shape[2]),
            x.new_zeros(2, rows, self.projection.shape[1]),
        )
        if self.states is not None:
            for new, old in zip(empty, self.states, strict=True):
                new[:, : old.shape[1]] = old[:, :rows]
        return empty

    def _keep(self, h: Tensor, c: Tensor, order: Tensor) -> None:
        """Keep the states of rows for the next batch; those of rows that this one had not stay."""
        rows = h.shape[1]
        most = max(rows, self.states[0].shape[1] if self.states else 0)
        kept = self._states(h, most)
        for state, new in zip(kept, (h, c), strict=True):
            state[:, order] = new
        self.states = kept


def _gates(fused: Tensor) -> Tensor:
    """Bring gates from the stored order, input, candidate, forget, output, into ours."""
    i, g, f, o = fused.chunk(4, -1)
    return torch.cat([i, f, o, g], -1)


def _chunks(sizes: list[int], width: int) -> list[list[int]]:
    """Cut steps into chunks whose products are not too large; a chunk has at least one step.

    >>> _chunks([3, 3, 2], 2**24 // 6)
    [[3, 3], [2]]
    """
    chunks: list[list[int]] = []
    room = 0
    for size in sizes:
        if not chunks or size * width > room:
            chunks.append([])
            room = PRODUCTS
        chunks[-1].append(size)
        room -= size * width
    return chunks


# The file of weights ------------------------------------------------------------------------------


class _Weights:
    """Tensors of an HDF5 file, by name and with the shape that they must have."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._h5py = _import("h5py")
        try:
            self._file = self._h5py.File(path, "r")
        except Exception as error:  # whatever a file that is none makes the reader raise
            raise ValueError(f"{path} is damaged, or not HDF5: {_first_line(error)}") from None

    def __enter__(self) -> _Weights:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def __contains__(self, name: str) -> bool:
        return name in self._file

    def __getitem__(self, wanted: tuple[Any, ...]) -> Tensor:
        """Return the tensor of a name, which is followed by its shape, as float32."""
        name, *shape = wanted
        dataset = self._dataset(name)
        if list(dataset.shape) != shape:
            given = list(dataset.shape)
            raise ValueError(f"{self.path}: {name} has shape {given}, but the options want {shape}")
        try:
            values = np.asarray(dataset[()], dtype=np.float32)
        except Exception as error:
            raise ValueError(f"{self.path}: {name} cannot be read: {_first_line(error)}") from None
        if not np.isfinite(values).all():
            raise ValueError(f"{self.path}: {name} has numbers that are not finite")
        return torch.from_numpy(np.ascontiguousarray(values))

    def _dataset(self, name: str) -> Any:
        """Find a dataset of numbers that are in the file itself: no link to another is followed."""
        found = self._file
        for part in name.split("/"):
            try:
                link = found.get(part, getlink=True)
                found = found[part] if isinstance(link, self._h5py.HardLink) else None
            except Exception:  # a name that is not there, or one inside of what is no group
                found = None
            if found is None:
                raise ValueError(f"{self.path} lacks {name}, which the options want")
        if not isinstance(found, self._h5py.Dataset) or found.dtype.kind != "f":
            raise ValueError(f"{self.path}: {name} is not a table of numbers")
        if found.is_virtual or found.external:
            raise ValueError(f"{self.path}: {name} is kept in another file, and none is opened")
        return found


def _first_line(error: Exception) -> str:
    return "".join(str(error).strip().splitlines()[:1]) or type(error).__name__


def _import(package: str) -> Any:
    try:
        return import_module(package)
    except ModuleNotFoundError as error:
        if error.name != package:
            raise
        raise ModuleNotFoundError(f"ELMo needs {package}: {install('elmo')}", name=package) from None

"""The parts of models on padded sequences, for graphs that leave the program: tensors in, tensors out.

They compute what the modules do that are given, which go over packed sequences where they can. Sequences are
padded, ``[B, T, ...]``, with ``lengths [B]`` of at least 1; what stands behind a sequence's end is never
looked at. There is no dropout.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lrn.nn.attentive import AttentiveRecurrence
from lrn.nn.both_ways import BothWays
from lrn.nn.crf import CRF
from lrn.nn.gated_attention import GatedAttention
from lrn.nn.pointer import Pointer
from lrn.nn.pooling import LockedPooling, SelfPooling
from lrn.nn.reset_gru import ResetGRU
from lrn.nn.two_cells import TwoCells
from lrn.nn.word_input import SpellingGRU, SpellingPool, SpellingRNN, WordInput
from lrn.recurrence import Memory, loop
from lrn.units.unit import Unit, UserState, hidden

State = tuple[Tensor, ...]


def real(x: Tensor, lengths: Tensor) -> Tensor:
    """Which steps of padded sequences ``[B, T, ...]`` are real, ``[B, T]``.

    >>> real(torch.zeros(2, 3), torch.tensor([1, 3]))
    tensor([[ True, False, False],
            [ True,  True,  True]])
    """
    return torch.arange(x.shape[1], device=x.device) < lengths.unsqueeze(1)


def turned(x: Tensor, lengths: Tensor) -> Tensor:
    """Every sequence of ``[B, T, I]`` from its end to its beginning; what is behind its end stays there.

    >>> turned(torch.tensor([[[1], [2], [3]], [[4], [5], [6]]]), torch.tensor([3, 2])).squeeze(-1)
    tensor([[3, 2, 1],
            [5, 4, 6]])
    """
    batch, steps = x.shape[:2]
    time = torch.arange(steps, device=x.device)
    places = torch.where(time < lengths.unsqueeze(1), lengths.unsqueeze(1) - 1 - time, time)  # [B, T]
    places = places + steps * torch.arange(batch, device=x.device).unsqueeze(1)
    return x.flatten(0, 1).index_select(0, places.flatten()).view_as(x)


def run(unit: Unit, x: Tensor, lengths: Tensor) -> tuple[Tensor, UserState]:
    """Run a unit over ``[B, T, I]``, batch first or not; returns outputs ``[B, T, D*H]`` and the state."""
    if unit.batch_first:
        return unit(x, lengths=lengths)  # type: ignore[no-any-return]
    output, state = unit(x.transpose(0, 1), lengths=lengths)
    return output.transpose(0, 1), state


def both_ways(layer: BothWays, x: Tensor, lengths: Tensor) -> Tensor:
    """The states of both directions, ``[B, T, 2 * H]``."""
    ahead, _ = run(layer.forwards, x, lengths)
    back, _ = run(layer.backwards, turned(x, lengths), lengths)
    return torch.cat([ahead, turned(back, lengths)], -1)


# Words --------------------------------------------------------------------------------------------


def word_input(module: WordInput, words: Tensor, characters: Tensor, longest: int) -> Tensor:
    """The vectors of words and their spellings: ``[B, T]`` and ``[B, T, C]`` to ``[B, T, width]``.

    ``longest`` is how many characters of a word count; C is at least what the longest word here has of them.
    """
    spelt = spelling(module.spelling, characters.flatten(0, 1), longest)  # [B * T, S]
    return torch.cat([module.word_vectors(words), spelt.unflatten(0, words.shape)], -1)


def spelling(module: nn.Module, characters: Tensor, longest: int) -> Tensor:
    """The vectors of spellings, ``[W, C]`` to ``[W, S]``; of a word without characters they mean nothing."""
    lengths = (characters != 0).sum(1)  # [W]
    if isinstance(module, SpellingPool):
        vectors = module.character_vectors(characters) * (characters != 0).unsqueeze(-1)  # [W, C, E]
        largest = vectors.amax(1)
        # What is behind the last character counts as zeros; only of the longest words there is none of it.
        short = (lengths < longest).unsqueeze(1)
        spelt: Tensor = module.linear(torch.where(short, largest.clamp_min(0), largest))
        return spelt
    if isinstance(module, SpellingRNN):
        _, state = run(module.unit, module.character_vectors(characters), lengths)
        return torch.cat(list(hidden(state)), -1)
    assert isinstance(module, SpellingGRU)
    vectors = module.character_vectors(characters)  # [W, C, E]
    backwards = last_state(module.backwards, turned(vectors, lengths), lengths)
    return torch.cat([last_state(module.forwards, vectors, lengths), backwards], -1)


def last_state(cell: ResetGRU, x: Tensor, lengths: Tensor) -> Tensor:
    """The last state of every sequence of ``[B, T, I]``, from one of zeros, ``[B, H]``."""

    def step(state: State, now: State) -> tuple[State, Tensor]:
        (h,), (projected, on) = state, now
        h = torch.where(on.unsqueeze(1), cell.step(projected, h), h)
        return (h,), h.new_zeros(())

    first = x.new_zeros(x.shape[0], cell.hidden_size)
    steps = cell.project(x).transpose(0, 1), real(x, lengths).transpose(0, 1)
    (last,), _ = loop(step, (first,), steps)
    return last


# Attention ----------------------------------------------------------------------------------------


def pooling(module: SelfPooling | LockedPooling, states: Tensor, mask: Tensor) -> Tensor:
    """The weighted means ``[B, W]`` of states ``[B, T, W]``."""
    scores = module.score(torch.tanh(module.state(states))).squeeze(-1)  # [B, T]
    weights = scores.masked_fill(~mask, -torch.inf).softmax(-1)
    means: Tensor = (weights.unsqueeze(1) @ states).squeeze(1)
    return means


def gated_attention(module: GatedAttention, x: Tensor, memory: Tensor, mask: Tensor) -> Tensor:
    """Sequences ``[B, T, W]`` that look at memories ``[B, S, W]``; returns ``[B, T, 2 * W]``."""
    queries = torch.relu(module.query(x)) / math.sqrt(module.query.out_features)  # [B, T, H]
    keys = torch.relu(module.key(memory))  # [B, S, H]
    scores = (queries @ keys.transpose(1, 2)).masked_fill(~mask.unsqueeze(1), -torch.inf)  # [B, T, S]
    read = torch.cat([x, scores.softmax(-1) @ memory], -1)  # [B, T, 2 * W]
    return read * torch.sigmoid(module.gate(read))


def pointed(module: Pointer, state: Tensor, memory: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """The scores ``[B, T]`` of all places of a memory to begin and to end at, −∞ where there is none."""
    keys = module.memory(memory)  # [B, T, hidden]

    def scores(state: Tensor) -> Tensor:
        asked = module.state(state).unsqueeze(1)
        found: Tensor = module.score(torch.tanh(asked + keys)).squeeze(-1)  # [B, T]
        return found.masked_fill(~mask, -torch.inf)

    first = scores(state)
    found = (first.softmax(-1).unsqueeze(1) @ memory).squeeze(1)  # [B, W]
    return first, scores(module.cell.step(module.cell.project(found), state))


def best_span(first: Tensor, last: Tensor, longest: int) -> tuple[Tensor, Tensor, Tensor]:
    """The span of ``best_spans`` with the greatest sum, whatever the number of steps: ``[B]`` each.

    >>> scores = torch.tensor([[0.1, 0.2, 0.7]]).log()
    >>> start, end, total = best_span(scores.flip(1), scores, longest=2)
    >>> start.item(), end.item(), round(total.exp().item(), 2)
    (0, 1, 0.14)
    """
    steps = first.shape[1]
    behind = F.pad(last, (0, longest), value=-torch.inf)  # [B, T + longest]
    ends = torch.stack([behind[:, width : width + steps] for width in range(longest)], -1)
    sums = (first.unsqueeze(-1) + ends).flatten(1)  # [B, T * longest]
    best, place = sums.max(1)
    start = place // longest
    return start, start + place % longest, best


# Walks --------------------------------------------------------------------------------------------


def two_cells(layer: TwoCells, x: Tensor, y: Tensor, lengths: Tensor) -> tuple[Tensor, UserState]:
    """Walk over ``[B, T, I]`` and ``[B, T, J]`` from zeros; returns outputs ``[B, T, H]`` and last states."""
    low, high = (
        layer.lower.project(x.transpose(0, 1)),
        layer.upper.project(y.transpose(0, 1)),
    )  # [T, B, gates * H]
    assert isinstance(low, Tensor)
    assert isinstance(high, Tensor)
    if layer.walks_at_once:
        mixed = torch.stack([low, high], 1).flatten(0, 1)  # [2 * T, B, gates * H]
        output, state = layer.lower.recur(mixed, lengths=2 * lengths)
        assert isinstance(output, Tensor)
        return output.unflatten(0, (-1, 2))[:, 1].transpose(0, 1), state

    def step(state: UserState, now: State) -> tuple[UserState, Tensor]:
        for cell, projected in zip((layer.lower, layer.upper), now, strict=True):
            _, state = cell.recur(projected.unsqueeze(0), state)
        return state, hidden(state)[0]

    empty = low.new_zeros(1, low.shape[1], layer.lower.hidden_size)
    first = (empty, empty) if layer.lower.parts == 2 else empty
    return _walk(step, (low, high), real(x, lengths), first)


def attentive(
    walk: AttentiveRecurrence, x: Tensor, lengths: Tensor, memory: Memory, state: UserState
) -> Tensor:
    """Walk over ``[B, T, I]`` with attention to a padded memory; returns the outputs, ``[B, T, H]``."""
    projected = walk.lower.project(x.transpose(0, 1))  # [T, B, gates * H]
    assert isinstance(projected, Tensor)

    def step(state: UserState, now: State) -> tuple[UserState, Tensor]:
        state, _, _ = walk.step(now[0], state, memory)
        return state, hidden(state)[0]

    return _walk(step, (projected,), real(x, lengths), state)[0]


def _walk(
    step: Callable[[UserState, State], tuple[UserState, Tensor]],
    steps: State,
    mask: Tensor,
    state: UserState,
) -> tuple[Tensor, UserState]:
    """Walk over ``[T, B, ...]``; returns outputs ``[B, T, H]`` and the states after each sequence's end."""
    pair = isinstance(state, tuple)

    def kept(state: State, now: State) -> tuple[State, Tensor]:
        *given, on = now
        new, output = step((state[0], state[1]) if pair else state[0], tuple(given))
        after = new if isinstance(new, tuple) else (new,)
        return tuple(torch.where(on.unsqueeze(1), n, s) for n, s in zip(after, state, strict=True)), output

    first = state if isinstance(state, tuple) else (state,)
    last, outputs = loop(kept, first, (*steps, mask.transpose(0, 1)))
    return outputs.transpose(0, 1), (last[0], last[1]) if pair else last[0]


def viterbi(crf: CRF, emissions: Tensor, mask: Tensor) -> Tensor:
    """The best tag sequence of each sentence, ``[B, T]``, with 0 beyond its end: ``crf.decode``."""
    start, transition, end = crf._scores()
    time = torch.arange(emissions.shape[1], device=emissions.device)
    stay = torch.arange(crf.tags, device=emissions.device)

    def ahead(state: State, now: State) -> tuple[State, Tensor]:
        (scores,), (emission, on, is_first) = state, now
        best, pointer = (scores.unsqueeze(2) + transition).max(1)  # [B, from, to] -> [B, to]
        best, on = torch.where(is_first, start, best), on.unsqueeze(1)
        return (torch.where(on, best + emission, scores),), torch.where(on, pointer, stay)

    def back(state: State, now: State) -> tuple[State, Tensor]:
        (tag,), (pointer,) = state, now
        return (pointer.gather(1, tag.unsqueeze(1)).squeeze(1),), tag

    nothing = torch.zeros_like(emissions[:, 0])
    steps = emissions.transpose(0, 1), mask.transpose(0, 1), time == 0
    (scores,), pointers = loop(ahead, (nothing,), steps)  # [B, tags], [T, B, tags]
    _, tags = loop(back, ((scores + end).argmax(1),), (pointers.flip(0),))  # [T, B], from the end
    return tags.flip(0).transpose(0, 1).masked_fill(~mask, 0)

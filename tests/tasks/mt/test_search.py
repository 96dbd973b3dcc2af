"""Beam search against greedy search, against everything there is, and against teacher forcing."""

import itertools

import numpy as np
import pytest
import torch
from tasks.mt.cases import model_of, sentences

from lrn.names import UNITS
from lrn.recurrence import engine
from lrn.tasks.mt.data import pair_batch, source_batch
from lrn.tasks.mt.search import FURTHER, Search, _Sentence, beam_search, sample

SOURCES = (3, 1, 5, 2, 7, 4)
END, FIRST = 2, 3  # pieces: the end, and the first that is not special


@torch.no_grad()
def speaker(unit="gru", **own):
    """A model whose translations are of many lengths."""
    model = model_of(unit, **own)
    model.target.weight.mul_(3)
    return model


@torch.no_grad()
def forced(model, source, pieces):
    """The logarithm of a translation's probability, all of it read at once."""
    batch = pair_batch([source], [np.array(pieces, np.int32)])
    chosen = model(batch).log_softmax(-1).gather(1, batch.labels[:, None])
    return float(chosen.sum())


@torch.no_grad()
@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("beam", [1, 4])
def test_scores_are_those_of_teacher_forcing(unit, beam):
    """Translations are kept short: wild weights make more of a rounding at every step."""
    model, sources = speaker(unit), sentences(*SOURCES)
    search = Search(beam, beam, further=5)
    for source, found in zip(sources, beam_search(model, source_batch(sources), search), strict=True):
        assert len(found) == beam
        for hypothesis in found:
            expected = forced(model, source, hypothesis.pieces)
            assert hypothesis.logarithm == pytest.approx(expected, rel=0, abs=1e-11)
            norm = ((5 + len(hypothesis.pieces) + 1) / 6) ** 0.6
            assert hypothesis.score == pytest.approx(expected / norm, rel=0, abs=1e-11)
        assert [h.score for h in found] == sorted((h.score for h in found), reverse=True)


@torch.no_grad()
def greedy(model, source, further=FURTHER):
    """The best next piece, again and again."""
    pieces = []
    while len(pieces) < len(source) + 1 + further - 1:
        scores = model(pair_batch([source], [np.array(pieces, np.int32)]))[-1]
        scores[:END] = -torch.inf
        if not pieces:
            scores[END] = -torch.inf
        best = int(scores.argmax())
        if best == END:
            break
        pieces.append(best)
    return tuple(pieces)


@torch.no_grad()
@pytest.mark.parametrize("seed", range(3))
def test_a_beam_of_one_is_greedy(seed):
    model, sources = speaker(), sentences(*SOURCES, seed=seed)
    found = beam_search(model, source_batch(sources), Search(beam=1, further=6))
    assert [best.pieces for (best,) in found] == [greedy(model, source, 6) for source in sources]


def everything(model, source, search, types):
    """The best of all translations there are."""
    longest = len(source) + 1 + search.further
    found = []
    for length in range(1, longest):
        for pieces in itertools.product(range(FIRST, types), repeat=length):
            logarithm = forced(model, source, pieces)
            found.append((logarithm / search.norm(length + 1), pieces))
    return sorted(found, reverse=True)


@pytest.mark.parametrize("length_penalty", [0.0, 0.6, 2.0])
@pytest.mark.parametrize("seed", range(3))
def test_a_wide_beam_finds_the_best_of_all(seed, length_penalty):
    model, sources = speaker(targets=6), sentences(1, 2, types=6, seed=seed)
    search = Search(beam=400, nbest=3, length_penalty=length_penalty, further=2)
    for source, found in zip(sources, beam_search(model, source_batch(sources), search), strict=True):
        best = everything(model, source, search, 6)[:3]
        assert [hypothesis.pieces for hypothesis in found] == [pieces for _, pieces in best]
        assert [hypothesis.score for hypothesis in found] == pytest.approx([score for score, _ in best])


@torch.no_grad()
def test_a_wider_beam_is_not_worse():
    """Not so always, but with these weights."""
    model, sources = speaker(), sentences(*SOURCES)
    scores = [
        [best.score for (best,) in beam_search(model, source_batch(sources), Search(beam))] for beam in (1, 8)
    ]
    assert all(wide >= narrow for narrow, wide in zip(*scores, strict=True))
    assert scores[0] != scores[1]


@torch.no_grad()
def test_a_sentence_is_translated_the_same_in_any_batch():
    model, sources = speaker(), sentences(*SOURCES)
    together = beam_search(model, source_batch(sources), Search(nbest=4))
    for source, found in zip(sources, together, strict=True):
        (alone,) = beam_search(model, source_batch([source]), Search(nbest=4))
        assert [h.pieces for h in alone] == [h.pieces for h in found]


@torch.no_grad()
def test_the_best_do_not_depend_on_how_many_are_asked_for():
    """Those that cannot win leave early, and nothing else changes."""
    model, sources = speaker(), sentences(*SOURCES)
    one, all_of_them = (beam_search(model, source_batch(sources), Search(nbest=n)) for n in (1, 4))
    assert [found[0] for found in all_of_them] == [found[0] for found in one]


@torch.no_grad()
@pytest.mark.parametrize("beam", [1, 4])
def test_one_that_would_never_end_is_ended(beam):
    model = speaker()
    never = model.scores

    def unwilling(said):
        scores = never(said)
        scores[..., END] = -1e4
        return scores

    model.scores = unwilling
    for source, (best,) in zip(
        sentences(*SOURCES), beam_search(model, source_batch(sentences(*SOURCES)), Search(beam)), strict=True
    ):
        assert len(best.pieces) == len(source) + FURTHER


@torch.no_grad()
def test_nothing_but_an_end_and_a_very_long_sentence():
    """An empty source can be translated, though to nothing that makes sense; a thousand words end."""
    model = speaker()
    (empty,) = beam_search(model, source_batch(sentences(0)), Search())
    assert 0 < len(empty[0].pieces) <= 1 + FURTHER
    (long,) = beam_search(model, source_batch(sentences(1000)), Search(beam=2))
    assert 0 < len(long[0].pieces) <= 1001 + FURTHER


@torch.no_grad()
def test_what_is_never_said():
    """Padding, unknown words, nothing at all."""
    model = speaker()
    never = model.scores

    def eager(said):
        scores = never(said)
        scores[..., :FIRST] += 1e3
        return scores

    model.scores = eager
    for (best,) in beam_search(model, source_batch(sentences(*SOURCES)), Search()):
        assert len(best.pieces) == 1
        assert best.pieces[0] >= FIRST


@torch.no_grad()
def test_states_stay_where_nothing_moves(monkeypatch):
    """With a beam of one, no state is copied until a sentence is over."""
    model, moved = speaker(), []
    select = torch.Tensor.index_select
    monkeypatch.setattr(
        "lrn.tasks.mt.search._select", lambda s, places: moved.append(1) or select(s, 1, places)
    )
    beam_search(model, source_batch(sentences(4)), Search(beam=1))
    assert not moved


@torch.no_grad()
@pytest.mark.parametrize("name", ["torch"])
def test_on_another_engine(name):
    model, sources = speaker(), sentences(*SOURCES)
    expected = beam_search(model, source_batch(sources), Search(nbest=4))
    with engine(name):
        found = beam_search(model, source_batch(sources), Search(nbest=4))
    assert [[h.pieces for h in row] for row in found] == [[h.pieces for h in row] for row in expected]


# One sentence ------------------------------------------------------------------------------------


def test_a_hypothesis_that_ends_gives_up_its_place():
    sentence = _Sentence(Search(beam=3, nbest=3), limit=9)
    assert sentence.extend([(-1.0, 0, 5), (-2.0, 0, 6), (-3.0, 0, 7), (-4.0, 0, 8)]) == [
        (0, 5),
        (0, 6),
        (0, 7),
    ]
    assert sentence.extend([(-5.0, 1, 3), (-4.0, 0, END), (-6.0, 2, 3), (-7.0, 0, 4)]) == [(1, 3), (2, 3)]
    assert [found.pieces for found in sentence.over] == [(5,)]
    assert sentence.extend([(-8.0, 0, 3), (-8.5, 1, 4), (-9.0, 0, 4)]) == [(0, 3), (1, 4)]
    assert [pieces for _, pieces in sentence.open] == [(6, 3, 3), (7, 3, 4)]


@pytest.mark.parametrize(("so_far", "goes_on"), [(-3.9, True), (-4.1, False)])
def test_what_can_still_win_is_followed(so_far, goes_on):
    """At best nothing more is lost until the limit, where the norm is (5 + 7) / 6 = 2."""
    sentence = _Sentence(Search(beam=2, length_penalty=1.0), limit=7)
    sentence.extend([(-1.0, 0, 5), (so_far, 0, 6)])
    chosen = sentence.extend([(-2.0 * 7 / 6, 0, END), (so_far, 1, 3)])  # a score of -2
    assert sentence.over[0].score == pytest.approx(-2)
    assert bool(chosen) is goes_on


# At random ----------------------------------------------------------------------------------------


@torch.no_grad()
def test_drawn_translations():
    model, sources = speaker(), sentences(*SOURCES)
    batch, search = source_batch(sources), Search(nbest=3)
    found = sample(model, batch, search, 1.0, seed=1)
    for source, drawn in zip(sources, found, strict=True):
        assert len(drawn) == 3
        for hypothesis in drawn:
            expected = forced(model, source, hypothesis.pieces)
            assert hypothesis.logarithm == pytest.approx(expected, rel=0, abs=1e-9)
            assert 0 < len(hypothesis.pieces) <= len(source) + FURTHER
    assert found == sample(model, batch, search, 1.0, seed=1)
    assert found != sample(model, batch, search, 1.0, seed=2)


@torch.no_grad()
def test_near_zero_the_likeliest_is_drawn():
    model, sources = speaker(), sentences(*SOURCES)
    drawn = sample(model, source_batch(sources), Search(further=6), 1e-6, seed=1)
    assert [best.pieces for (best,) in drawn] == [greedy(model, source, 6) for source in sources]


@torch.no_grad()
def test_pieces_are_drawn_as_often_as_the_model_says():
    model, (source,) = model_of(spread=1.0), sentences(2)
    batch = source_batch([source] * 2000)
    drawn = [row[0].pieces[0] for row in sample(model, batch, Search(further=1), 1.0, seed=5)]
    scores = model(pair_batch([source], [np.zeros(0, np.int32)]))[0]
    shares = scores[FIRST:].softmax(0)
    found = torch.bincount(torch.tensor(drawn), minlength=9)[FIRST:] / 2000
    torch.testing.assert_close(found.double(), shares, rtol=0, atol=0.035)

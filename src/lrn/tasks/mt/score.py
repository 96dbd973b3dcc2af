"""How good translations are: BLEU and chrF by sacrebleu, and how many are exactly right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

Words = Sequence[Sequence[str]]


@dataclass(frozen=True)
class Figures:
    """Figures by name, in percent, and how sacrebleu describes the way they were computed."""

    values: dict[str, float]
    signatures: dict[str, str]


def judge(found: Sequence[str], right: Sequence[str], found_words: Words, right_words: Words) -> Figures:
    """Compare translations with those of people, both as plain text and cut into words.

    ``bleu`` is that of plain text, which sacrebleu cuts into words by its rule 13a; ``bleu_tok`` that of the
    words as the model has them, which papers of the time report; ``_lc`` are the same in lower case. ``chrf``
    compares characters; ``exact`` says how many translations are the same as plain text.

    >>> figures = judge(["Das ist gut."], ["Das ist gut."], [["Das", "ist", "gut", "."]], [["Das", "ist"]])
    >>> round(figures.values["bleu"]), round(figures.values["exact"]), figures.values["bleu_tok"] < 100
    (100, 100, True)
    """
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF

    words, their_words = ([" ".join(row) for row in rows] for rows in (found_words, right_words))
    metrics = {
        "bleu": (BLEU(tokenize="13a"), found, right),
        "bleu_lc": (BLEU(tokenize="13a", lowercase=True), found, right),
        "bleu_tok": (BLEU(tokenize="none", force=True), words, their_words),
        "bleu_tok_lc": (BLEU(tokenize="none", lowercase=True, force=True), words, their_words),
        "chrf": (CHRF(), found, right),
    }
    values, signatures = {}, {}
    for name, (metric, ours, theirs) in metrics.items():
        values[name] = float(metric.corpus_score(list(ours), [list(theirs)]).score)
        signatures[name] = str(metric.get_signature())
    same = sum(ours.strip() == theirs.strip() for ours, theirs in zip(found, right, strict=True))
    values["exact"] = 100 * same / len(found)
    return Figures(values, signatures)

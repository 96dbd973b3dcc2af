"""What came out of a comparison, in one sentence: what speaks against LRN is told like what speaks for it."""

from __future__ import annotations

import math

from lrn.report.results import Comparison, UnitResult, spoken

RULE = (
    "A difference counts as larger than the seeds' spread if the means are further apart than the pooled "
    "standard deviation of the two units' scores."
)


def sentence(results: Comparison) -> str:
    """Which unit is best, how LRN stands to it, whether the seeds' spread explains that, and how fast LRN is.

    Where LRN is not compared, it is about the first unit instead.
    """
    clauses = [_quality(results), _speed(results)]
    return "; ".join(clause for clause in clauses if clause) + "."


def pooled_deviation(a: UnitResult, b: UnitResult) -> float | None:
    """The standard deviation of two units' scores around their own means; None unless each has several."""
    if a.deviation is None or b.deviation is None:
        return None
    free = len(a.scores) - 1, len(b.scores) - 1
    squares = free[0] * a.deviation**2 + free[1] * b.deviation**2
    return math.sqrt(squares / sum(free))


def _quality(results: Comparison) -> str:
    subject, metric = results.standard, spoken(results.metric)
    sign = 1 if results.lower_is_better else -1
    finite = [unit for unit, row in results.units.items() if math.isfinite(row.mean)]
    order = sorted(finite, key=lambda unit: sign * results.units[unit].mean)
    if not order:
        return f"No unit came to a finite {metric}"
    best = order[0]
    first = f"{best} has the best {metric}, {results.units[best].mean:.2f}"
    if len(results.units) == 1:
        alone = "there is no other unit to compare it with"
        return f"{best} has a {metric} of {results.units[best].mean:.2f}, and {alone}"
    if subject not in finite:
        return f"{first}, and {subject} came to no finite one"
    if subject == best:
        if len(order) == 1:
            return f"{first}, and no other unit came to a finite one"
        return f"{first}, and {_apart(results, subject, order[1], 'the next is')}"
    return f"{first}, and {_apart(results, best, subject, '')}"


def _apart(results: Comparison, better: str, worse: str, before: str) -> str:
    """How far a unit is from a better one, and what that is worth."""
    a, b = results.units[better], results.units[worse]
    difference = abs(a.mean - b.mean)
    stands = f"{before} {worse} with {b.mean:.2f}" if before else f"{worse} has {b.mean:.2f}"
    if difference == 0:
        return f"{stands}, the same"
    spread = pooled_deviation(a, b)
    if spread is None:
        worth = "one seed cannot tell whether that is more than chance"
    elif difference > spread:
        worth = f"more than the seeds' spread of {spread:.2f}"
    else:
        worth = f"not more than the seeds' spread of {spread:.2f}"
    return f"{stands}, worse by {difference:.2f}: {worth}"


def _speed(results: Comparison) -> str:
    """The times of LSTM and GRU in LRN's; of all others where neither is compared."""
    subject = results.standard
    others = [unit for unit in results.units if unit != subject]
    told = [unit for unit in ("lstm", "gru") if unit in others] or others
    if not told:
        return ""
    ratios = {unit: results.ratios[unit] for unit in told}
    parts = [
        f"{ratio:.2f} times as long with {unit} ({_judged(subject, ratio)})" for unit, ratio in ratios.items()
    ]
    listed = " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)
    return f"compared with {subject}, a training step takes {listed}"


def _judged(subject: str, ratio: float) -> str:
    if f"{ratio:.2f}" == "1.00":
        return "the same"
    return f"{subject} is {'faster' if ratio > 1 else 'slower'}"

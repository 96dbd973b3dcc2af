"""A comparison's results, made up: a small one with round numbers, and one like those that people get."""

import math
from dataclasses import asdict, replace

from lrn.report.results import Comparison, Drawing, Timing, UnitResult
from lrn.tasks.lm.config import PRESETS, LMConfig

# Units with their parameters, perplexity after training and at what seconds a step; some nearly the same.
SIX = {
    "lstm": (1_702_100, 119.87, 0.0642),
    "gru": (1_531_600, 148.05, 0.0631),
    "sru": (1_343_100, 102.52, 0.0254),
    "atr": (1_191_100, 121.33, 0.0249),
    "lrn": (1_261_600, 118.59, 0.0238),
    "olrn": (1_261_600, 119.02, 0.0241),
}

MEMORY = Drawing(
    "What is left of each word as the sentence goes on; darker is more.",
    '<svg viewBox="0 0 900 330" role="img">'
    + "".join(
        f'<rect x="{90 + 32 * t}" y="{10 + 24 * k}" width="30" height="22" fill="#d55e00" '
        f'opacity="{0.8 ** (t - k):.2f}"/>'
        for k in range(12)
        for t in range(k, 25)
    )
    + "".join(f'<text x="80" y="{26 + 24 * k}" text-anchor="end">word {k}</text>' for k in range(12))
    + "</svg>",
)


def results(names=("lstm", "lrn"), seeds=(1, 2), **more):
    units = {
        unit: UnitResult(
            parameters=1000 * (n + 1) + 234,
            scores=(100.0 + n, 102.0 + n)[: len(seeds)],
            curves=tuple(((1, 150.0 + n), (2, 120.0 + n)) for _ in seeds),
            time=Timing(0.01 / (n + 1), 0.009, 0.02, 9),
        )
        for n, unit in enumerate(names)
    }
    found = Comparison(
        task="lm",
        metric="test_perplexity",
        lower_is_better=True,
        curve="valid_perplexity",
        units=units,
        seeds=tuple(seeds),
        printed={},
        config={"preset": "quick", "lr": 0.004},
        data={"source": "built-in", "note": "<b>&"},
        versions={"python": "3.11"},
        command="lrn compare lm",
    )
    return replace(found, **more)


def with_unit(found, unit, **more):
    """The same with other values for a unit."""
    return replace(found, units=found.units | {unit: replace(found.units[unit], **more)})


def realistic(epochs=10, seeds=(1, 2), **more):
    """Six units, all settings of the language model, and a command with long paths."""
    config = asdict(
        LMConfig(**PRESETS["small"] | {"preset": "small", "epochs": epochs, "data": "/home/someone/data/ptb"})
    )
    for name in ("unit", "seed", "out", "overwrite"):
        config.pop(name)
    return results(
        units={unit: _row(n, *SIX[unit], epochs, seeds) for n, unit in enumerate(SIX)},
        seeds=tuple(seeds),
        config=config,
        data={
            "source": "/home/someone/data/ptb",
            "tokens": {"train": 929_589, "valid": 73_760, "test": 82_430},
            "types": 10_000,
            "fingerprint": "fd2c040dd58df22a2c94ac7f30c555f8007d687bf9c483d1493ffa50e4af8f71",
        },
        versions={
            "python": "3.11.7",
            "platform": "Linux-6.18.44-x86_64-with-glibc2.36",
            "cores": "2",
            "lrn": "0.1.0",
            "torch": "2.13.0+cpu",
            "lightning": "2.6.6",
            "numpy": "2.4.6",
        },
        command="lrn compare lm --preset small --epochs 10 --seeds 1,2 --units lstm,gru,sru,atr,lrn,olrn "
        "--data /home/someone/data/ptb --out comparisons/lm-small-ptb",
        **more,
    )


def _row(n, parameters, perplexity, time, epochs, seeds):
    scores = [perplexity * (1 + 0.006 * (place - (len(seeds) - 1) / 2)) for place in range(len(seeds))]
    curves = tuple(
        tuple(
            (e, score * 1.05 + (400 - 30 * n) * math.exp(-e / (1.8 + seed / 3))) for e in range(1, epochs + 1)
        )
        for seed, score in enumerate(scores)
    )
    return UnitResult(parameters, tuple(scores), curves, Timing(time, time * 0.97, time * 1.06, 87))

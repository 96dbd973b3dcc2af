"""A comparison's results, made up."""


def results(units=("lstm", "lrn"), seeds=(1, 2), **more):
    rows = {
        unit: {
            "parameters": 1000 * (n + 1) + 234,
            "figures": [100.0 + n, 102.0 + n],
            "mean": 101.0 + n,
            "deviation": 1.41 if len(seeds) > 1 else None,
            "curves": [[[1, 150.0 + n], [2, 120.0 + n]] for _ in seeds],
        }
        for n, unit in enumerate(units)
    }
    return {
        "task": "lm",
        "metric": "test_perplexity",
        "lower_is_better": True,
        "curve": "valid_perplexity",
        "units": rows,
        "seeds": list(seeds),
        "config": {"preset": "quick", "lr": 0.004},
        "data": {"source": "built-in", "note": "<b>&"},
        "versions": {"python": "3.11"},
        "command": "lrn compare lm",
        "times": {
            unit: {"median": 0.01 / (n + 1), "low": 0.009, "high": 0.02, "rounds": 9}
            for n, unit in enumerate(units)
        },
        **more,
    }

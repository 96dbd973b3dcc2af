"""Whoever adds a unit's name is told what else it needs."""

import ast
import re
from pathlib import Path

import pytest
from helpers import VARIANTS
from units import test_compile, test_parameters
from units.test_known_values import KNOWN, STEPS

import lrn
from lrn import units as all_units
from lrn.analysis.gates import OPENERS
from lrn.names import UNITS
from lrn.recurrence import CELLS, cells
from lrn.recurrence.slopes import SLOPES
from lrn.report import palette
from lrn.training.config import TrainConfig
from lrn.units import CLASSES

ROOT = Path(__file__).parents[2]


def typed_names() -> set[str]:
    """What ``lrn/__init__.py`` imports where only a type checker looks."""
    tree = ast.parse((ROOT / "src/lrn/__init__.py").read_text())
    hidden = next(node for node in tree.body if isinstance(node, ast.If))
    return {alias.name for node in hidden.body if isinstance(node, ast.ImportFrom) for alias in node.names}


def forgotten(name: str) -> list[str]:
    """What is missing of a unit, and where it belongs."""
    steps = [cell for cell in (*CELLS, *cells.MATRIX_CELLS) if cell.partition("_")[0] == name]
    kernels = (ROOT / "src/lrn/recurrence/cpu/kernels.cpp").read_text()
    triton = (ROOT / "src/lrn/recurrence/triton/cells.py").read_text()
    variants = [variant for variant, (unit, _) in VARIANTS.items() if unit == name]
    elementwise = [step for step in steps if step in CELLS]
    tables = (test_parameters.COUNTS, test_parameters.BIASES, test_parameters.NORMS)
    needed = {
        "its class: units/, listed in CLASSES of units/__init__.py": name in CLASSES,
        "its class in __all__ of units/__init__.py": name.upper() in all_units.__all__,
        "its class in __all__ of lrn/__init__.py": name.upper() in lrn.__all__,
        "its class in the import for type checkers in lrn/__init__.py": name.upper() in typed_names(),
        "its step: CELLS or MATRIX_CELLS in recurrence/cells.py": bool(steps),
        "its C++ struct: cpu/cells.h, listed in LRN_CELLS of cpu/kernels.cpp": all(
            f"(what, {step}," in kernels for step in elementwise
        )
        and bool(steps),
        "its functions for Triton: STEPS in recurrence/triton/cells.py": bool(steps)
        and (not elementwise or f'"{name}": Steps(' in triton),
        "its gradient: SLOPES in recurrence/slopes.py": bool(steps) and (not elementwise or name in SLOPES),
        "its gates for the analysis: OPENERS in analysis/gates.py": bool(steps)
        and (not elementwise or CLASSES.get(name) in OPENERS),
        "its variants: tests/helpers.py": bool(variants),
        "its step by hand: STEPS in tests/units/test_known_values.py": bool(variants)
        and set(variants) <= set(STEPS),
        "its known values: KNOWN in tests/units/test_known_values.py": bool(variants)
        and set(variants) <= set(KNOWN),
        "its counts: the three tables of tests/units/test_parameters.py": all(name in t for t in tables),
        "its options: TABLE in tests/units/test_compile.py": name in test_compile.TABLE,
        "its name in the help of --unit: training/config.py": bool(
            re.search(rf"\b{name}\b", TrainConfig.__doc__ or "")
        ),
        "its colour: report/palette.py": name in palette.COLOURS,
        "its line in docs/units.md": f"| `{name}` |" in (ROOT / "docs/units.md").read_text(),
    }
    return [what for what, there in needed.items() if not there]


@pytest.mark.parametrize("name", UNITS)
def test_nothing_is_forgotten(name):
    missing = forgotten(name)
    if missing:
        pytest.fail(f"{name} lacks\n  " + "\n  ".join(missing), pytrace=False)


def test_everything_would_be_named():
    """Or the test above shows nothing."""
    assert len(forgotten("xrn")) == 17


def test_the_facts_stand_on_the_class():
    for name, cls in CLASSES.items():
        assert cls.forget_gate is None or 0 <= cls.forget_gate < cls.gates, name
        assert cls.input_gate is None or 0 <= cls.input_gate < cls.gates, name
        assert cls.input_gate is None or cls.forget_gate is not None, name
        assert bool(cls.activations) == ("activation" in lrn.make_unit(name, 2, 2).__dict__), name

"""The lists of names agree with what there is."""

import subprocess
import sys
from pathlib import Path

import lrn
from lrn import names, units


def test_units():
    assert set(names.UNITS) == {kind.__name__.lower() for kind in concrete(units.Unit)}
    assert lrn.UNITS is names.UNITS
    for name in names.UNITS:
        assert type(lrn.make_unit(name, 2, 3)).__name__ == name.upper()


def concrete(kind):
    """The public classes below a class, apart from what users make theirs of."""
    for below in set(kind.__subclasses__()) - {units.CustomUnit}:
        if below.__name__ in units.__all__:
            yield below
        yield from concrete(below)


def test_tasks():
    folder = Path(lrn.__file__).parent / "tasks"
    assert set(names.TASKS) == {path.parent.name for path in folder.glob("*/config.py")}


def test_engines():
    assert set(lrn.engines()) <= set(names.ENGINES)
    assert lrn.engines()[-1] == names.ENGINES[-1] == "torch"


def test_compared():
    assert set(names.COMPARED.split(",")) < set(names.UNITS)


def test_names_and_checks_need_no_torch():
    code = "import sys, lrn.names, lrn.checks; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)

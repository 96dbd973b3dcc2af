"""The library for programs without lrn's Python: the same ops, and LSTM and GRU in C++.

What it computes is compared with the definition. It runs in a process that has torch and never imports lrn.
"""

import runpy
from itertools import product
from pathlib import Path

import pytest
import torch
from recurrence.processes import python

import lrn
from lrn.recurrence import cells, matrix, schemas
from lrn.recurrence.rows import Rows

TOLERANCES = {torch.float64: 1e-12, torch.float32: 2e-6, torch.bfloat16: 2e-2}
LAYOUTS = ("full", "lengths", "reset", "packed", "none")
FUSED = ("lstm", "gru")


def alone(code, library, timeout=300):
    done = python(f"import torch\ntorch.ops.load_library({str(library)!r})\n{code}", timeout=timeout)
    assert done.returncode == 0, done.stderr
    return done


def rows_of(layout, batch_first):
    """How four rows lie, over six steps at the most, and the leading dimensions of their tokens."""
    steps, batch = (0 if layout == "none" else 6), 4
    leading = (batch, steps) if batch_first else (steps, batch)
    rows = Rows(batch, batch_first)
    if layout in ("lengths", "reset"):
        rows.lengths = torch.tensor([6, 0, 3, 1])
        rows.host_lengths = rows.lengths.tolist()
    if layout == "reset":
        rows.reset = torch.rand(leading) > 0.6
    if layout == "packed":
        rows.batch_sizes, leading = torch.tensor([4, 4, 2, 1]), (11,)
    return rows, leading


def walks():
    """Every cell, norm, direction and layout; each in one of the types, batch orders and widths."""
    for n, (cell, norm, direction, layout) in enumerate(
        product(cells.MATRIX_CELLS, (None, *cells.NORMS), cells.REVERSE, LAYOUTS)
    ):
        dtype = list(TOLERANCES)[n % 3 if n % 7 else 2]
        rows, leading = rows_of(layout, batch_first=layout != "packed" and n % 2 == 1)
        kind, hidden = cells.MATRIX_CELLS[cell], (1, 3, 8, 33)[n % 4]
        directions, width = len(cells.REVERSE[direction]), kind.gates * hidden

        def numbers(*shape, dtype=dtype):
            return torch.randn(*shape, dtype=dtype)

        x, state = numbers(*leading, directions * width), numbers(kind.parts, directions, 4, hidden)
        weight = numbers(directions, width, hidden) / hidden**0.5
        bias = numbers(directions, width) if n % 5 else None
        scale = numbers(directions, width) if norm else None
        layout = (rows.lengths, rows.batch_sizes, rows.reset)
        given = (x, state, weight, bias, scale, *layout, cell, norm, direction, rows.batch_first)
        # Half types are computed in float, so that is what they are compared with.
        wide = [t.float() if dtype == torch.bfloat16 and t is not None else t for t in given[:5]]
        expected = matrix.definition(cell, *wide, rows, direction, norm)
        yield "walk", given, expected, TOLERANCES[dtype]


def fused_layers():
    """Whole layers of LSTM and GRU, against torch's own kernels."""
    for n, (cell, directions, layout) in enumerate(product(FUSED, (1, 2), LAYOUTS)):
        if layout == "reset":
            continue
        rows, leading = rows_of(layout, batch_first=layout != "packed" and n % 2 == 1)
        kind, hidden = cells.MATRIX_CELLS[cell], (5, 16)[n % 2]
        x = torch.randn(*leading, 7, dtype=torch.float64).transpose(-1, -2).contiguous().transpose(-1, -2)
        state = torch.randn(kind.parts, directions, 4, hidden, dtype=torch.float64)
        ih, hh = (
            torch.randn(directions, kind.gates * hidden, i, dtype=torch.float64) / 3 for i in (7, hidden)
        )
        bias = torch.randn(directions, kind.gates * hidden, dtype=torch.float64) if n % 3 else None
        second = torch.randn_like(bias) if bias is not None and n % 2 else None
        given = (x, state, ih, hh, bias, second, rows.lengths, rows.batch_sizes, cell, rows.batch_first)
        biases = ([None] * directions if each is None else each for each in (bias, second))
        weights = list(zip(ih, hh, *biases, strict=True))
        yield "fused", given, matrix.fused_layer(cell, x, state, weights, rows, training=False), 1e-12


def test_walks_and_layers(tmp_path):
    """All that the ops walk and fused can be asked, in one process without lrn."""
    torch.manual_seed(0)
    cases = [*walks(), *fused_layers()]
    assert {case[0] for case in cases} == {"walk", "fused"}
    torch.save(cases, tmp_path / "cases.pt")
    code = f"""
import sys
cases = torch.load({str(tmp_path / "cases.pt")!r})
for op, given, expected, tolerance in cases:
    results = getattr(torch.ops.lrn, op)(*given)
    for result, wanted in zip(results, expected, strict=True):
        assert (result.dtype, result.shape) == (given[0].dtype, wanted.shape), given
        assert result.is_contiguous(), given
        torch.testing.assert_close(result.to(wanted.dtype), wanted, rtol=tolerance, atol=tolerance)
assert "lrn" not in sys.modules
print(len(cases))
"""
    assert int(alone(code, lrn.library_path()).stdout) == len(cases) > 150


def test_the_list_of_schemas_is_one(tmp_path):
    """The library has exactly the schemas of Python, in the same words."""
    listed = Path(schemas.__file__)
    code = f"""
import runpy
for schema in runpy.run_path({str(listed)!r})["SCHEMAS"]:
    name, _, overload = schema.split("(")[0].partition(".")
    op = getattr(getattr(torch.ops.lrn, name), overload or "default")
    assert str(op._schema) == f"lrn::{{schema}}", op._schema
print([name for name in torch._C._dispatch_get_all_op_names() if name.startswith("lrn::")])
"""
    names = {"lrn::" + schema.split("(")[0] for schema in runpy.run_path(str(listed))["SCHEMAS"]}
    assert set(eval(alone(code, lrn.library_path()).stdout)) == names


BAD = {
    "there is no cell 'lrn_tanh'": {"cell": "lrn_tanh"},
    "direction must be forward, reverse or both, got 'up'": {"direction": "up"},
    "norm must be layer or rms, got 'batch'": {"norm": "batch"},
    "a norm needs a scale": {"norm": "rms"},
    "x must have 3 dimensions, got 2": {"x": torch.zeros(4, 15)},
    "x does not fit gru, forward": {"x": torch.zeros(4, 3, 20)},
    "state does not fit gru, forward": {"state": torch.zeros(2, 1, 3, 5)},
    "another batch size": {"state": torch.zeros(1, 1, 2, 5)},
    "gru needs weight [D, 15, 5]": {"weight": torch.zeros(1, 5, 15)},
    "bias must be [D, 15]": {"bias": torch.zeros(15)},
    "lengths must be from 0 to 4, got 5": {"lengths": torch.tensor([5, 1, 1])},
    "float32, float64, bfloat16 or float16": {"x": torch.zeros(4, 3, 15, dtype=torch.int64)},
}


def test_bad_arguments(tmp_path):
    """Each is an error that names what is wrong; none ends the process."""
    good = {
        "x": torch.zeros(4, 3, 15),
        "state": torch.zeros(1, 1, 3, 5),
        "weight": torch.zeros(1, 15, 5),
        **dict.fromkeys(("bias", "scale", "lengths", "batch_sizes", "reset")),
        **{"cell": "gru", "norm": None, "direction": "forward", "batch_first": False},
    }
    torch.save([(words, good | change) for words, change in BAD.items()], tmp_path / "bad.pt")
    code = f"""
for words, given in torch.load({str(tmp_path / "bad.pt")!r}):
    try:
        torch.ops.lrn.walk(**given)
    except RuntimeError as error:
        assert words in str(error), (words, error)
    else:
        raise AssertionError(words)
"""
    alone(code, lrn.library_path())


def test_beside_lrn():
    """In a process that imports lrn it is not needed: after lrn it changes nothing, before it lrn says so."""
    load = f"torch.ops.load_library({str(lrn.library_path())!r})"
    run = "x = lrn.LRN(3, 4)(torch.ones(2, 1, 3))[0]; print(*x.shape)"
    after = python(f"import torch, lrn\n{load}\n{run}")
    assert (after.returncode, after.stdout) == (0, "2 1 4\n"), after.stderr
    before = python(f"import torch\n{load}\nimport lrn")
    assert before.returncode == 1
    assert "liblrn.so, which is for programs that do not import lrn" in before.stderr.splitlines()[-1]


def test_not_built(monkeypatch):
    monkeypatch.setattr("lrn.recurrence.dispatch.ALONE", "libnone")
    with pytest.raises(ValueError, match=r"libnone was not built .* pip install \."):
        lrn.library_path()

"""torch.onnx.export with our table: every unit, every option, at sizes that the model was not traced with."""

import pytest
import torch
from helpers import make, randn, tensors
from onnx_files import session

import lrn
import lrn.onnx

# A unit and which options it has: norm, lengths, reset, state, layers, directions, batch_first.
TABLE = {
    "gru": "....x..",
    "lrn": "xxx.xxx",
    "atr": ".x.x.x.",
    "lstm": ".x.xxxx",
    "sru": "xxxx.x.",
    "olrn": ".x.xx..",
    "glrn": "..xxxxx",
    "elrn": "x..x...",
}


class All(torch.nn.Module):
    """Every unit, each as the table says."""

    def __init__(self):
        super().__init__()
        self.marks = [[mark == "x" for mark in marks] for marks in TABLE.values()]
        self.units = torch.nn.ModuleList(
            make(
                name,
                3,
                5,
                dtype=torch.float32,
                norm="rms" if norm else None,
                num_layers=1 + layers,
                residual=layers,
                bidirectional=directions,
                batch_first=first,
            )
            for name, (norm, *_, layers, directions, first) in zip(TABLE, self.marks, strict=True)
        )

    def forward(self, x, lengths, reset, h, c):
        found = []
        for unit, (_, ends, borders, state, _, _, first) in zip(self.units, self.marks, strict=True):
            given, marked = (x.transpose(0, 1), reset.transpose(0, 1)) if first else (x, reset)
            count = unit.num_layers * unit.directions
            start = (h[:count], c[:count]) if unit.parts == 2 else h[:count]
            found += tensors(
                unit(
                    given,
                    start if state else None,
                    lengths=lengths if ends else None,
                    reset=marked if borders else None,
                )
            )
        return tuple(found)


def given(steps, batch):
    numbers = [randn(steps, batch, 3), randn(4, batch, 5, seed=6), randn(4, batch, 5, seed=7)]
    x, h, c = (value.float() for value in numbers)
    lengths = torch.tensor([(3 * b + steps) % (steps + 1) for b in range(batch)])
    return x, lengths, randn(steps, batch, seed=5) > 0.6, h, c


def exported(module, inputs, shapes, path):
    program = torch.onnx.export(
        module,
        inputs,
        dynamo=True,
        verbose=False,
        dynamic_shapes=shapes,
        custom_translation_table=lrn.onnx.translations(),
    )
    program.save(path)
    return session(str(path)), program.model


@pytest.mark.slow
def test_every_unit(tmp_path):
    """With the exporter's own settings, its optimizer among them."""
    assert set(TABLE) == set(lrn.UNITS)
    module = All().eval()
    steps, batch = torch.export.Dim("T"), torch.export.Dim("B")
    shapes = ({0: steps, 1: batch}, {0: batch}, {0: steps, 1: batch}, {1: batch}, {1: batch})
    file, model = exported(module, given(4, 3), shapes, tmp_path / "all.onnx")
    kinds = [node.op_type for node in model.graph]
    assert (kinds.count("LSTM"), kinds.count("GRU")) == (2, 2)
    assert kinds.count("Scan") == sum(unit.num_layers for unit in module.units) - 4
    names = [value.name for value in file.get_inputs()]
    for sizes in ((4, 3), (9, 2), (1, 1), (2, 17)):
        inputs = given(*sizes)
        with torch.no_grad():
            expected = module(*inputs)
        found = file.run(None, {n: v.numpy() for n, v in zip(names, inputs, strict=True)})
        for ours, theirs in zip(found, expected, strict=True):
            torch.testing.assert_close(torch.from_numpy(ours), theirs, rtol=0, atol=3e-6)


def test_without_the_packages(monkeypatch):
    import sys

    for name in [name for name in sys.modules if name.startswith("lrn.onnx.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr(lrn.onnx, "ops", raising=False)
    monkeypatch.setitem(sys.modules, "onnxscript", None)
    with pytest.raises(ModuleNotFoundError, match=r"needs onnxscript: pip install 'lrn-torch\[onnx\]'"):
        lrn.onnx.translations()

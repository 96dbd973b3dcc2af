"""lrn's ops are there as soon as both lrn and torch are imported, in any order."""

import sys

import pytest
import torch
from recurrence.processes import python

import lrn
from lrn import late

ORDERS = {
    "torch first": "import torch, lrn",
    "lrn first": "import lrn\nassert 'torch' not in sys.modules\nimport torch",
    "a part of torch": "import lrn\nfrom torch import nn\nimport torch",
    "after a look for torch": "import lrn, importlib.util\nimportlib.util.find_spec('torch')\nimport torch",
}


class Model(torch.nn.Module):
    """All units side by side, so that every op of a graph is in it."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.units = torch.nn.ModuleList(lrn.make_unit(name, 3, 4, bidirectional=True) for name in lrn.UNITS)
        self.normed = lrn.LSTM(3, 4, norm="layer")

    def forward(self, x, lengths):
        return torch.cat([unit(x, lengths=lengths)[0] for unit in (*self.units, self.normed)], -1)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """An exported model as a file, an input of another size than it was exported with, and its output."""
    folder, model = tmp_path_factory.mktemp("exported"), Model().eval()
    steps, batch = torch.export.Dim("T"), torch.export.Dim("B")
    example = (torch.randn(5, 2, 3), torch.tensor([5, 3]))
    program = torch.export.export(model, example, dynamic_shapes=({0: steps, 1: batch}, {0: batch}))
    torch.export.save(program, folder / "model.pt2")
    given = (torch.randn(7, 3, 3), torch.tensor([7, 0, 4]))
    torch.save((given, model(*given)), folder / "wanted.pt")
    return folder


@pytest.mark.parametrize("order", ORDERS)
def test_a_model_is_loaded_in_a_new_process(saved, order):
    code = f"""
import sys
{ORDERS[order]}
assert torch.ops.lrn.scan.default and torch.ops.lrn.fused.default
given, wanted = torch.load({str(saved / "wanted.pt")!r})
program = torch.export.load({str(saved / "model.pt2")!r})
torch.testing.assert_close(program.module()(*given), wanted, rtol=0, atol=1e-6)
assert not any(type(finder).__module__ == "lrn.late" for finder in sys.meta_path)
assert "lrn.units" not in sys.modules  # the ops are enough
"""
    done = python(code.replace("\n    ", "\n"))
    assert (done.returncode, done.stderr) == (0, "")


def test_it_is_called_once_and_at_once_where_torch_is_here():
    calls = []
    late.when_torch_is_here(lambda: calls.append(1))
    assert calls == [1]
    assert not any(isinstance(finder, late._Finder) for finder in sys.meta_path)


FAKE = """
import sys
sys.path.insert(0, FOLDER)
from lrn import late
late.when_torch_is_here(lambda: print("here", sys.modules["torch"].done))
"""


@pytest.fixture
def fake(tmp_path):
    """A torch that is quick to import, and how to begin a process that has it."""
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("import torch.part\ndone = True\n")
    (tmp_path / "torch" / "part.py").write_text("")
    begin = "import sys; sys.path.insert(0, FOLDER); sys.modules['lrn.recurrence'] = sys\n"
    return (begin + FAKE).replace("FOLDER", repr(str(tmp_path)))


def test_the_end_of_the_import_is_waited_for(fake):
    """Once, though torch is asked for again, and by two who wait at once; torch is as its loader made it."""
    done = python(
        fake + "import torch, torch.part\nimport torch\nprint(torch.__file__ == torch.__spec__.origin, "
        "torch.__spec__.loader.get_filename('torch') == torch.__file__)"
    )
    assert done.stdout == "here True\nTrue True\n", done.stderr


def test_other_modules_are_found_as_before(fake):
    done = python(
        fake
        + "import json, importlib.util\nprint(importlib.util.find_spec('torchless'), 'torch' in sys.modules)"
    )
    assert done.stdout == "None False\n", done.stderr


def test_without_torch():
    """Who has no torch is told so by Python, as ever."""
    code = """
import sys
import lrn
sys.meta_path[:] = [f for f in sys.meta_path if type(f).__module__ == "lrn.late"]
import torch
"""
    done = python(code)
    assert done.stderr.splitlines()[-1] == "ModuleNotFoundError: No module named 'torch'"

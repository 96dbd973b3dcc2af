"""When a graph still says what the run says."""

import pytest
import torch

from lrn.export.checks import compare, difference
from lrn.tasks.portable import Example, Graph, Port

INFINITE = float("inf")


@pytest.mark.parametrize(
    ("found", "expected", "off"),
    [
        ([1.0, 2.0], [1.0, 2.0], 0.0),
        ([-INFINITE, 2.0], [-INFINITE, 2.0], 0.0),
        ([100.0, 1.5], [100.0, 1.0], 0.005),
        ([0.0, 0.25], [0.0, 0.0], 0.25),
        ([float("nan"), 1.0], [1.0, 1.0], INFINITE),
        ([1.0, 1.0], [float("nan"), 1.0], INFINITE),
        ([1.0, 1.0], [-INFINITE, 1.0], INFINITE),
        ([1, 2], [1, 2], 0.0),
        ([1, 2], [1, 3], INFINITE),
        ([1, 2], [1.0, 2.0], INFINITE),
        ([1.0], [1.0, 1.0], INFINITE),
    ],
)
def test_difference(found, expected, off):
    assert difference(torch.tensor(found), torch.tensor(expected)) == pytest.approx(off)


def test_what_differs_is_named():
    ports = (Port("x", ("rows",), "Numbers."),)
    one = torch.ones(2)
    graph = Graph(
        "", "", torch.nn.Identity(), ports, (Port("y", ("rows",), "More."),), (Example((one,), (one,)),)
    )
    assert compare(graph, lambda inputs: [inputs[0] * (1 + 4e-6)], "a.onnx") == pytest.approx(4e-6, rel=0.1)
    with pytest.raises(
        ValueError, match=r"^a.onnx: y is not what the run says: it differs by 1.0e-02, .*written$"
    ):
        compare(graph, lambda inputs: [inputs[0] * 1.01], "a.onnx")

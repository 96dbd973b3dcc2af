"""The GRU that resets before the product: against its equations, packed or not, in both directions."""

import pytest
import torch

from lrn.nn import ResetGRU
from lrn.text.batches import Packing

LENGTHS = [2, 5, 1, 5]


@pytest.fixture
def cell():
    torch.manual_seed(1)
    return ResetGRU(3, 4).double()


def plain(cell, x, h):
    w_r, w_z, w_n = cell.weight_ih.chunk(3)
    u_r, u_z, u_n = cell.weight_hh.chunk(3)
    b_r, b_z, b_n = cell.bias.chunk(3)
    r = torch.sigmoid(w_r @ x + u_r @ h + b_r)
    z = torch.sigmoid(w_z @ x + u_z @ h + b_z)
    n = torch.tanh(w_n @ x + u_n @ (r * h) + b_n)
    return z * h + (1 - z) * n


def test_a_step(cell):
    x, h = torch.randn(2, 3, dtype=torch.float64), torch.randn(2, 4, dtype=torch.float64)
    expected = torch.stack([plain(cell, x[row], h[row]) for row in range(2)])
    torch.testing.assert_close(cell.step(cell.project(x), h), expected, rtol=0, atol=1e-14)


def test_it_is_not_torchs(cell):
    torchs = torch.nn.GRUCell(3, 4, dtype=torch.float64)
    with torch.no_grad():
        torchs.weight_ih.copy_(cell.weight_ih)
        torchs.weight_hh.copy_(cell.weight_hh)
        torchs.bias_ih.copy_(cell.bias)
        torchs.bias_hh.zero_()
    x, h = torch.randn(2, 3, dtype=torch.float64), torch.randn(2, 4, dtype=torch.float64)
    assert not torch.allclose(torchs(x, h), cell.step(cell.project(x), h))


@pytest.mark.parametrize("reverse", [False, True])
def test_last_states_of_packed_sequences(cell, reverse):
    packing = Packing.of(LENGTHS)
    x = torch.randn(4, 5, 3, dtype=torch.float64)
    found = cell.last(packing.pack(x).data, packing.batch_sizes.tolist(), reverse)[packing.back]
    for row, length in enumerate(LENGTHS):
        h = torch.zeros(4, dtype=torch.float64)
        for t in reversed(range(length)) if reverse else range(length):
            h = plain(cell, x[row, t], h)
        torch.testing.assert_close(found[row], h, rtol=0, atol=1e-14)


@pytest.mark.parametrize("reverse", [False, True])
def test_gradients(cell, reverse):
    x = torch.randn(6, 3, dtype=torch.float64, requires_grad=True)
    weights = [parameter.detach().requires_grad_() for parameter in cell.parameters()]

    def run(x, *weights):
        names = [name for name, _ in cell.named_parameters()]
        given = dict(zip(names, weights, strict=True))
        return torch.func.functional_call(_Last(cell, reverse), {f"cell.{k}": v for k, v in given.items()}, x)

    assert torch.autograd.gradcheck(run, (x, *weights))


class _Last(torch.nn.Module):
    def __init__(self, cell, reverse):
        super().__init__()
        self.cell, self.reverse = cell, reverse

    def forward(self, x):
        return self.cell.last(x, [3, 2, 1], self.reverse)


def test_first_weights():
    cell = ResetGRU(20, 30)
    assert (cell.bias[:60] == 1).all()
    assert (cell.bias[60:] == 0).all()
    for weight in (cell.weight_ih, cell.weight_hh):
        assert 0.9 < weight[:60].abs().max() / (6 / (50 + 60)) ** 0.5 <= 1
        assert 0.9 < weight[60:].abs().max() / (6 / (50 + 30)) ** 0.5 <= 1
    assert sum(parameter.numel() for parameter in cell.parameters()) == 3 * 30 * (20 + 30 + 1)

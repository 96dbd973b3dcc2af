"""An nn.Linear in all but the library that multiplies."""

import torch
from torch import nn

import lrn
from lrn.nn import Linear


def test_it_is_torch_s():
    torch.manual_seed(1)
    ours = Linear(96, 80)
    torch.manual_seed(1)
    plain = nn.Linear(96, 80)
    assert all(map(torch.equal, ours.parameters(), plain.parameters()))
    x = torch.randn(4, 64, 96)
    torch.testing.assert_close(ours(x), plain(x), rtol=1e-5, atol=1e-5)


def test_it_can_have_int8_weights():
    model = nn.Sequential(Linear(96, 80))
    small = lrn.quantize(model.eval(), force=True, verbose=False)
    assert type(small[0]).__name__ == "Int8Linear"

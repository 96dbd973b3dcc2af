"""The mix of layers."""

import torch

from lrn.nn import ScalarMix


def test_it_begins_with_the_mean():
    layers = torch.randn(3, 5, 2, dtype=torch.float64)
    torch.testing.assert_close(ScalarMix(3).double()(layers), layers.mean(0), rtol=0, atol=1e-15)


def test_it_is_what_the_formula_says():
    mix = ScalarMix(3).double()
    with torch.no_grad():
        mix.weight.copy_(torch.tensor([0.5, -1.0, 2.0]))
        mix.scale.fill_(1.5)
    layers = torch.randn(3, 5, 2, dtype=torch.float64, requires_grad=True)
    shares = torch.tensor([0.5, -1.0, 2.0], dtype=torch.float64).add(1 / 3).softmax(0)
    expected = 1.5 * (shares[0] * layers[0] + shares[1] * layers[1] + shares[2] * layers[2])
    torch.testing.assert_close(mix(layers), expected, rtol=0, atol=1e-15)
    assert torch.autograd.gradcheck(mix, layers)
    mix(layers).sum().backward()
    assert mix.weight.grad.abs().min() > 0
    assert mix.scale.grad.abs() > 0
    assert sum(parameter.numel() for parameter in mix.parameters()) == 4

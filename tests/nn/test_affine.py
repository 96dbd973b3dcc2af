"""The affine map with a norm between product and bias."""

import pytest
import torch
from helpers import randn

from lrn.nn import Affine


def test_without_a_norm_it_is_linear():
    affine = Affine(3, 4).double()
    x = randn(5, 3)
    torch.testing.assert_close(affine(x), torch.nn.functional.linear(x, affine.weight, affine.bias))
    assert Affine(3, 4, bias=False).bias is None


@pytest.mark.parametrize("norm", ["rms", "layer"])
def test_the_norm_is_before_the_bias(norm):
    affine = Affine(3, 4, norm=norm).double()
    with torch.no_grad():
        affine.scale.copy_(randn(4))
        affine.bias.copy_(randn(4, seed=2))
    x = randn(3)
    product = affine.weight @ x
    if norm == "layer":
        product = product - product.mean()
    expected = affine.scale * product / (product.square().mean() + 1e-8).sqrt() + affine.bias
    torch.testing.assert_close(affine(x), expected, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("bias", [True, False])
def test_an_offset_of_the_norms_own(bias):
    """It is added, beside the bias if there is one; without a norm there is none."""
    affine = Affine(3, 4, bias=bias, norm="layer", offset=True).double()
    plain = Affine(3, 4, norm="layer").double()
    with torch.no_grad():
        plain.weight.copy_(affine.weight)
        affine.offset.copy_(randn(4))
        if bias:
            affine.bias.copy_(randn(4, seed=2))
        plain.bias.copy_(affine.offset + (affine.bias if bias else 0))
    x = randn(2, 3)
    torch.testing.assert_close(affine(x), plain(x), rtol=0, atol=1e-15)
    assert Affine(3, 4, offset=True).offset is None


def test_it_says_what_it_is():
    assert repr(Affine(3, 4, norm="rms", offset=True)) == "Affine(3, 4, norm='rms', offset=True)"
    assert repr(Affine(3, 4, bias=False, norm="rms")) == "Affine(3, 4, bias=False, norm='rms')"

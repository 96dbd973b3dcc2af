"""Linear maps and units whose weights are int8, by torch's own kernels; for inference on CPUs."""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from lrn.recurrence import Rows, modes
from lrn.units import CLASSES, Unit
from lrn.units.unit import UserState

LARGEST = 127  # of an int8 weight; -128 is left out, so that a weight and its negative are both exact


class Int8Linear(nn.Module):
    """An ``nn.Linear`` with int8 weights, a scale for each row of them, and float32 going in and coming out.

    What goes in is brought to 8 bits at every call, by the smallest and the largest number of that call. In
    the ``state_dict`` are plain tensors: ``int8``, ``scale`` and ``bias``.

    >>> x, linear = torch.randn(5, 3), nn.Linear(3, 4)
    >>> with torch.no_grad():
    ...     bool((Int8Linear(linear.weight, linear.bias)(x) - linear(x)).abs().max() < 0.1)
    True
    """

    int8: Tensor
    scale: Tensor
    bias: Tensor | None

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        super().__init__()
        weight = weight.detach()
        self.out_features, self.in_features = weight.shape
        scale = (weight.abs().amax(1) / LARGEST).clamp_min(torch.finfo(torch.float32).tiny)
        self.register_buffer("int8", (weight / scale.unsqueeze(1)).round().to(torch.int8))
        self.register_buffer("scale", scale)
        self.register_buffer("bias", None if bias is None else bias.detach().clone())
        self._packed: Any = None  # the same weights as the kernel has them, made at first use
        self.eval()

    @property
    def weight(self) -> Tensor:
        """The weights as numbers again, for code that looks at them."""
        return self.int8 * self.scale.unsqueeze(1)

    def forward(self, x: Tensor) -> Tensor:
        if self.training:
            raise RuntimeError("int8 weights are for inference and cannot be trained: call model.eval()")
        if x.requires_grad and torch.is_grad_enabled():
            raise RuntimeError("int8 weights have no gradient: run the model under torch.no_grad()")
        if modes.autocast(x):
            x = x.float()
        if x.dtype != torch.float32 or not x.is_cpu or not self.int8.is_cpu:
            raise TypeError(
                f"int8 weights take float32 on the CPU, got {x.dtype} on {x.device}; "
                f"the weights are on {self.int8.device}"
            )
        if x.shape[-1] != self.in_features:
            raise ValueError(f"input must have {self.in_features} features, got shape {tuple(x.shape)}")
        if self._packed is None:
            self._packed = _pack(self.int8, self.scale, self.bias)
        try:  # 7 bits for what goes in: with 8, sums of products overflow on processors without VNNI
            product: Tensor = torch.ops.quantized.linear_dynamic(torch.atleast_2d(x), self._packed, True)
        except RuntimeError:
            if bool(x.isnan().any()):
                raise ValueError("the input of int8 weights has NaN in it") from None
            raise
        return product if x.dim() > 1 else product.squeeze(0)

    def extra_repr(self) -> str:
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"
        )

    def _load_from_state_dict(self, *args: Any) -> None:
        super()._load_from_state_dict(*args)
        self._packed = None

    def _apply(self, *args: Any, **kwargs: Any) -> Int8Linear:
        self._packed = None
        super()._apply(*args, **kwargs)  # type: ignore[no-untyped-call]
        return self

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_packed": None}


def _pack(int8: Tensor, scale: Tensor, bias: Tensor | None) -> Any:
    with warnings.catch_warnings():  # torch means to move these kernels elsewhere one day, and says so
        warnings.simplefilter("ignore")
        zeros = torch.zeros(len(scale), dtype=torch.int64)
        weight = torch._make_per_channel_quantized_tensor(int8, scale.double(), zeros, 0)
        return torch.ops.quantized.linear_prepack(weight, None if bias is None else bias.float())


def why_missing() -> str | None:
    """What keeps torch's int8 kernels from running here; None if nothing does."""
    try:
        Int8Linear(torch.ones(8, 8), None)(torch.ones(1, 8))
    except (RuntimeError, AttributeError, NotImplementedError) as error:
        return str(error).strip().splitlines()[0]
    return None


class Int8Unit(Unit):
    """A unit whose projections are :class:`Int8Linear`; its walk over time is in float32, as it was."""

    products: nn.ModuleList  # of each layer, both directions in one

    @property
    def _first_weight(self) -> Tensor:
        scale = self.products[0].scale
        assert isinstance(scale, Tensor)
        return scale

    def _project(self, layer: int, x: Tensor) -> Tensor:
        product: Tensor = self.products[layer](x)
        if self.norm is None:
            return product
        return self._normalised(layer, product, self._joined("bias_ih", layer) if self.bias else None)

    def _layer(self, layer: int, x: Tensor, state: Tensor, rows: Rows) -> tuple[Tensor, Tensor]:
        return Unit._layer(self, layer, x, state, rows)  # not projection and walk together

    def step(self, input: Tensor, state: UserState | None = None) -> tuple[Tensor, UserState]:
        return Unit.step(self, input, state)

    step.__doc__ = Unit.step.__doc__

    def reset_parameters(self) -> None:
        raise TypeError(f"{self._name} cannot draw new weights: its own are int8")


INT8: dict[type[Unit], type[Unit]] = {
    cls: type(f"Int8{cls.__name__}", (Int8Unit, cls), {"__doc__": cls.__doc__, "__module__": __name__})
    for cls in CLASSES.values()
}
"""The class with int8 weights of every unit. They are named in this file too, so that they can be pickled."""

globals().update({cls.__name__: cls for cls in INT8.values()})


def int8_unit(unit: Unit) -> Unit:
    """Give a unit int8 weights, in place: it becomes one of :data:`INT8`, in evaluation mode.

    >>> import lrn
    >>> int8_unit(lrn.LRN(3, 4).eval())
    Int8LRN(
      3, 4
      (products): ModuleList(
        (0): Int8Linear(in_features=3, out_features=12, bias=True)
      )
    )
    """
    for name in [*getattr(unit, "parametrizations", {})]:  # weight drop, which evaluation has not
        parametrize.remove_parametrizations(unit, name)
    fused = unit.bias and unit.norm is None  # with a norm the bias comes behind it
    products = [
        Int8Linear(unit._joined("weight_ih", layer), unit._joined("bias_ih", layer) if fused else None)
        for layer in range(unit.num_layers)
    ]
    gone = ("weight_ih_", "bias_ih_") if fused else ("weight_ih_",)
    for name in [name for name, _ in unit.named_parameters(recurse=False) if name.startswith(gone)]:
        delattr(unit, name)
    unit.__class__ = INT8[type(unit)]
    unit.products = nn.ModuleList(products)
    return unit.eval()

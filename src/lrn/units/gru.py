"""GRU behind the common contract: torch's own kernels, one bias per gate."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from lrn.checks import flag
from lrn.units.fused import FusedUnit


class GRU(FusedUnit):
    """``nn.GRU`` with one bias per gate, ``norm``, ``lengths`` and ``reset``; gate order r, z, n.

    ``r, z = σ(W x + U h' + b)``, ``n = tanh(W_n x + b_n + r⊙(U_n h' + b_hn))``, ``h = (1−z)⊙n + z⊙h'``.
    ``b_hn`` is there with ``hidden_bias=True`` alone: no sum can stand for it, so an ``nn.GRU`` in which it
    has been learnt can be loaded into no other.

    Parameters per layer and direction: 3H(I + H + 1), and H more with ``hidden_bias``.

    >>> import torch, lrn
    >>> output, h_n = lrn.GRU(3, 4)(torch.randn(5, 2, 3))
    >>> lrn.GRU(3, 4, hidden_bias=True).load_state_dict(torch.nn.GRU(3, 4).state_dict())
    <All keys matched successfully>
    """

    gates = 3
    hidden_gates = 3
    forget_gate = 1

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        *,
        norm: str | None = None,
        residual: bool = False,
        hidden_bias: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        self.hidden_bias = flag("hidden_bias", hidden_bias)
        if self.hidden_bias and not bias:
            raise ValueError(
                "hidden_bias=True is a second bias beside the first, which bias=False takes away"
            )
        super().__init__(
            input_size,
            hidden_size,
            num_layers,
            bias,
            batch_first,
            dropout,
            bidirectional,
            norm=norm,
            residual=residual,
            device=device,
            dtype=dtype,
        )

    def _shapes(self, width: int) -> dict[str, tuple[int, ...]]:
        shapes = super()._shapes(width)
        return shapes | {"bias_hn": (self.hidden_size,)} if self.hidden_bias else shapes

    def _by_direction(self, name: str, layer: int) -> Any:
        if (
            name == "bias_hh" and self.hidden_bias
        ):  # of the candidate alone; the gates' biases are in the first
            return F.pad(super()._by_direction("bias_hn", layer), (2 * self.hidden_size, 0))
        return super()._by_direction(name, layer)

    def _second_bias(
        self, weights: dict[str, Any], prefix: str, suffix: str, bias: Tensor
    ) -> tuple[Tensor, list[str]]:
        gates, candidate = bias.split([2 * self.hidden_size, self.hidden_size])
        wrong = []
        if self.hidden_bias:
            weights[f"{prefix}bias_hn{suffix}"] = candidate.clone()
        elif not candidate.is_meta and bool(candidate.any()):
            wrong.append(
                f"the last third of {prefix}bias_hh{suffix}, the candidate's second bias, is not zero, and "
                "this GRU has no place for it; make it with hidden_bias=True"
            )
        return F.pad(gates, (0, self.hidden_size)), wrong

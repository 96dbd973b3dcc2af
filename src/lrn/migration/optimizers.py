"""Optimizers made before a swap: mended if they are given, told of if they take a step."""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Iterable
from typing import Any

import torch
from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_pre_hook
from torch.utils.weak import WeakIdKeyDictionary

from lrn.migration.carried import Swap


class Mending:
    """The change of an optimizer that holds parameters of swapped layers: it gets the new ones instead.

    A new parameter goes to the group of the one from which it follows. Where the weights are kept, so is
    what the optimizer knows of them (Adam's moments, …).
    """

    def __init__(self, optimizer: Optimizer, swaps: list[Swap]) -> None:
        if isinstance(optimizer, torch.optim.LBFGS):
            raise ValueError("LBFGS cannot be mended: make it anew, after lrn.replace")
        self.optimizer = optimizer
        group_of = {id(p): n for n, group in enumerate(optimizer.param_groups) for p in group["params"]}
        self.found = False
        self.gone: set[int] = set()
        self.added: list[tuple[int, str, torch.nn.Parameter]] = []
        self.moved: list[tuple[torch.nn.Parameter, torch.nn.Parameter]] = []
        for swap in swaps:
            old = dict(swap.old.named_parameters())
            self.gone |= {id(parameter) for parameter in old.values()}
            for name, parameter in swap.new.named_parameters():
                groups = [group_of.get(id(old[before])) for before in swap.counterparts(name)]
                group = next((group for group in groups if group is not None), None)
                if group is None:
                    continue
                self.found = True
                self.added.append((group, f"{swap.name}.{name}" if swap.name else name, parameter))
                if swap.kept and name in old:
                    self.moved.append((old[name], parameter))

    def apply(self) -> None:
        state = self.optimizer.state
        for before, after in self.moved:
            if before in state:
                state[after] = state[before]
        for number, group in enumerate(self.optimizer.param_groups):
            added = [(name, parameter) for place, name, parameter in self.added if place == number]
            stays = [id(parameter) not in self.gone for parameter in group["params"]]
            for parameter, here in zip(group["params"], stays, strict=True):
                if not here:
                    state.pop(parameter, None)
            group["params"][:] = _those(group["params"], stays) + [parameter for _, parameter in added]
            if "param_names" in group:
                group["param_names"][:] = _those(group["param_names"], stays) + [name for name, _ in added]


def _those(values: list[Any], stays: list[bool]) -> list[Any]:
    return [value for value, here in zip(values, stays, strict=True) if here]


# An optimizer that nobody passed is not to be found from the model. But before its step torch calls what is
# registered for all optimizers, and there its parameters can be seen.
_gone: Any = (
    WeakIdKeyDictionary()
)  # parameters of layers that were swapped out, for as long as somebody has them
_known: weakref.WeakSet[Optimizer] = weakref.WeakSet()  # optimizers that were looked at since the last swap
_registered: list[Any] = []


def watch(swaps: Iterable[Swap]) -> None:
    """Warn when an optimizer takes a step that holds parameters of swapped layers."""
    for swap in swaps:
        for name, parameter in swap.old.named_parameters():
            _gone[parameter] = f"{swap.name}.{name}"
    _known.clear()
    if not _registered:
        _registered.append(register_optimizer_step_pre_hook(_look))


def _look(optimizer: Optimizer, args: Any, kwargs: Any) -> None:
    if not len(_gone) or optimizer in _known:
        return
    _known.add(optimizer)
    stale = [_gone[p] for group in optimizer.param_groups for p in group["params"] if p in _gone]
    if stale:
        warnings.warn(
            f"this {type(optimizer).__name__} was made before lrn.replace: it trains parameters that are no "
            f"longer the model's ({stale[0]}, …) and not those in their place; make it after lrn.replace, or "
            "pass it as optimizer=",
            stacklevel=3,
        )

"""What a swapped layer hands on to the unit in its place, and what it cannot."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from torch import nn

from lrn.units import GRU, LSTM, Unit

KEPT: dict[type[nn.RNNBase], type[Unit]] = {nn.LSTM: LSTM, nn.GRU: GRU}
"""The units that compute what a layer of torch computes, and so can have its weights."""

# The hooks of a module that are called with it, what goes in and what comes out, which a unit has too. The
# dictionaries themselves are handed on, so that the handles which remove a hook keep working.
CARRIED = (
    "_forward_hooks",
    "_forward_hooks_with_kwargs",
    "_forward_hooks_always_called",
    "_forward_pre_hooks",
    "_forward_pre_hooks_with_kwargs",
    "_backward_hooks",
    "_backward_pre_hooks",
)
# Those that are called with weights by name, which differ.
LOST = {
    "_state_dict_hooks": "state_dict",
    "_state_dict_pre_hooks": "state_dict",
    "_load_state_dict_pre_hooks": "load_state_dict",
    "_load_state_dict_post_hooks": "load_state_dict",
}


@dataclass(frozen=True)
class Swap:
    """A layer, its (first) name in the model, the unit in its place, and whether that has its weights."""

    name: str
    old: nn.RNNBase
    new: Unit
    kept: bool

    @property
    def where(self) -> str:
        return self.name or "model"

    def counterparts(self, name: str) -> list[str]:
        """The old parameters from which a new one follows, by name; all of its layer's if it has none."""
        kind, _, suffix = name.partition("_l")
        there = [own for own, _ in self.old.named_parameters()]
        followed = {"bias_ih": ("bias_ih", "bias_hh"), "bias_hn": ("bias_hh",)}.get(kind, (kind,))
        return (
            [own for own in there if own in {f"{before}_l{suffix}" for before in followed}]
            or [own for own in there if own.partition("_l")[2] == suffix]
            or there
        )


def keeps_weights(old: nn.RNNBase, new: Unit) -> bool:
    """Whether the unit computes what the layer does, so that it can have its weights."""
    return isinstance(new, KEPT[type(old)]) and new.norm is None and not new.residual


def carry_flags(swap: Swap) -> None:
    """Freeze what follows from frozen parameters alone."""
    frozen = {name for name, parameter in swap.old.named_parameters() if not parameter.requires_grad}
    for name, parameter in swap.new.named_parameters():
        parameter.requires_grad_(not set(swap.counterparts(name)) <= frozen)


def describe(module: nn.Module) -> str:
    """A module in a line, whatever is inside it."""
    return f"{type(module).__name__}({module.extra_repr()})"


def carry_hooks(old: nn.Module, new: nn.Module) -> None:
    """Give a module the hooks of the one in whose place it comes."""
    for name in CARRIED:
        setattr(new, name, getattr(old, name))
    new._is_full_backward_hook = old._is_full_backward_hook


def lost(model: nn.Module, swap: Swap) -> Iterator[str]:
    """What cannot be handed on, a sentence each."""
    hooks = sorted({what for name, what in LOST.items() if getattr(swap.old, name)})
    if hooks:
        yield f"{swap.where}: its hooks on {' and '.join(hooks)} are not carried over; register them anew"
    hooked = [
        name
        for name, parameter in swap.old.named_parameters()
        if parameter._backward_hooks or getattr(parameter, "_post_accumulate_grad_hooks", None)
    ]
    if hooked:
        yield (
            f"{swap.where}: the gradient hooks on {', '.join(hooked)} are not carried over; "
            "register them on the new parameters"
        )
    mine = {id(parameter): name for name, parameter in swap.old.named_parameters()}
    for name, module in model.named_modules():
        if module is swap.old:
            continue
        for own, parameter in module.named_parameters(recurse=False):
            if id(parameter) in mine:
                yield (
                    f"{swap.where}: {mine[id(parameter)]} was shared with {name + '.' if name else ''}{own}, "
                    "and is not any more"
                )

"""Swap the recurrent layers of an existing model."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import nn
from torch.nn.utils.parametrize import is_parametrized
from torch.optim import Optimizer

from lrn.checks import kind
from lrn.migration import optimizers
from lrn.migration.carried import Swap, carry_flags, carry_hooks, describe, keeps_weights, lost
from lrn.units import GRU, Unit, unit_class

SWAPPED = (nn.LSTM, nn.GRU)
SKIPPED = (nn.RNN, nn.LSTMCell, nn.GRUCell, nn.RNNCell)


def replace(
    model: nn.Module,
    unit: str | type[Unit] = "lrn",
    *,
    optimizer: Optimizer | Sequence[Optimizer] | None = None,
    verbose: bool = True,
    **kwargs: Any,
) -> nn.Module:
    """Swap every ``nn.LSTM`` and ``nn.GRU`` inside ``model``, in place, for a unit of the same shape.

    Sizes, layers, directions, bias, ``batch_first``, dropout, dtype, device, training mode, frozen flags,
    names and hooks are kept. So are the weights where an ``nn.LSTM`` becomes "lstm" and an ``nn.GRU`` "gru",
    which then compute the same; all other weights are new. What cannot be kept is warned of, and what cannot
    be swapped is refused before anything has changed.

    Code that handles ``nn.LSTM``'s pair ``(h, c)`` keeps working: a unit with a single state returns
    ``(h, h)`` in place of an ``nn.LSTM`` and reads the first of a pair passed in.

    An optimizer that was made before holds parameters that are no longer the model's. Pass it, and it gets
    the new ones in their place; else it is warned of when it takes its next step.

    Args:
        model: the model, or a single layer, in whose place the new unit is returned.
        unit: the name of a unit, in any case, or its class; one of your own too.
        optimizer: one or several that were made for ``model`` already, to be mended.
        verbose: print a line for each swap.
        kwargs: settings of the unit that the layer has not (``norm="layer"``, ``residual=True``, …).

    Returns:
        The model; the new unit if ``model`` itself was an ``nn.LSTM`` or ``nn.GRU``.

    >>> from torch import nn
    >>> import lrn
    >>> model = nn.ModuleDict({"rnn": nn.LSTM(8, 16, batch_first=True)})
    >>> model = lrn.replace(model, "lrn")
    rnn: LSTM(8, 16, batch_first=True) -> LRN(8, 16, batch_first=True), 1,664 -> 432 parameters, new weights
    """
    if not isinstance(model, nn.Module):
        raise TypeError(
            f"model must be an nn.Module, got {kind(model)}"
            + "; the model comes first: lrn.replace(model, unit)" * isinstance(unit, nn.Module)
        )
    cls = unit_class(unit)
    modules = list(model.named_modules(remove_duplicate=False))
    found = {name: module for name, module in modules if isinstance(module, SWAPPED)}
    skipped = [f"{name or 'model'} ({what})" for name, module in modules if (what := _unswappable(module))]
    if not found:
        units = [f"{name or 'model'} ({type(m).__name__})" for name, m in modules if isinstance(m, Unit)]
        beside = f"; {', '.join(skipped)} cannot be swapped" if skipped else ""
        beside += f"; {', '.join(units)}: already lrn's" if units else ""
        raise ValueError(f"{type(model).__name__} has no nn.LSTM or nn.GRU inside{beside}")
    _refuse_wrapped(model)
    for name, module in found.items():
        _refuse(name, module)

    swaps: dict[nn.Module, Swap] = {}
    for name, module in found.items():
        if module not in swaps:  # or it is there under several names
            swaps[module] = _swap(name, module, cls, kwargs)
    mending = [optimizers.Mending(each, list(swaps.values())) for each in _all(optimizer)]
    if mending and not any(mend.found for mend in mending):
        raise ValueError("optimizer holds no parameter of the layers to swap: it was made for another model")
    for text in _warnings(model, list(swaps.values()), skipped):
        warnings.warn(text, stacklevel=2)

    for swap in swaps.values():
        carry_hooks(swap.old, swap.new)
    for mend in mending:
        mend.apply()
    for name, module in found.items():
        swap = swaps[module]
        if verbose:
            print(_line(name, swap))
        if not name:
            return swap.new
        parent, _, child = name.rpartition(".")
        setattr(model.get_submodule(parent), child, swap.new)
    optimizers.watch(swaps.values())
    return model


def _unswappable(module: nn.Module) -> str:
    """What a layer is that has a recurrence and cannot be swapped; nothing if it is no such layer."""
    if isinstance(module, SKIPPED):
        return type(module).__name__
    name, home = getattr(module, "original_name", type(module).__name__), type(module).__module__
    if name not in [cls.__name__ for cls in SWAPPED]:
        return ""
    if isinstance(module, torch.jit.ScriptModule):
        return f"{name}, scripted"
    return f"{name}, quantized" if home.startswith("torch.ao.nn.") else ""


def _all(optimizer: Optimizer | Sequence[Optimizer] | None) -> list[Optimizer]:
    if optimizer is None:
        return []
    given: list[Any] = list(optimizer) if isinstance(optimizer, list | tuple) else [optimizer]
    for each in given:
        if not isinstance(each, Optimizer):
            raise TypeError(f"optimizer must be a torch.optim.Optimizer, got {kind(each)}")
    return given


def _refuse_wrapped(model: nn.Module) -> None:
    for name, module in model.named_modules():
        if isinstance(module, nn.parallel.DistributedDataParallel):
            raise ValueError(
                f"cannot replace inside {name or 'model'}: DistributedDataParallel knows the parameters "
                "it was made with; replace first, then wrap the model"
            )


def _refuse(name: str, module: nn.RNNBase) -> None:
    where = f"cannot replace {name or 'model'}"
    names, usual = {parameter for parameter, _ in module.named_parameters()}, module._flat_weights_names
    computed = ", ".join(name for name in usual if name not in names)
    if is_parametrized(module):
        raise ValueError(
            f"{where}: its {computed} is parametrised; remove that first: "
            "torch.nn.utils.parametrize.remove_parametrizations"
        )
    if type(module) not in SWAPPED or names > set(usual):
        raise ValueError(
            f"{where}: {type(module).__name__} is a subclass or has parameters of its own; "
            "only plain nn.LSTM and nn.GRU can be swapped"
        )
    if computed:
        raise ValueError(
            f"{where}: its {computed} is set by a hook; remove that first: "
            "torch.nn.utils.remove_weight_norm, remove_spectral_norm or prune.remove"
        )
    if module.proj_size:
        raise ValueError(
            f"{where}: proj_size={module.proj_size} has no counterpart; "
            "use proj_size=0 and a Linear layer after the unit"
        )


def _swap(name: str, module: nn.RNNBase, cls: type[Unit], kwargs: dict[str, Any]) -> Swap:
    """A unit like the layer, with its weights if it computes the same."""
    weight = module.weight_ih_l0
    settings: dict[str, Any] = {
        "num_layers": module.num_layers,
        "bias": module.bias,
        "batch_first": module.batch_first,
        "dropout": module.dropout,
        "bidirectional": module.bidirectional,
        "device": weight.device,
        "dtype": weight.dtype,
    }
    for given in kwargs:
        if given in ("input_size", "hidden_size", *settings):
            raise ValueError(f"{given} is taken from {name or 'model'}; it cannot be given")
    if issubclass(cls, GRU) and kwargs.get("norm") is None:
        settings["hidden_bias"] = _second_bias(module)
    with warnings.catch_warnings():  # that dropout needs several layers torch has said before
        warnings.filterwarnings("ignore", "dropout=.* acts between layers")
        try:
            new = cls(module.input_size, module.hidden_size, **(settings | kwargs))
        except ValueError as error:  # a setting that does not fit this layer of all
            raise ValueError(f"cannot replace {name or 'model'}: {error}") from None
    new.lstm_state = isinstance(module, nn.LSTM) and new.parts == 1
    new.train(module.training)
    swap = Swap(name, module, new, keeps_weights(module, new))
    if swap.kept:
        try:
            new.load_state_dict(module.state_dict())
        except RuntimeError as error:
            raise ValueError(
                f"cannot replace {name or 'model'}: {str(error).splitlines()[-1].strip()}"
            ) from None
    carry_flags(swap)
    return swap


def _second_bias(module: nn.RNNBase) -> bool:
    """Whether an nn.GRU has learnt a second bias of the candidate, which needs a place of its own."""
    if not isinstance(module, nn.GRU) or not module.bias:
        return False
    biases = [value for name, value in module.named_parameters() if name.startswith("bias_hh")]
    return any(bias.is_meta or bool(bias[2 * module.hidden_size :].any()) for bias in biases)


def _warnings(model: nn.Module, swaps: list[Swap], skipped: list[str]) -> Iterator[str]:
    """What the user must look at, a sentence each."""
    if skipped:
        yield (
            f"left as they are: {', '.join(skipped)}; lrn.replace swaps nn.LSTM and nn.GRU alone "
            "(a unit's step(x_t, state) does what a cell does)"
        )
    for swap in swaps:
        if swap.new.parts == 2 and isinstance(swap.old, nn.GRU):
            yield f"{swap.where}: the state was one tensor and is now a pair (h, c)"
        if not swap.kept and any(not parameter.requires_grad for parameter in swap.new.parameters()):
            yield (
                f"{swap.where}: weights that were frozen are new now, and frozen: "
                "they stay random until requires_grad_() lets them be trained"
            )
        yield from lost(model, swap)


def _line(name: str, swap: Swap) -> str:
    said = [
        f"{name or 'model'}: {describe(swap.old)} -> {swap.new}",
        f"{_count(swap.old):,} -> {_count(swap.new):,} parameters",
        "weights kept" if swap.kept else "new weights",
    ]
    if swap.new.parts == 2 and isinstance(swap.old, nn.GRU):
        said.append("state now a pair (h, c)")
    return ", ".join(said)


def _count(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())

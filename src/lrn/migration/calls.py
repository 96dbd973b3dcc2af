"""Running a model that nobody here knows: what it is called with, and what of its result counts."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from lrn.checks import kind

Call = Callable[[nn.Module, Any], Any]


def call(model: nn.Module, batch: Any) -> Any:
    """Run ``model`` on a batch: a tuple is its arguments, a dict its keywords, anything else one argument.

    >>> import torch
    >>> layer = nn.LSTM(3, 4)
    >>> [call(layer, given)[0].shape[0] for given in (torch.ones(5, 1, 3), {"input": torch.ones(6, 1, 3)})]
    [5, 6]
    """
    if isinstance(batch, tuple | list) and not isinstance(batch, PackedSequence):
        try:
            return model(*batch)
        except TypeError:
            _check_arguments(model, batch)
            raise
    if isinstance(batch, Mapping):
        return model(**batch)
    return model(batch)


def _check_arguments(model: nn.Module, batch: Sequence[Any]) -> None:
    """An error if the model does not take as many arguments."""
    try:
        inspect.signature(model.forward).bind(*batch)
    except TypeError as error:
        raise TypeError(
            f"a batch of {len(batch)} is the model's arguments, which {type(model).__name__} does not take "
            f"({error}); with labels in it give call=lambda model, batch: model(batch[0])"
        ) from None


def outputs_of(result: Any) -> list[Tensor]:
    """The tensors of a result that are its output; what a tuple has behind its first entry is a state.

    >>> import torch
    >>> [tuple(output.shape) for output in outputs_of(nn.LSTM(3, 4)(torch.randn(5, 2, 3)))]
    [(5, 2, 4)]
    """
    if isinstance(result, Tensor):
        return [result]
    if isinstance(result, PackedSequence):
        return [result.data]
    if isinstance(result, tuple | list) and result:
        return outputs_of(result[0])
    if isinstance(result, Mapping):
        return [tensor for value in result.values() for tensor in outputs_of(value)]
    raise TypeError(
        f"a model returned {kind(result)}, of which the output is not known; "
        "give call=, a function of model and batch that returns it"
    )

"""What training keeps for the backward pass: the projection and the hidden states, nothing else."""

import pytest
import torch
from recurrence.cases import UNITS, fewer

import lrn

STEPS, BATCH, HIDDEN = fewer(256, 16), 4, 128


def numbers_saved(run, *known):
    """Numbers held by the graph, whole storages counted, beyond the storages of ``known`` tensors."""
    known = {tensor.untyped_storage().data_ptr() for tensor in known}
    saved = {}

    def keep(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in known:
            saved[storage.data_ptr()] = storage.nbytes() / 4
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        kept_alive = run()
    del kept_alive
    return sum(saved.values())


@pytest.mark.parametrize("name", UNITS)
def test_numbers_a_token(name):
    """The gates and one state a token; LRN: 4H. The 64 over are for the initial state."""
    unit = lrn.make_unit(name, HIDDEN, HIDDEN)
    x = torch.randn(STEPS, BATCH, HIDDEN)
    saved = numbers_saved(lambda: unit(x), x, *unit.parameters())
    a_token = saved / (STEPS * BATCH)
    assert a_token >= (unit.gates + 1) * HIDDEN, "the count misses what must be there"
    assert a_token <= (unit.gates + 1) * HIDDEN + 64


def test_packed_rows_save_no_padding():
    """Packed input is kept packed."""
    lengths = torch.tensor([STEPS, 10, 5, 1])
    x = torch.nn.utils.rnn.pack_padded_sequence(torch.randn(STEPS, BATCH, HIDDEN), lengths)
    unit = lrn.LRN(HIDDEN, HIDDEN)
    saved = numbers_saved(lambda: unit(x), x.data, *unit.parameters())
    assert saved / lengths.sum() <= 4 * HIDDEN + 64


def test_nothing_is_saved_without_gradients():
    unit, x = lrn.LRN(HIDDEN, HIDDEN), torch.randn(3, 2, HIDDEN)
    with torch.no_grad():
        assert numbers_saved(lambda: unit(x)) == 0

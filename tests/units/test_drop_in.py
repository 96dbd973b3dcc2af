"""Code written for nn.LSTM and nn.GRU runs unchanged after `lrn.replace`, on every unit."""

from __future__ import annotations

import copy
import pickle

import pytest
import torch
from helpers import SINGLES, assert_same, parts, says
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

import lrn

names = pytest.mark.parametrize("name", lrn.UNITS)
singles = pytest.mark.parametrize("name", SINGLES)

X = torch.randn(6, 2, 3, generator=torch.Generator().manual_seed(0))


def lstm_as(name, **kwargs):
    torch.manual_seed(0)
    return lrn.replace(nn.LSTM(3, 4, **kwargs), name, verbose=False)


def gru_as(name, **kwargs):
    torch.manual_seed(0)
    return lrn.replace(nn.GRU(3, 4, **kwargs), name, verbose=False)


# nn.LSTM ----------------------------------------------------------------------------------------


@names
def test_state_ignored(name):
    """`output, _ = rnn(x)` and `rnn(x)[0]`."""
    rnn = lstm_as(name)
    output, _ = rnn(X)
    assert_same(output, rnn(X)[0], atol=0)


@names
def test_pair_unpacked(name):
    """`output, (h, c) = rnn(x)`, with h as in torch.nn."""
    rnn = lstm_as(name, num_layers=2, bidirectional=True)
    rnn.flatten_parameters()
    output, (h, c) = rnn(X)
    assert h.shape == c.shape == (4, 2, 4)
    assert_same(h[-2], output[-1, :, :4], atol=0)
    assert_same(h[-1], output[0, :, 4:], atol=0)


@names
def test_last_state_as_features(name):
    """`h[-1]` into a classifier, gradients and all."""
    rnn, head = lstm_as(name, num_layers=2), nn.Linear(4, 5)
    _, (h, _) = rnn(X)
    head(h[-1]).sum().backward()
    assert all(parameter.grad is not None for parameter in rnn.parameters())


@names
def test_none_passed(name):
    """`rnn(x, None)` is `rnn(x)`."""
    rnn = lstm_as(name)
    assert_same(rnn(X, None), rnn(X), atol=0)


@names
def test_zeros_passed(name):
    """`rnn(x, (h0, c0))` with zeros is `rnn(x)`."""
    rnn = lstm_as(name, num_layers=2)
    h0, c0 = torch.zeros(2, 2, 4), torch.zeros(2, 2, 4)
    assert_same(rnn(X, (h0, c0)), rnn(X), atol=1e-6)


@names
def test_state_passed_back(name):
    """Chunk by chunk, with the pair handed on as it came."""
    rnn = lstm_as(name, num_layers=2)
    first, state = rnn(X[:4])
    second, state = rnn(X[4:], state)
    assert_same((torch.cat([first, second]), state), rnn(X), atol=1e-6)


def repackage_hidden(h):
    """From PyTorch's word language model example."""
    if isinstance(h, torch.Tensor):
        return h.detach()
    return tuple(repackage_hidden(v) for v in h)


@names
def test_repackaged_state(name):
    """Truncated backpropagation: the state is cut from its past and goes on."""
    rnn = lstm_as(name)
    _, state = rnn(X[:3])
    state = repackage_hidden(state)
    assert isinstance(state, tuple)
    output, _ = rnn(X[3:], state)
    output.sum().backward()
    assert_same(output, rnn(X)[0][3:], atol=1e-6)


@names
def test_state_as_a_list(name):
    """`[s.detach() for s in state]`: nn.LSTM takes a list as well."""
    rnn = lstm_as(name)
    _, state = rnn(X[:3])
    output, _ = rnn(X[3:], [part.detach() for part in state])
    assert_same(output, rnn(X)[0][3:], atol=1e-6)


@names
def test_selected_rows_of_the_state(name):
    """Beam search reorders both halves of the pair."""
    rnn, order = lstm_as(name), torch.tensor([1, 0])
    _, (h, c) = rnn(X[:3])
    output, _ = rnn(X[3:, order], (h[:, order], c[:, order]))
    assert_same(output, rnn(X)[0][3:, order], atol=1e-6)


H0 = torch.zeros(1, 2, 4)


@pytest.mark.parametrize(
    ("state", "error", "said"),
    [
        ((H0, torch.zeros(9, 9)), ValueError, ("state must have shape [1, 2, 4]", "got [9, 9]")),
        ((H0, H0, H0), TypeError, ("a pair (h, c)", "got 3 tensors")),
        ((H0,), TypeError, ("a pair (h, c)", "got 1 tensors")),
        ((H0, None), TypeError, ("state must be made of tensors", "NoneType")),
    ],
    ids=["wrong c", "three", "one", "no c"],
)
@names
def test_a_pair_that_is_none(name, state, error, said):
    """A single state is read from h alone, but what nn.LSTM refuses is refused."""
    with pytest.raises(error, match=says(*said)):
        lstm_as(name)(X, state)


@names
def test_unbatched_pair(name):
    """One row without a batch dimension: the pair loses it, too."""
    rnn = lstm_as(name)
    output, (h, c) = rnn(X[:, 0])
    assert output.shape == (6, 4)
    assert h.shape == c.shape == (1, 4)
    again, _ = rnn(X[:, 0], (torch.zeros(1, 4), torch.zeros(1, 4)))
    assert_same(again, output, atol=1e-6)


@names
def test_packed_input(name):
    """Pack, run, pad, and take each row's own last state."""
    rnn = lstm_as(name, batch_first=True, bidirectional=True)
    packed = pack_padded_sequence(X.transpose(0, 1), [3, 6], batch_first=True, enforce_sorted=False)
    packed_output, (h, _) = rnn(packed)
    output, lengths = pad_packed_sequence(packed_output, batch_first=True)
    assert lengths.tolist() == [3, 6]
    assert_same(h[0], torch.stack([output[0, 2, :4], output[1, 5, :4]]), atol=0)
    assert not output[0, 3:].any()
    packed_again, _ = rnn(packed, (torch.zeros(2, 2, 4), torch.zeros(2, 2, 4)))
    assert_same(packed_again, packed_output, atol=1e-6)


@names
def test_copies_keep_the_pair(name):
    """The form of the state survives copying and pickling the model."""
    rnn = lstm_as(name)
    for twin in (copy.deepcopy(rnn), pickle.loads(pickle.dumps(rnn))):
        _, (h, c) = twin(X)
        assert h.shape == c.shape


@names
def test_step_speaks_the_same_pair(name):
    """Streaming with a swapped unit hands on the same kind of state."""
    rnn = lstm_as(name)
    state, outputs = None, []
    for x_t in X:
        h_t, state = rnn.step(x_t, state)
        outputs.append(h_t)
    assert_same((torch.stack(outputs), state), rnn(X), atol=1e-6)


# nn.GRU -----------------------------------------------------------------------------------------


@singles
def test_single_state_patterns(name):
    """`output, h = rnn(x)`, `h[-1]`, None, zeros, the state handed on, detached."""
    rnn = gru_as(name, num_layers=2)
    output, h = rnn(X)
    assert h.shape == (2, 2, 4)
    assert_same(h[-1], output[-1], atol=0)
    assert_same(rnn(X, None), (output, h), atol=0)
    assert_same(rnn(X, torch.zeros(2, 2, 4)), (output, h), atol=1e-6)
    first, middle = rnn(X[:3])
    second, final = rnn(X[3:], repackage_hidden(middle))
    assert_same((torch.cat([first, second]), final), (output, h), atol=1e-6)


@singles
def test_packed_single_state(name):
    """Packed input and a state in the caller's order of rows."""
    rnn = gru_as(name)
    packed = pack_padded_sequence(X, [3, 6], enforce_sorted=False)
    packed_output, h = rnn(packed, torch.zeros(1, 2, 4))
    output, _ = pad_packed_sequence(packed_output)
    assert_same(h[0], torch.stack([output[2, 0], output[5, 1]]), atol=0)


# Training ---------------------------------------------------------------------------------------


class Classifier(nn.Module):
    """The usual tutorial model."""

    def __init__(self, rnn):
        super().__init__()
        self.embed = nn.Embedding(10, 3)
        self.rnn = rnn
        self.head = nn.Linear(8, 2)

    def forward(self, tokens):
        _, state = self.rnn(self.embed(tokens))
        h = parts(state)[0]
        return self.head(torch.cat([h[-2], h[-1]], -1))


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
@names
def test_training_lowers_the_loss(name, kind):
    """One step of gradient descent on a swapped model moves every parameter and helps."""
    torch.manual_seed(0)
    model = lrn.replace(Classifier(kind(3, 4, bidirectional=True)), name, verbose=False)
    before = copy.deepcopy(model.rnn.state_dict())
    tokens, labels = torch.randint(10, (6, 8)), torch.arange(8) % 2
    loss = nn.functional.cross_entropy(model(tokens), labels)
    loss.backward()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter -= 0.1 * parameter.grad
        assert nn.functional.cross_entropy(model(tokens), labels) < loss
    assert all(not torch.equal(model.rnn.state_dict()[key], value) for key, value in before.items())


@pytest.mark.parametrize("name", lrn.UNITS)
def test_state_by_torchs_name(name):
    """torch.nn calls the state hx."""
    unit = lrn.make_unit(name, 3, 4)
    x = torch.randn(5, 2, 3)
    _, state = unit(x)
    assert torch.equal(unit(x, hx=state)[0], unit(x, state)[0])
    with pytest.raises(ValueError, match="only one"):
        unit(x, state, hx=state)

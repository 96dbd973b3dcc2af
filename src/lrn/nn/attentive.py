"""A recurrence that looks at a memory between its steps (Rocktäschel et al., 2016)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from lrn.nn.affine import Affine
from lrn.nn.packed import walk_packed
from lrn.recurrence import Memory, attend, open_memory
from lrn.units.unit import Unit, UserState, hidden


@dataclass(frozen=True)
class Walked:
    """What a walk gives: its outputs ``[N, H]`` and what was seen of the memory, ``[N, W]``, both packed; the
    rows' last states; and at each step the weights ``[rows, heads, P]`` with which it was looked at."""

    output: Tensor
    context: Tensor
    state: UserState
    weights: list[Tensor]


class AttentiveRecurrence(nn.Module):
    """Two cells a step with additive attention between them, the state handed from one to the other.

    ``s_t = lower(x_t, u_{t-1})``, ``a = softmax_j(w·tanh(A s_t + K m_j))``, ``u_t = upper(Σ a_j m_j, s_t)``;
    each head has its own slice of A s_t, K m_j and m_j, and all heads share w.

    Whatever does not depend on the walk is computed before it: the lower cell's projection of the whole
    sequence, and the keys K m_j. The sequences are packed and the memory has no padding, so that no work is
    done for what is not there.

    Args:
        lower: the cell that reads the sequence: a unit of one layer and one direction.
        upper: the cell that reads what was attended to: the same, ``memory_width`` wide at its input.
        memory_width: width of the memory.
        heads: slices that attend by themselves.
        norm: of the maps A and K: None, "layer" or "rms".
        offset: whether those norms have an offset.

    >>> import lrn
    >>> walk = AttentiveRecurrence(lrn.LRN(3, 4), lrn.LRN(6, 4), memory_width=6, heads=2)
    >>> memory = walk.open(torch.randn(5, 6), torch.tensor([0, 2, 5]), longest=3)
    >>> walked = walk(torch.randn(4, 3), [2, 1, 1], memory, torch.zeros(1, 2, 4))
    >>> walked.output.shape, [tuple(weights.shape) for weights in walked.weights]
    (torch.Size([4, 4]), [(2, 2, 3), (1, 2, 3), (1, 2, 3)])
    """

    def __init__(
        self,
        lower: Unit,
        upper: Unit,
        memory_width: int,
        heads: int = 1,
        norm: str | None = None,
        offset: bool = False,
    ) -> None:
        super().__init__()
        if memory_width % heads:
            raise ValueError(f"a memory {memory_width} wide cannot be cut into {heads} equal heads")
        for name, cell in (("lower", lower), ("upper", upper)):
            if cell.num_layers != 1 or cell.bidirectional or cell.batch_first:
                raise ValueError(f"the {name} cell must have one layer and one direction, and time first")
            if cell.residual:
                raise ValueError(f"the {name} cell cannot have a residual connection, got {cell}")
        if upper.input_size != memory_width or upper.hidden_size != lower.hidden_size:
            raise ValueError(
                f"the upper cell must read {memory_width} and have a state of {lower.hidden_size}, "
                f"got {upper.input_size} and {upper.hidden_size}"
            )
        self.lower, self.upper = lower, upper
        self.query = Affine(lower.hidden_size, memory_width, norm=norm, offset=offset)
        self.keys = Affine(memory_width, memory_width, bias=False, norm=norm, offset=offset)
        # The last number is a bias, which the softmax cancels: the paper's code has it, and counts it.
        self.score = nn.Parameter(torch.zeros(memory_width // heads + 1))
        nn.init.uniform_(self.score.detach()[:-1], -0.08, 0.08)

    def open(self, memory: Tensor, starts: Tensor, longest: int) -> Memory:
        """Make a memory ready to be looked at.

        Args:
            memory: ``[M, W]``, the states of B sequences one behind the other.
            starts: ``[B + 1]``, int64: where each begins, and the end of the last.
            longest: the greatest of their lengths.
        """
        return open_memory(self.keys(memory), memory, starts, longest)

    def step(self, projected: Tensor, state: UserState, memory: Memory) -> tuple[UserState, Tensor, Tensor]:
        """Take one step of the memory's first rows; returns their new state, what they saw of the memory,
        ``[rows, W]``, and the weights ``[rows, heads, P]``.

        Args:
            projected: the lower cell's projection, ``[rows, gates * H]``.
            state: ``[1, rows, H]``, a pair of them for LSTM and SRU.
        """
        _, low = self.lower.recur(projected.unsqueeze(0), state)  # [1, rows, H]
        context, weights = attend(memory, self.query(hidden(low)[0]), self.score[:-1])  # [rows, W]
        _, high = self.upper(context.unsqueeze(0), low)  # [1, rows, H]
        return high, context, weights

    def forward(self, x: Tensor, sizes: Sequence[int], memory: Memory, state: UserState) -> Walked:
        """Walk over packed sequences.

        Args:
            x: ``[N, I]``: the first steps of all sequences, then the second ones, …; the longest first.
            sizes: how many sequences have a first, second, … step; those without any come last.
            memory: what each sequence looks at, in the same order.
            state: of all B sequences before their first step, ``[1, B, H]``; a pair for LSTM and SRU.
        """
        projected = self.lower.project(x)  # [N, gates * H]
        assert isinstance(projected, Tensor)
        contexts: list[Tensor] = []
        weights: list[Tensor] = []

        def step(rows: Tensor, state: UserState) -> UserState:
            state, context, looked = self.step(rows, state, memory)
            contexts.append(context)
            weights.append(looked)
            return state

        outputs, state = walk_packed(step, projected, sizes, state)
        output = torch.cat(outputs) if outputs else x.new_zeros(0, self.upper.hidden_size)  # [N, H]
        context = torch.cat(contexts) if contexts else x.new_zeros(0, memory.values.shape[1])  # [N, W]
        return Walked(output, context, state, weights)

"""A loop over time that stays one in an exported graph."""

import torch

from lrn.recurrence import loop


class Sums(torch.nn.Module):
    """Sums so far, with a weight from outside the loop."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.tensor([1.0, 2.0]))

    def forward(self, x, on):
        def step(state, now):
            total = torch.where(now[1], state[0] + self.weight * now[0], state[0])
            return (total,), total

        return loop(step, (torch.zeros_like(x[0]),), (x, on))


def test_the_steps_one_after_the_other():
    x, on = torch.tensor([[1.0, 1.0], [2.0, 3.0], [4.0, 5.0]]), torch.tensor([True, False, True])
    (last,), all_sums = Sums()(x, on)
    assert all_sums.tolist() == [[1, 2], [1, 2], [5, 12]]
    assert last.tolist() == [5, 12]


def test_an_exported_loop_takes_any_number_of_steps():
    module, steps = Sums().requires_grad_(False), torch.export.Dim("steps")
    given = torch.randn(4, 2), torch.tensor([True, True, False, True])
    with torch.no_grad():
        program = torch.export.export(module, given, dynamic_shapes=({0: steps}, {0: steps}), strict=False)
    for count in (4, 1, 9):
        x, on = torch.randn(count, 2), torch.rand(count) > 0.5
        torch.testing.assert_close(program.module()(x, on), module(x, on))

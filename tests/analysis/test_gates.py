"""Gates in closed form against autograd and against the states themselves."""

import pytest
import torch
from analysis.cases import STEPS, UNITS, problem

from lrn.analysis.gates import gates_of


@pytest.mark.parametrize("name", UNITS)
def test_jacobians_against_autograd(name):
    """∂m_t/∂m_{t-1} is diagonal, and its diagonal is the closed form."""
    unit, x = problem(name)
    gates = gates_of(unit, x)
    for t in range(STEPS):

        def step(memory, t=t):
            state = (torch.zeros_like(memory)[None], memory[None]) if name == "sru" else memory[None]
            _, after = unit(x[t : t + 1], state)
            return (after[1] if name == "sru" else after)[0]

        jacobian = torch.autograd.functional.jacobian(step, gates.before[t])
        torch.testing.assert_close(jacobian, gates.jacobian[t].diag(), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("name", UNITS)
def test_memory_is_what_the_unit_computes(name):
    unit, x = problem(name)
    output, state = unit(x)
    if name == "sru":
        torch.testing.assert_close(gates_of(unit, x).memory[-1], state[1][0], rtol=1e-12, atol=1e-12)
    else:
        torch.testing.assert_close(gates_of(unit, x).memory, output, rtol=1e-12, atol=1e-12)

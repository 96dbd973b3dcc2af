"""What the paper says about LRN, computed: decomposition, memory, one-step gradients."""

from lrn.analysis.decomposition import Decomposition, decompose
from lrn.analysis.gradients import Gradients, distance_norms, gradients, norms_by_unit
from lrn.analysis.memory import Memory, memory

__all__ = [
    "Decomposition",
    "Gradients",
    "Memory",
    "decompose",
    "distance_norms",
    "gradients",
    "memory",
    "norms_by_unit",
]

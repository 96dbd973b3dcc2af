"""How the work is cut into programs: columns and warps of each, and how many steps are read ahead.

A table and no search: the first call is as fast as any other, and the same problem is always cut the same
way. The figures follow from how GPUs are built, and have not been measured on one.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Plan:
    """The columns of a program, which is one warp, and the steps that it reads ahead."""

    block: int
    ahead: int


# At least so many elements (rows x directions x columns), the first line that fits: bytes a thread reads at
# once, steps ahead. Many elements: a thread reads 16 bytes at once, the widest load there is, and the other
# warps of its processor hide how long that takes. Few: every element has a thread of its own, for there are
# more processors than work, and reading ahead is all that hides the memory's latency.
TABLE = (
    (1 << 18, 16, 2),
    (1 << 16, 8, 2),
    (0, 4, 4),
)
_EACH = 4  # elements of a thread: with more, half types do not fit into its registers
_LARGEST = 1 << 20  # block that Triton allows


def plan(elements: int, hidden: int, steps: int, size: int, warp: int = 32) -> Plan:
    """How to cut rows x directions x columns ``elements``, in rows of ``hidden``, of ``size`` bytes each.

    ``warp`` threads are a warp; 0 means that the interpreter runs one program after the other, where few
    large ones are best.

    >>> plan(elements=64 * 1024, hidden=1024, steps=512, size=4)
    Plan(block=64, ahead=2)
    """
    if not warp:
        return Plan(min(_LARGEST, 1 << (hidden - 1).bit_length()), ahead=1)
    wide, ahead = next(line for least, *line in TABLE if elements >= least)
    if size == 8:  # what is computed takes twice the registers, and its division and e^x are calls with more
        wide, ahead = 8, max(1, ahead // 2)
    block = warp * min(_EACH, max(1, wide // size))
    while block > warp and block >= 2 * hidden:  # no columns that do not exist
        block //= 2
    return Plan(block, max(1, min(ahead, steps)))

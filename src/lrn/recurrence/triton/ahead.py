"""The kernels compiled ahead of time, for GPUs that need not be here, and what the compilers say of them.

python -m lrn.recurrence.triton.ahead        # a table of all cells and types
"""

from __future__ import annotations

import functools
import re
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.backends.nvidia.compiler import get_ptxas, sm_arch_from_capability
from triton.compiler import ASTSource

from lrn.recurrence.cells import CELLS
from lrn.recurrence.triton import kernels
from lrn.recurrence.triton.cells import STEPS
from lrn.recurrence.triton.kernels import Grid
from lrn.recurrence.triton.plan import plan

TARGETS = {
    "sm_80": GPUTarget("cuda", 80, 32),
    "sm_90": GPUTarget("cuda", 90, 32),
    "sm_100": GPUTarget("cuda", 100, 32),
    "gfx942": GPUTarget("hip", "gfx942", 64),
}
TYPES = {torch.float32: "fp32", torch.float64: "fp64", torch.bfloat16: "bf16", torch.float16: "fp16"}
OPTIONAL = ("lengths", "first_row", "reset")
PASSES = ("forward", "backward")
_ALIGNED = [["tt.divisibility", 16]]  # as torch allocates, and widths that are a multiple of 16 have it


@dataclass(frozen=True)
class Kernel:
    """One kernel: which, and what it is compiled for.

    ``elements``: rows x directions x columns, for the plan.
    """

    walk: str
    cell: str
    dtype: torch.dtype = torch.float32
    target: str = "sm_80"
    given: tuple[str, ...] = ()  # of the optional arguments
    elements: int = 1 << 20

    def source(self) -> Any:
        """What triton compiles."""
        cell, function = CELLS[self.cell], getattr(kernels, self.walk)
        target, size = TARGETS[self.target], self.dtype.itemsize
        cut = plan(self.elements, 1024, 512, size, target.warp_size)
        numbers = f"*{TYPES[self.dtype]}"
        wide = tl.float64 if size == 8 else tl.float32
        name, _, activation = self.cell.partition("_")
        fixed: dict[str, Any] = {
            "STEP": getattr(STEPS[name], self.walk),
            "GATES": cell.gates,
            "VECTORS": cell.vectors,
            "OWN": cell.parts == 2,
            "TANH": activation == "tanh",
            "REVERSE": False,
            "TYPE": wide,
            "BLOCK": cut.block,
            "AHEAD": cut.ahead,
        }
        fixed |= {name: None for name in OPTIONAL if name not in self.given}
        if not cell.vectors:
            fixed |= {"weight": None, "grad_weight": None}
        if self.walk == "forward" and cell.parts == 1:
            fixed["memory"] = None
        pointers = {"lengths": "*i64", "first_row": "*i64", "steps": "i32", "batch": "i32", "hidden": "i32"}
        signature: dict[str, Any] = {}
        aligned: dict[tuple[int, ...], Any] = {}
        for n, argument in enumerate(function.arg_names):
            if argument in fixed:
                signature[argument] = "constexpr"
            elif argument in pointers:
                signature[argument] = pointers[argument]
            else:
                at = "*i1" if argument == "reset" else numbers
                signature[argument] = Grid._make((at, *("i64",) * 4))
                aligned |= {(n, k): _ALIGNED for k in range(5) if argument != "reset"}
        aligned[(function.arg_names.index("hidden"),)] = _ALIGNED
        constants = {(function.arg_names.index(a),): v for a, v in fixed.items() if a in function.arg_names}
        return ASTSource(function, signature, constants, aligned)

    def compiled(self) -> Any:
        options = {"num_warps": 1, "enable_fp_fusion": True}
        return triton.compile(self.source(), target=TARGETS[self.target], options=options)


@dataclass(frozen=True)
class Use:
    """What a compiled kernel takes of a GPU.

    Args:
        registers: of a thread.
        spilled: bytes of a thread's memory for what does not fit into them.
        shared: bytes of shared memory.
        lanes: scalar registers that AMD's compiler keeps in lanes of a vector register: they reach no memory.
    """

    registers: int
    spilled: int
    shared: int
    lanes: int = 0


@functools.cache
def used(kernel: Kernel) -> Use:
    """By NVIDIA's assembler, ``ptxas -v``, or from what AMD's compiler writes beside the code."""
    result = kernel.compiled()
    if kernel.target.startswith("gfx"):
        said = result.asm["amdgcn"]
        return Use(
            registers=_number(said, r"\.vgpr_count:\s+(\d+)"),
            spilled=_number(said, r"\.private_segment_fixed_size:\s+(\d+)"),
            shared=result.metadata.shared,
            lanes=_number(said, r"\.sgpr_spill_count:\s+(\d+)"),
        )
    target = TARGETS[kernel.target]
    program, arch = get_ptxas(target.arch).path, sm_arch_from_capability(target.arch)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "kernel.ptx")
        file.write_text(result.asm["ptx"])
        command = [program, "-v", f"-arch={arch}", str(file), "-o", str(file.with_suffix(".cubin"))]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    spilled = _number(said, r"(\d+) bytes spill stores") + _number(said, r"(\d+) bytes spill loads")
    return Use(_number(said, r"Used (\d+) registers"), spilled, result.metadata.shared)


def _number(text: str, pattern: str) -> int:
    found = re.search(pattern, text)
    if found is None:
        raise ValueError(f"the compiler says nothing of {pattern}")
    return int(found[1])


def table(target: str) -> Iterator[str]:
    """Lines of Markdown: registers a thread, forward / backward, of every cell and type, with lengths and
    borders.
    """
    yield f"| {target} | " + " | ".join(TYPES.values()) + " |"
    yield "|---" * (len(TYPES) + 1) + "|"
    for cell in CELLS:
        columns = []
        for dtype in TYPES:
            both = [used(Kernel(walk, cell, dtype, target, ("lengths", "reset"))) for walk in PASSES]
            spilled, lanes = sum(use.spilled for use in both), sum(use.lanes for use in both)
            counted = " / ".join(str(use.registers) for use in both)
            counted += f", spills {spilled} B" * (spilled > 0) + f" ({lanes} scalars in lanes)" * (lanes > 0)
            columns.append(counted)
        yield f"| {cell} | " + " | ".join(columns) + " |"


if __name__ == "__main__":
    for _target in TARGETS:
        for _line in table(_target):
            print(_line, flush=True)
        print()

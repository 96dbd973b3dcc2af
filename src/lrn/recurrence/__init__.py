"""Running an elementwise recurrence: one definition, several engines that must agree with it."""

from lrn.recurrence import registration as _registration  # noqa: F401  (registers)
from lrn.recurrence.atr import walk_atr
from lrn.recurrence.attention import Memory, attend, open_memory, padded_memory
from lrn.recurrence.cells import CELLS, Cell
from lrn.recurrence.dispatch import engine, engines, library_path
from lrn.recurrence.layer import layer, project
from lrn.recurrence.loop import loop
from lrn.recurrence.matrix import fused_layer, walk_matrix
from lrn.recurrence.ops import scan
from lrn.recurrence.rows import Rows

__all__ = [
    "CELLS",
    "Cell",
    "Memory",
    "Rows",
    "attend",
    "engine",
    "engines",
    "fused_layer",
    "layer",
    "library_path",
    "loop",
    "open_memory",
    "padded_memory",
    "project",
    "scan",
    "walk_atr",
    "walk_matrix",
]

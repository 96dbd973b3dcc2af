"""Doing something as soon as torch is imported, now or later, without importing it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType


def when_torch_is_here(then: Callable[[], object]) -> None:
    """Call ``then`` now if torch is imported, and otherwise at the end of its import."""
    if "torch" in sys.modules:
        then()
    else:
        sys.meta_path.insert(0, _Finder(then))


class _Finder:
    """Finds torch as the other finders do, and adds a call to the end of its import. It takes place once."""

    def __init__(self, then: Callable[[], object]) -> None:
        self.then = then
        self.looking = False  # others who look for torch in this way ask us, as we ask them

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != "torch" or self.looking:
            return None
        self.looking = True
        try:
            others = (finder.find_spec(name, path, target) for finder in sys.meta_path if finder is not self)
            spec = next(filter(None, others), None)
        finally:
            self.looking = False
        if spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def execute_and_call(module: ModuleType) -> None:
            execute(module)
            if self in sys.meta_path:
                sys.meta_path.remove(self)
                self.then()

        spec.loader.exec_module = execute_and_call  # type: ignore[method-assign]
        return spec

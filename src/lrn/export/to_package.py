"""A whole model compiled for this kind of machine: a package of AOTInductor, and a JSON file that says what
goes in, what comes out, and how.

``model.pt2`` runs in torch, from C++ or Python, with the library of ``lrn.library_path()``, not lrn itself.
All graphs of a model are in the one package, by name; a model's only graph is called ``model``.
A finished package is tried in a process of its own, which has no lrn, before it is put into its place.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import lrn
from lrn import tasks
from lrn.export.placing import placed
from lrn.export.to_onnx import silence
from lrn.files import write_json

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from lrn.options import Export
    from lrn.tasks.portable import Example, Graph
    from lrn.training.run import Run

ONLY = "model"  # torch's name for a package's only graph
OPTIONS = {
    "aot_inductor.package": True,
    # To compute in place of an output of a loop, inductor asks for memory of its name a second time.
    "inplace_buffers": False,
}
SECONDS = 900  # for a package to be tried, on a machine that does much else

TRIAL = """
import sys
import torch
from torch._inductor.package import load_package

library, package, given, found = sys.argv[1:]
torch.ops.load_library(library)
with torch.no_grad():
    results = {
        name: [list(model(*inputs)) for inputs in batches]
        for name, batches in torch.load(given).items()
        for model in [load_package(package, name)]
    }
torch.save(results, found)
"""


def files(run: Run, path: Path) -> list[Path]:
    """All that is written."""
    return [path, path.with_suffix(".json")]


def write(run: Run, path: Path, options: Export) -> str:
    """Write the model of a run, and check it against the run before it is put into its place."""
    check_compiler()
    library = lrn.library_path()
    portable = tasks.load(run.task).leaving(run, options.data)
    about = portable.about()
    what = f"{run.folder} ({run.task}, {run.config['unit']})"
    with placed(path) as folder:
        package = folder / path.name
        compile_graphs(portable.graphs, package, what)
        worst = tried(portable.graphs, package, library, what, path)
        for said in about["graphs"]:
            said["model"] = said["name"] or ONLY
        head = {
            "task": run.task,
            "unit": run.config["unit"],
            "lrn": lrn.__version__,
            "torch": _torch_version(),
        }
        write_json(folder / path.with_suffix(".json").name, {**head, "file": path.name, **about})
    examples = sum(len(graph.examples) for graph in portable.graphs)
    return (
        f"{path.parent}: {path.name}, {path.with_suffix('.json').name}; checked in a process without lrn "
        f"on {examples} batches of the run's data: largest difference {worst:.1e}"
    )


def check_compiler() -> None:
    """An error where there is no C++ compiler, of which AOTInductor makes use."""
    compiler = os.environ.get("CXX", "clang++" if sys.platform == "darwin" else "g++")
    if shutil.which(compiler) is None:
        raise ValueError(
            f".pt2 is compiled by a C++ compiler, and there is no {compiler} here "
            "(the environment variable CXX names another); .onnx needs none"
        )


def _torch_version() -> str:
    import torch

    return torch.__version__


def compile_graphs(graphs: Sequence[Graph], package: Path, what: str) -> None:
    """Compile graphs into one package."""
    import torch
    from torch._inductor import aot_compile
    from torch._inductor.package.package import package_aoti

    compiled: dict[str, Any] = {}
    for graph in graphs:
        # On the engine of the library, which has the ops of no other.
        with _refused(what), silence(), torch.no_grad(), lrn.engine("cpu"):
            module: Any = graph.traced().module(check_guards=False)
            name_sizes(module)
            compiled[graph.name or ONLY] = aot_compile(module, _laid_out(graph.examples[0]), options=OPTIONS)
    with _refused(what), silence():
        package_aoti(str(package), compiled)


def name_sizes(module: torch.fx.GraphModule) -> None:
    """Give every loop of a graph the open sizes of its tensors as numbers beside them.

    Inductor makes room for a loop's outputs before it begins, and knows an open size only if it is among the
    loop's inputs. torch.compile puts it there; torch.export, which has made this graph, does not.
    """
    import torch

    where = {
        str(size): (port, axis)
        for port in module.graph.find_nodes(op="placeholder")
        for axis, size in enumerate(port.meta["val"].shape)
    }
    for node in module.graph.find_nodes(op="call_function", target=torch.ops.higher_order.scan):
        step, first, steps, others = node.args
        shapes = [size for tensor in (*first, *steps, *others) for size in tensor.meta["val"].shape]
        symbols = {
            str(part) for size in shapes if not isinstance(size, int) for part in size.node.expr.free_symbols
        }
        inside, numbers = getattr(module, step.target), []
        for name in sorted(symbols):
            port, axis = where[name]
            with module.graph.inserting_before(node):
                number = module.graph.call_function(torch.ops.aten.sym_size.int, (port, axis))
            number.meta["val"] = port.meta["val"].shape[axis]
            numbers.append(number)
            with inside.graph.inserting_after(inside.graph.find_nodes(op="placeholder")[-1]):
                inside.graph.placeholder(f"size_{name}").meta["val"] = number.meta["val"]
        inside.recompile()
        node.args = (step, first, steps, (*others, *numbers))
    module.recompile()


@contextmanager
def _refused(what: str) -> Iterator[None]:
    """A block in which an error of the compiler becomes one line."""
    try:
        yield
    except (OSError, MemoryError):
        raise
    except Exception as error:
        said = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
        raise ValueError(
            f"torch {_torch_version()} cannot compile {what} ahead of time: "
            f"{type(error).__name__}: {said[:200]}; use .onnx"
        ) from error


def tried(graphs: Sequence[Graph], package: Path, library: Path, what: str, path: Path) -> float:
    """Run a package's graphs on their examples in a process without lrn; returns the largest difference."""
    from lrn.export.checks import compare

    answers = run_alone(
        package, library, {g.name or ONLY: [_laid_out(e) for e in g.examples] for g in graphs}, what
    )
    worst = 0.0
    for graph in graphs:
        batches = iter(answers[graph.name or ONLY])
        worst = max(worst, compare(graph, lambda inputs, batches=batches: next(batches), str(path)))  # type: ignore[misc]
    return worst


def _laid_out(example: Example) -> tuple[Tensor, ...]:
    """The inputs of an example as a package takes them: each in one piece of memory, without gaps."""
    return tuple(tensor.contiguous() for tensor in example.inputs)


def run_alone(
    package: Path, library: Path, inputs: dict[str, list[tuple[Tensor, ...]]], what: str
) -> dict[str, list[list[Tensor]]]:
    """What a package's models say to batches of inputs, in a process that has torch and no lrn."""
    import torch

    with tempfile.TemporaryDirectory() as room:
        given, found = Path(room, "given.pt"), Path(room, "found.pt")
        torch.save(inputs, given)
        command = [sys.executable, "-P", "-c", TRIAL, *map(str, (library, package, given, found))]
        try:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            end = f"does not end within {SECONDS} seconds"
        else:
            end = _ending(done)
        if end:
            raise ValueError(
                f"torch {_torch_version()} compiles {what} into a package that {end}; "
                "nothing was written; use .onnx"
            )
        results: dict[str, list[list[Tensor]]] = torch.load(found)
        return results


def _ending(done: subprocess.CompletedProcess[str]) -> str:
    """How a process has ended badly; "" if it has not."""
    if done.returncode == 0:
        return ""
    if done.returncode < 0:
        return f"crashes ({signal.Signals(-done.returncode).name})"
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    return f"fails: {lines[-1][:200] if lines else f'exit code {done.returncode}'}"

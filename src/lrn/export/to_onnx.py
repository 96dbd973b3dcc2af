"""A whole model as ONNX: a file a graph, and a JSON file that says what goes in, what comes out, and how.

``model.onnx`` goes with ``model.json``; a model of several graphs, as translation has, becomes
``model.encoder.onnx``, ``model.decoder.onnx`` and ``model.json``. Weights beyond what a file of ONNX can hold
lie beside it in ``model.onnx.data``.
"""

from __future__ import annotations

import importlib.util
import io
import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

import lrn
from lrn import tasks
from lrn.export.placing import placed
from lrn.files import write_json

if TYPE_CHECKING:
    from torch import Tensor

    from lrn.options import Export
    from lrn.tasks.portable import Graph
    from lrn.training.run import Run

OPSET = 18
LARGEST = 3 << 29  # bytes of weights in one file: 1.5 GiB, of the 2 GiB that the format allows
PACKAGES = ("onnx", "onnxscript", "onnxruntime")


def files(run: Run, path: Path) -> list[Path]:
    """All that may be written."""
    models = [model_file(path, name) for name in tasks.settings(run.task).graphs]
    return [*models, path.with_suffix(".json"), *map(data_file, models)]


def model_file(path: Path, graph: str) -> Path:
    """The file of one of a model's graphs.

    >>> model_file(Path("model.onnx"), "encoder").name, model_file(Path("model.onnx"), "").name
    ('model.encoder.onnx', 'model.onnx')
    """
    return path.with_suffix(f".{graph}{path.suffix}") if graph else path


def data_file(model: Path) -> Path:
    """Where the weights are that a model's file cannot hold."""
    return model.with_name(f"{model.name}.data")


def write(run: Run, path: Path, options: Export) -> str:
    """Write the model of a run, and check it against the run before it is put into its place."""
    for name in PACKAGES:
        if importlib.util.find_spec(name) is None:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    from lrn.export.checks import compare

    portable = tasks.load(run.task).leaving(run, options.data)
    worst, about = 0.0, portable.about()
    with placed(path) as folder:
        for graph, said in zip(portable.graphs, about["graphs"], strict=True):
            model, file = converted(graph, run), folder / model_file(path, graph.name).name
            save(model, file)
            worst = max(worst, compare(graph, runner(graph, file), str(model_file(path, graph.name))))
            said["file"] = file.name
        head = {"task": run.task, "unit": run.config["unit"], "lrn": lrn.__version__, "opset": OPSET}
        write_json(folder / path.with_suffix(".json").name, {**head, **about})
        written = sorted(file.name for file in folder.iterdir())
    examples = sum(len(graph.examples) for graph in portable.graphs)
    return (
        f"{path.parent}: {', '.join(written)}; "
        f"checked in onnxruntime on {examples} batches of the run's data: largest difference {worst:.1e}"
    )


def converted(graph: Graph, run: Run) -> Any:
    """A graph as an ONNX model."""
    import torch

    from lrn.onnx import translations

    # By an engine that every machine has: which one computes makes no difference to the graph.
    with silence(), lrn.engine("parallel"):
        program = torch.onnx.export(
            graph.traced(),
            dynamo=True,
            verbose=False,
            optimize=False,
            opset_version=OPSET,
            custom_translation_table=translations(),
        )
        assert program is not None
        model = tidied(program.model)
    for values, ports in ((model.graph.inputs, graph.inputs), (model.graph.outputs, graph.outputs)):
        _describe(values, ports)
    model.producer_name, model.producer_version = "lrn", lrn.__version__
    model.graph.name, model.doc_string = graph.name or "model", graph.meaning
    model.metadata_props.update({"task": run.task, "unit": str(run.config["unit"])})
    _name_apart(model)
    return model


def _describe(values: Sequence[Any], ports: Sequence[Any]) -> None:
    import onnx_ir as ir

    for value, port in zip(values, ports, strict=True):
        value.name, value.shape, value.doc_string = port.name, ir.Shape(port.axes), port.meaning


def tidied(model: Any) -> Any:
    """A model without what is used nowhere, there twice, or known beforehand, and without the maker's paths.

    The exporter's own optimizer is not used: it takes an epsilon of 1e-8 for zero, and leaves it out.
    """
    from onnx_ir.passes import Sequential, common
    from onnxscript import optimizer

    model = common.InlinePass()(model).model
    optimizer.fold_constants(model)
    tidy = Sequential(
        common.RemoveUnusedNodesPass(),
        common.RemoveUnusedFunctionsPass(),  # type: ignore[no-untyped-call]
        common.RemoveUnusedOpsetsPass(),
        common.LiftConstantsToInitializersPass(lift_all_constants=True, size_limit=0),
        common.LiftSubgraphInitializersToMainGraphPass(),
        common.DeduplicateInitializersPass(),
        common.CommonSubexpressionEliminationPass(),
        common.OutputFixPass(),
        common.ClearMetadataAndDocStringPass(),
    )
    model = tidy(model).model
    for node in model.graph.all_nodes():
        for value in node.outputs:
            value.shape = None  # in names of torch's own; a runtime works them out
    return model


def _name_apart(model: Any) -> None:
    """Give no two values one name; what goes in and comes out keeps its own."""
    from onnx_ir.passes import common

    common.NameFixPass()(model)


def save(model: Any, file: Path) -> None:
    """Write a model, with its weights beside it if there are too many for one file."""
    import onnx_ir as ir

    weights = (value.const_value for value in model.graph.initializers.values())
    apart = sum(weight.nbytes for weight in weights if weight is not None) > LARGEST
    ir.save(model, file, external_data=data_file(file).name if apart else None)


def runner(graph: Graph, file: Path) -> Any:
    """A function that runs a file in onnxruntime."""
    import onnxruntime
    import torch

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # errors
    options.intra_op_num_threads = torch.get_num_threads()
    session = onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
    names = [port.name for port in graph.outputs]

    def run(inputs: Sequence[Tensor]) -> list[Tensor]:
        given = {port.name: tensor.numpy() for port, tensor in zip(graph.inputs, inputs, strict=True)}
        return [torch.from_numpy(value) for value in session.run(names, given)]

    return run


@contextmanager
def silence() -> Iterator[None]:
    """A block in which the exporter says nothing of its own."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings(), redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)

"""``lrn doctor``: what is installed, which engines work, and whether the fast one computes what it should."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import time
from collections.abc import Iterator

import torch
from torch import Tensor

import lrn
from lrn.recurrence import dispatch, products
from lrn.units import UNITS, make_unit

# package: what it is for
PACKAGES = {
    "torch": "everything",
    "rich": "tables and progress",
    "lightning": "lrn train",
    "pyyaml": "files of settings",
    "safetensors": "lrn export, lrn import",
    "matplotlib": "pictures",
    "spacy": "words of lrn train rc",
    "sacremoses": "words of lrn train mt",
    "tokenizers": "subwords of lrn train mt",
    "sacrebleu": "BLEU of lrn train mt",
    "onnx": "lrn export to ONNX",
    "onnxscript": "lrn export to ONNX",
    "onnxruntime": "lrn export to ONNX, which it checks",
    "transformers": "word features of a BERT (--bert)",
    "h5py": "word features of an ELMo (--elmo)",
    "triton": "the engine for GPUs",
    "sru": "a peer in lrn bench",
    "tensorboard": "a second log of trainings, used where it is installed",
}
TOLERANCE = {torch.float64: 1e-12, torch.float32: 2e-6}


def report() -> Iterator[str]:
    """Lines about this installation."""
    system = f"{platform.system()} {platform.machine()}"
    yield f"lrn {lrn.__version__}, Python {platform.python_version()}, {system}"
    for package, use in PACKAGES.items():
        try:
            found = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found = "not installed"
        yield f"  {package:14} {found:14} {use}"
    missing = "".join(f" ({name}: {reason})" for name, reason in dispatch.MISSING.items())
    yield f"engines: {', '.join(lrn.engines())}{missing}"
    library = "oneDNN's (MKL would use half of this processor's width)" if products.GAINS else "torch's own"
    yield f"large float32 products: {library}"
    yield f"threads: {torch.get_num_threads()} of {os.cpu_count()} cores"
    for name in ("LRN_ENGINE", "LRN_CPU", "OMP_NUM_THREADS"):
        if name in os.environ:
            yield f"environment: {name}={os.environ[name]}"


def check(engine: str, seconds: float = 5.0, seed: int = 1) -> tuple[int, float]:
    """Run units on random problems with an engine and by definition for a while.

    Returns the number of problems and the largest difference, as a share of what is allowed; above 1
    something is wrong with the engine.
    """
    draw = torch.Generator().manual_seed(seed)
    device = place(engine)
    worst, problems = 0.0, 0
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or not problems:
        for name in UNITS:
            for dtype, allowed in TOLERANCE.items():
                steps, batch, hidden = (
                    int(torch.randint(1, top, (1,), generator=draw)) for top in (40, 6, 70)
                )
                torch.manual_seed(int(torch.randint(1 << 30, (1,), generator=draw)))
                unit = make_unit(name, 5, hidden, bidirectional=True, dtype=dtype, device=device)
                x = torch.randn(steps, batch, 5, dtype=dtype, device=device)
                ours, expected = _results(unit, x, engine), _results(unit, x, "torch")
                for a, b in zip(ours, expected, strict=True):
                    scale = float(b.abs().max().clamp_min(1))
                    worst = max(worst, float((a - b).abs().max()) / scale / allowed)
                problems += 1
    return problems, worst


def place(engine: str) -> str | None:
    """The type of device on which an engine can be checked here: its own, or one that it runs when asked."""
    found = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    here = ("cpu",) if found is None else (found.type, "cpu")
    return next((kind for kind in here if dispatch.TABLE[engine].runs(torch.device(kind))), None)


def _results(unit: torch.nn.Module, x: Tensor, engine: str) -> list[Tensor]:
    """Output and all gradients."""
    x = x.clone().requires_grad_()
    with lrn.engine(engine):
        output, _ = unit(x)
    return [output.detach(), *torch.autograd.grad(output.sin().sum(), [x, *unit.parameters()])]


def run(seconds: float) -> int:
    """Print all of it; returns the exit code: 1 if a check fails."""
    for line in report():
        print(line)
    fast = [name for name in lrn.engines() if dispatch.TABLE[name].ops and place(name)]
    if not fast:
        print("self-check: nothing to check, everything runs by definition")
    bad = 0
    for name in fast:
        problems, worst = check(name, seconds)
        verdict = "agrees with" if worst <= 1 else "DISAGREES WITH"
        bad += worst > 1
        print(
            f"self-check: the {name} engine {verdict} the definition on {problems} problems on {place(name)} "
            f"(largest difference {worst:.2g} of what is allowed)"
        )
    return 1 if bad else 0

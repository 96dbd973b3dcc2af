"""What is measured: one function for each table or row of ``results.Bench``."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence

import lrn
from lrn.bench.peers import LOOP, PEERS
from lrn.bench.results import ImportSeconds, Length, Packed, Times
from lrn.bench.timing import alternate
from lrn.bench.walks import synchronous

Shape = tuple[int, int, int]  # T, B, H

SHAPES: tuple[Shape, ...] = (
    (32, 128, 300),
    (400, 32, 64),
    (128, 64, 75),
    (70, 12, 960),
    (64, 32, 1024),
    (512, 16, 512),
    (1000, 1, 256),
    (50, 1, 300),
)
SEED = 1
_HOST = torch.device("cpu")


def label(shape: Shape) -> str:
    """A shape as it is written in tables: ``T,B,H``."""
    return ",".join(map(str, shape))


def _training(module: nn.Module, x: Tensor | PackedSequence, gradient: Tensor) -> Callable[[], object]:
    def step() -> None:
        for parameter in module.parameters():
            parameter.grad = None
        _tensor(x).grad = None
        _tensor(module(x)).backward(gradient)

    return step


def _tensor(values: Tensor | PackedSequence) -> Tensor:
    return values.data if isinstance(values, PackedSequence) else values


def _inference(module: nn.Module, x: Tensor) -> Callable[[], object]:
    def run() -> None:
        with torch.no_grad():
            module(x)

    return run


def layer(names: list[str], shape: Shape, mode: str, seconds: float, device: torch.device = _HOST) -> Times:
    """The times of one layer, input size = hidden size, float32, every peer on the same kind of input."""
    steps, batch, width = shape
    torch.manual_seed(SEED)
    calls: dict[str, Callable[[], object]] = {}
    for name in names:
        module = PEERS[name](width).to(device)
        x = torch.randn(steps, batch, width).to(device).requires_grad_(mode == "training")
        if mode == "inference":
            call = _inference(module.eval(), x)
        else:
            with torch.no_grad():
                gradient = torch.randn_like(module(x))
            call = _training(module, x, gradient)
        calls[name] = synchronous(call, x)
    return alternate(calls, seconds)


def streaming(width: int, seconds: float) -> Times:
    """The times of one step at B = 1 without gradient, the state handed on."""
    torch.manual_seed(SEED)
    unit, x = lrn.LRN(width, width), torch.randn(1, width)
    lstm, gru, sequence = nn.LSTM(width, width), nn.GRU(width, width), x.unsqueeze(0)
    calls = {
        "lrn": _stream(lambda state: unit.step(x, state)),
        "nn.LSTM": _stream(lambda state: lstm(sequence, state)),
        "nn.GRU": _stream(lambda state: gru(sequence, state)),
    }
    return alternate(calls, seconds, most=2000, repeat=20)


def _stream(step: Callable[[Any], tuple[Tensor, Any]]) -> Callable[[], object]:
    """A call that takes the next step, from the state that the last one left."""
    state: Any = None

    def call() -> None:
        nonlocal state
        with torch.no_grad():
            _, state = step(state)

    return call


def snli_lengths(batch: int) -> Tensor:
    """The lengths of sentences like SNLI's: 5 to 60, mean about 14."""
    generator = torch.Generator().manual_seed(SEED)
    spread = torch.distributions.Exponential(1 / 9.0)
    with torch.random.fork_rng():
        torch.manual_seed(int(torch.randint(1 << 30, (1,), generator=generator)))
        lengths = 5 + spread.sample((batch,))
    return lengths.round().long().clamp(5, 60)


def packed(seconds: float, batch: int = 128, width: int = 300) -> Packed:
    """Training steps of LRN on a packed batch, and on the same batch padded."""
    lengths = snli_lengths(batch).sort(descending=True).values
    steps = int(lengths[0])
    torch.manual_seed(SEED)
    module = PEERS["lrn"](width)
    padded = torch.randn(steps, batch, width)
    sequence = pack_padded_sequence(padded, lengths)
    leaf = sequence.data.detach().requires_grad_()
    calls = {
        "packed": _training(module, sequence._replace(data=leaf), torch.randn(leaf.shape[0], width)),
        "padded": _training(module, padded.requires_grad_(), torch.randn(steps, batch, width)),
    }
    real, mean = int(lengths.sum()), float(lengths.float().mean())
    return Packed(
        **alternate(calls, seconds), real_tokens=real, padded_tokens=steps * batch, mean_length=mean
    )


@contextmanager
def _threads(count: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def threads(shape: Shape, seconds: float) -> dict[str, Times]:
    """Training steps by the number of threads: one, and all."""
    result = {}
    for count in sorted({1, torch.get_num_threads()}):
        with _threads(count):
            result[str(count)] = layer(["lrn", "nn.LSTM"], shape, "training", seconds)
    return result


def long_sequences(seconds: float, batch: int = 4, width: int = 128) -> dict[str, Length]:
    """The time and peak memory of a training step per token, by the length of the sequence."""
    torch.manual_seed(SEED)
    module = PEERS["lrn"](width)
    calls, inputs = {}, {}
    for steps in (128, 512, 1024, 4096, 16384, 65536):
        x = torch.randn(steps, batch, width, requires_grad=True)
        inputs[steps] = x
        calls[str(steps)] = _training(module, x, torch.randn(steps, batch, width))
    times = alternate(calls, seconds)
    result = {}
    for steps, x in inputs.items():
        tokens = steps * batch
        taken, peak = times[str(steps)], peak_bytes(calls[str(steps)], x)
        result[str(steps)] = Length(taken.median / tokens, peak / tokens, taken.rounds)
    return result


def peak_bytes(call: Callable[[], object], x: Tensor) -> int:
    """The most memory that one call holds at a time, beyond what was there before it."""
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")
    x.grad = None
    activities = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=activities, profile_memory=True) as profile:
        call()
    inner: Any = profile.profiler
    events = [(e.start_ns(), e.nbytes()) for e in inner.kineto_results.events() if e.name() == "[memory]"]
    now = peak = 0
    for _, change in sorted(events):
        now += change
        peak = max(peak, now)
    return peak


def saved_numbers(steps: int = 256, batch: int = 4, width: int = 128) -> dict[str, float]:
    """The numbers that each peer keeps for the backward pass per token, beyond input and parameters: what is
    kept in another form, as oneDNN's workspace of bytes, by the float32 numbers that take its place."""
    result = {}
    x = torch.randn(steps, batch, width, requires_grad=True)
    for name in ("lrn", "olrn", "sru", "atr", "nn.LSTM", "nn.GRU", LOOP):
        module = PEERS[name](width)
        kept: dict[int, int] = {}
        known = {t.untyped_storage().data_ptr() for t in (x, *module.parameters())}

        def pack(tensor: Tensor, kept: dict[int, int] = kept, known: set[int] = known) -> Tensor:
            where = tensor.untyped_storage().data_ptr()
            if where not in known:
                kept[where] = tensor.untyped_storage().nbytes() // x.element_size()
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            module(x)
        result[name] = sum(kept.values()) / (steps * batch)
    return result


def import_seconds(rounds: int = 5) -> ImportSeconds:
    """What ``import lrn`` and touching a unit add to ``import torch``, the best of several processes."""
    code = (
        "import time; a = time.perf_counter(); import torch; b = time.perf_counter(); import lrn; lrn.LRN; "
        "print(b - a, time.perf_counter() - b)"
    )
    runs = []
    for _ in range(rounds):
        output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        runs.append([float(part) for part in output.stdout.split()])
    return ImportSeconds(torch=min(run[0] for run in runs), lrn=min(run[1] for run in runs))

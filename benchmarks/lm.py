"""Speed and memory of the language model: ``.venv/bin/python benchmarks/lm.py [--preset small]``.

Training steps of all units take turns on the same random words; so do their recurrent layers alone. Then the
peak memory of the mixture of softmaxes in the paper's size, in chunks and in one piece.
"""

from __future__ import annotations

import argparse
import subprocess
import sys

import torch

from lrn.bench.timing import alternate
from lrn.names import UNITS
from lrn.nn import softmax
from lrn.tasks.lm.config import PRESETS, LMConfig
from lrn.tasks.lm.model import LanguageModel, regularisation

WORDS = 10_000  # as in Penn Treebank


def training_step(model: LanguageModel, config: LMConfig, text: torch.Tensor) -> None:
    features, _ = model(text[:-1])
    loss = model.loss(features, text[1:]) + regularisation(features, config.ar, config.tar)
    loss.backward()
    for parameter in model.parameters():
        parameter.grad = None


def recurrent_part(model: LanguageModel, x: torch.Tensor) -> None:
    for layer in model.layers:
        x, _ = layer(x)
    x.sum().backward()


def speed(preset: str, units: list[str], seconds: float) -> None:
    torch.manual_seed(1)
    whole, recurrent = {}, {}
    for unit in units:
        config = LMConfig(**PRESETS[preset] | {"unit": unit})
        model = LanguageModel(config, WORDS)
        text = torch.randint(WORDS, (config.bptt + 1, config.batch_size))
        x = torch.randn(config.bptt, config.batch_size, config.embedding, requires_grad=True)
        whole[unit] = lambda model=model, config=config, text=text: training_step(model, config, text)
        recurrent[unit] = lambda model=model, x=x: recurrent_part(model, x)
    tokens = config.bptt * config.batch_size
    print(f"preset {preset}, {torch.get_num_threads()} threads, {tokens} words a step; medians, taking turns")
    print(f"{'unit':6} {'tokens/s':>10} {'to lrn':>8} {'recurrent part':>16} {'to lrn':>8}")
    times = [alternate(calls, seconds) for calls in (whole, recurrent)]
    for unit in units:
        step, part = (t[unit].median for t in times)
        ratio = [t[unit].median / t["lrn"].median for t in times]
        print(f"{unit:6} {tokens / step:10,.0f} {ratio[0]:7.2f}x {part * 1e3:13.2f} ms {ratio[1]:7.2f}x")


def memory(chunk: int) -> None:
    """In a process of its own: peak memory of one loss and its gradient in the size of ``paper-ptb``."""
    import resource

    config = LMConfig(**PRESETS["paper-ptb"])
    head = softmax.MixtureOfSoftmaxes(config.last, config.embedding, WORDS, config.experts)
    table = torch.randn(WORDS, config.embedding, requires_grad=True)
    x = torch.randn(config.bptt, config.batch_size, config.last, requires_grad=True)
    target = torch.randint(WORDS, x.shape[:2])
    softmax.CHUNK = 1 << 16
    head.loss(x[:2], table, target[:2]).backward()  # so that torch's own memory is there before we look
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    softmax.CHUNK = chunk
    head.loss(x, table, target).backward()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    logits = target.numel() * config.experts * WORDS * 4
    print(
        f"chunks of {chunk:>11,} logits: {peak / 1024:7,.0f} MB more (all logits: {logits / 2**20:,.0f} MB)"
    )


def plain_memory() -> None:
    """The same by plain autograd over all logits at once."""
    import resource

    config = LMConfig(**PRESETS["paper-ptb"])
    head = softmax.MixtureOfSoftmaxes(config.last, config.embedding, WORDS, config.experts)
    table = torch.randn(WORDS, config.embedding, requires_grad=True)
    x = torch.randn(config.bptt, config.batch_size, config.last, requires_grad=True)
    target = torch.randint(WORDS, x.shape[:2])
    (-head(x[:2], table).mean()).backward()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    log_probabilities = head(x, table)
    (-log_probabilities.gather(-1, target.unsqueeze(-1)).mean()).backward()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    print(f"all at once, by autograd:       {peak / 1024:7,.0f} MB more")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--preset", default="small", choices=list(PRESETS))
    parser.add_argument("--units", default=",".join(UNITS))
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--memory", default="", help="only this measurement, in this process")
    given = parser.parse_args()
    if given.memory == "plain":
        return plain_memory()
    if given.memory:
        return memory(int(given.memory))
    speed(given.preset, given.units.split(","), given.seconds)
    for what in (str(softmax.CHUNK), "plain"):
        subprocess.run([sys.executable, __file__, "--memory", what], check=True)


if __name__ == "__main__":
    main()

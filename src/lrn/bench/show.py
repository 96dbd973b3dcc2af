"""The tables on the terminal, and the one picture."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from lrn.bench import walks
from lrn.bench.results import Bench, Times, Walk
from lrn.files import write_whole
from lrn.report import palette

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def ratios(row: Times) -> dict[str, float]:
    """The time of every peer in a row, relative to LRN's."""
    return {name: time.median / row["lrn"].median for name, time in row.items()}


def geometric_mean(values: Iterable[float]) -> float:
    """The mean of factors: what doubles and what halves cancel out."""
    logs = [math.log(value) for value in values]
    return math.exp(sum(logs) / len(logs))


def print_tables(result: Bench, console: Console) -> None:
    """Print whatever was measured."""
    for mode, rows in (("training", result.training), ("inference", result.inference)):
        if rows:
            console.print(_layer_table(mode, rows))
    for times in result.streaming.values():
        console.print(_streaming_table(times))
    for packed in result.packed.values():
        console.print(
            f"packed: {packed.real_tokens:,} real of {packed.padded_tokens:,} padded tokens "
            f"({packed.share:.3f}); time packed/padded {packed.ratio:.3f}, "
            f"which is {packed.ratio / packed.share:.2f}x its share"
        )
    if result.threads:
        console.print(_threads_table(result.threads))
    for lengths in result.long.values():
        table = Table("T", "ns per token", "bytes per token", title="long sequences: training, B=4, H=128")
        for steps, row in lengths.items():
            table.add_row(steps, f"{row.time_per_token * 1e9:.0f}", f"{row.bytes_per_token:.0f}")
        console.print(table)
    for saved in result.saved.values():
        table = Table("layer", "numbers", "in units of H", title="kept for backward, per token, H=128")
        for name, numbers in saved.items():
            table.add_row(name, f"{numbers:.0f}", f"{numbers / 128:.2f}")
        console.print(table)
    if result.walks:
        console.print(walk_table(result.walks))
    if result.import_seconds:
        taken = result.import_seconds
        console.print(f"import torch {taken.torch:.2f} s, import lrn {taken.lrn:.2f} s more")


def _layer_table(mode: str, rows: dict[str, Times]) -> Table:
    names = list(next(iter(rows.values())))
    table = Table("T,B,H", "lrn ms", *names[1:], title=f"{mode}: time relative to LRN")
    for shape, row in rows.items():
        ratio = ratios(row)
        table.add_row(shape, f"{row['lrn'].median * 1e3:.2f}", *(f"{ratio[name]:.2f}" for name in names[1:]))
    if len(rows) > 1:
        means = [geometric_mean(ratios(row)[name] for row in rows.values()) for name in names[1:]]
        table.add_section()
        table.add_row("geometric mean", "", *(f"{mean:.2f}" for mean in means))
    return table


def walk_table(shapes: Mapping[str, Mapping[str, Walk | None]]) -> Table:
    """The walk alone, in microseconds forward / backward: floors by traffic and latency, and what was
    measured.

    With None in the place of a measurement the table predicts, and needs no device.
    """
    chips = [chip.name for chip in walks.CHIPS]
    heads = ("T,B,H", "cell", *(f"{name}, floor" for name in chips), *(f"{name}, product" for name in chips))
    table = Table(*heads, "measured", "product", title="the walk alone: µs forward / backward")
    for shape, rows in shapes.items():
        steps, batch, hidden = map(int, shape.split(","))
        for cell, row in rows.items():
            sizes = (steps, batch, hidden)
            floors = [_both(*walks.floors(cell, sizes, chip)) for chip in walks.CHIPS]
            products = [f"{1e6 * walks.product(cell, sizes, chip):.0f}" for chip in walks.CHIPS]
            measured = ("", "")
            if row is not None:
                taken = _both(row.forward.median, row.backward.median)
                measured = (taken, f"{1e6 * row.projection.median:.0f}")
            table.add_row(shape, cell, *floors, *products, *measured)
    return table


def _both(forward: float, backward: float) -> str:
    return f"{1e6 * forward:.0f} / {1e6 * backward:.0f}"


def _streaming_table(times: Times) -> Table:
    table = Table("step", "microseconds", "x LRN", title="streaming: one step, B=1, H=256, no gradient")
    for name, ratio in ratios(times).items():
        table.add_row(name, f"{times[name].median * 1e6:.1f}", f"{ratio:.2f}")
    return table


def _threads_table(shapes: dict[str, dict[str, Times]]) -> Table:
    table = Table("shape", "threads", "lrn ms", "nn.LSTM ms", title="threads: training step")
    for shape, counts in shapes.items():
        for count, row in counts.items():
            table.add_row(shape, count, *(f"{row[name].median * 1e3:.2f}" for name in ("lrn", "nn.LSTM")))
    return table


def draw(result: Bench, path: Path) -> Path | None:
    """Draw the time of a training step relative to LRN's, by shape; None without matplotlib."""
    try:
        from matplotlib.figure import Figure
        from matplotlib.ticker import FuncFormatter
    except ModuleNotFoundError:
        return None
    rows = result.training
    figure = Figure(figsize=(max(7.2, 1.5 * len(rows)), 4.8), layout="constrained")
    axes = figure.add_subplot()
    _bars(axes, rows)
    axes.axhline(1, color="black", linewidth=0.8)
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}x"))
    axes.yaxis.set_minor_formatter(
        FuncFormatter(lambda value, _: f"{value:g}x" if value in (2, 5, 20) else "")
    )
    axes.set_xticks(range(len(rows)), [f"T={t} B={b}\nH={h}" for t, b, h in (s.split(",") for s in rows)])
    axes.set_ylabel("time of a training step, LRN = 1")
    axes.spines[["top", "right"]].set_visible(False)
    where = result.machine
    axes.set_title(
        "One layer, forward and backward, float32\n"
        + (where.device if where.device != "cpu" else f"{where.processor}, {where.threads} threads")
        + f", torch {where.torch}",
        fontsize=10,
        loc="left",
    )
    axes.legend(ncols=5, loc="upper left", fontsize=8, frameon=False, bbox_to_anchor=(0, -0.14))
    write_whole(path, lambda file: figure.savefig(file, format="png", dpi=150))
    return path


def _bars(axes: Axes, rows: dict[str, Times]) -> None:
    """A bar for each peer in its unit's colour, hatched beside the unit itself."""
    names = list(next(iter(rows.values())))
    width = 0.84 / len(names)
    for place, name in enumerate(names):
        unit = palette.unit_of(name)
        axes.bar(
            [shape - 0.42 + width * (place + 0.5) for shape in range(len(rows))],
            [ratios(row)[name] for row in rows.values()],
            width,
            label=name,
            color=palette.colour(name),
            hatch="//////" if unit != name and unit in names else None,
            edgecolor="white",
            linewidth=0,
        )

"""The tables on the terminal, and the one picture."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from lrn.bench.peers import FLOOR, LOOP, SRU_PACKAGE

# A colour-blind safe set (Okabe and Ito's), LRN's own first.
COLOURS = {
    "lrn": "#D55E00",
    "olrn": "#E69F00",
    "sru": "#56B4E9",
    "atr": "#009E73",
    "nn.LSTM": "#0072B2",
    "nn.GRU": "#CC79A7",
    LOOP: "#F0E442",
    SRU_PACKAGE: "#000000",
    FLOOR: "#999999",
}


def ratios(row: dict[str, Any]) -> dict[str, float]:
    """Time relative to LRN's, of every peer in a row."""
    return {name: t["median"] / row["lrn"]["median"] for name, t in row.items()}


def geometric_mean(values: Iterable[float]) -> float:
    logs = [math.log(value) for value in values]
    return math.exp(sum(logs) / len(logs))


def print_tables(result: dict[str, Any], console: Console) -> None:
    for mode in ("training", "inference"):
        if mode in result:
            console.print(_layer_table(mode, result[mode]))
    if "streaming" in result:
        row = result["streaming"]["1,1,256"]
        table = Table("step", "microseconds", "x LRN", title="streaming: one step, B=1, H=256, no gradient")
        for name, ratio in ratios(row).items():
            table.add_row(name, f"{row[name]['median'] * 1e6:.1f}", f"{ratio:.2f}")
        console.print(table)
    if "packed" in result:
        for row in result["packed"].values():
            share = row["real_tokens"] / row["padded_tokens"]
            time = row["packed"]["median"] / row["padded"]["median"]
            console.print(
                f"packed: {row['real_tokens']:,} real of {row['padded_tokens']:,} padded tokens "
                f"({share:.3f}); time packed/padded {time:.3f}, which is {time / share:.2f}x its share"
            )
    if "threads" in result:
        table = Table("shape", "threads", "lrn ms", "nn.LSTM ms", title="threads: training step")
        for shape, counts in result["threads"].items():
            for count, row in counts.items():
                table.add_row(shape, count, *(f"{row[n]['median'] * 1e3:.2f}" for n in ("lrn", "nn.LSTM")))
        console.print(table)
    if "long" in result:
        table = Table("T", "ns per token", "bytes per token", title="long sequences: training, B=4, H=128")
        for steps, row in next(iter(result["long"].values())).items():
            table.add_row(steps, f"{row['time_per_token'] * 1e9:.0f}", f"{row['bytes_per_token']:.0f}")
        console.print(table)
    if "saved" in result:
        table = Table("layer", "numbers", "in units of H", title="kept for backward, per token, H=128")
        for name, numbers in next(iter(result["saved"].values())).items():
            table.add_row(name, f"{numbers:.0f}", f"{numbers / 128:.2f}")
        console.print(table)
    if "import" in result:
        seconds = result["import"]["seconds"]
        console.print(f"import torch {seconds['torch']:.2f} s, import lrn {seconds['lrn']:.2f} s more")


def _layer_table(mode: str, rows: dict[str, Any]) -> Table:
    names = list(next(iter(rows.values())))
    table = Table("T,B,H", "lrn ms", *names[1:], title=f"{mode}: time relative to LRN")
    for shape, row in rows.items():
        ratio = ratios(row)
        table.add_row(
            shape, f"{row['lrn']['median'] * 1e3:.2f}", *(f"{ratio[name]:.2f}" for name in names[1:])
        )
    if len(rows) > 1:
        means = [geometric_mean(ratios(row)[name] for row in rows.values()) for name in names[1:]]
        table.add_section()
        table.add_row("geometric mean", "", *(f"{mean:.2f}" for mean in means))
    return table


def draw(result: dict[str, Any], path: Path) -> Path | None:
    """Bars: a training step's time relative to LRN, per shape. Nothing without matplotlib."""
    try:
        import matplotlib
    except ModuleNotFoundError:
        return None
    matplotlib.use("Agg")
    from matplotlib import pyplot
    from matplotlib.ticker import FuncFormatter

    rows = result["training"]
    names = [name for name in COLOURS if name in next(iter(rows.values()))]
    figure, axes = pyplot.subplots(figsize=(max(5.0, 1.5 * len(rows)), 4.6), layout="constrained")
    width = 0.84 / len(names)
    for i, name in enumerate(names):
        values = [ratios(row)[name] for row in rows.values()]
        places = [shape - 0.42 + width * (i + 0.5) for shape in range(len(rows))]
        axes.bar(places, values, width, label=name, color=COLOURS[name])
    axes.axhline(1, color="black", linewidth=0.8)
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}x"))
    axes.yaxis.set_minor_formatter(
        FuncFormatter(lambda value, _: f"{value:g}x" if value in (2, 5, 20) else "")
    )
    axes.set_xticks(range(len(rows)), [f"T={t} B={b}\nH={h}" for t, b, h in (s.split(",") for s in rows)])
    axes.set_ylabel("time of a training step, LRN = 1")
    axes.spines[["top", "right"]].set_visible(False)
    where = result["machine"]
    axes.set_title(
        f"One layer, forward and backward, float32 · {where['processor']}, {where['threads']} threads, "
        f"torch {where['torch']}",
        fontsize=10,
    )
    axes.legend(ncols=5, loc="upper left", fontsize=8, frameon=False, bbox_to_anchor=(0, -0.14))
    temporary = path.with_suffix(".part.png")
    figure.savefig(temporary, dpi=150)
    pyplot.close(figure)
    temporary.replace(path)
    return path

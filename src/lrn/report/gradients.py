"""The figure of how gradients travel back through time: the paper's section 5, drawn."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path

from lrn.files import write_whole

# Okabe and Ito's colours, told apart by all eyes; units of a kind share a pattern
STYLES: dict[str, tuple[str, str]] = {
    "nn.RNN": ("#999999", ":"),
    "lstm": ("#0072b2", "--"),
    "gru": ("#56b4e9", "--"),
    "atr": ("#009e73", "-."),
    "sru": ("#cc79a7", "-."),
    "olrn": ("#e69f00", "-"),
    "lrn": ("#d55e00", "-"),
}
LEAST = 1e-12  # what is smaller is gone


def draw(norms: Mapping[str, Sequence[float]], path: Path, title: str) -> None:
    """A line a unit: ``norms[unit][n]`` is that of ``∂h_T / ∂h_{T-n}``. PNG or SVG, by the name."""
    import matplotlib
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 4.4), layout="constrained")
    with matplotlib.rc_context({"font.size": 9, "svg.fonttype": "none"}):
        axes = figure.add_subplot()
        for unit, values in norms.items():
            ink, dashes = STYLES.get(unit, ("#000000", "-"))
            width = 2.4 if unit == "lrn" else 1.5
            axes.plot(values, color=ink, linestyle=dashes, linewidth=width, label=unit)
        axes.axhline(1.0, color="#bbbbbb", linewidth=0.8, zorder=0)
        axes.set_yscale("log")
        axes.set_ylim(bottom=LEAST)
        axes.set_xlabel("distance n, in steps")
        axes.set_ylabel(r"norm of $\partial h_T\,/\,\partial h_{T-n}$")
        axes.set_title(title, fontsize=10, loc="left")
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, ncols=2)
    found = io.BytesIO()
    figure.savefig(found, format=path.suffix[1:].lower(), dpi=160)
    write_whole(path, lambda file: file.write(found.getvalue()))

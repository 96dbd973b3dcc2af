"""The figure of how gradients travel back through time: the paper's section 5, drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import fill

from lrn.files import write_whole
from lrn.report import palette

LEAST = 1e-12  # what is smaller is gone
MEANING = (
    "each curve is how much of a gradient is left n steps back in time: one that falls vanishes (what is far "
    "back cannot be learnt from), one that stays at 1 loses nothing, one that rises explodes"
)


def draw(norms: Mapping[str, Sequence[float]], path: Path, title: str) -> None:
    """Draw a line for each unit, ``norms[unit][n]`` being that of ``∂h_T / ∂h_{T-n}``, as PNG or SVG.

    What the curves mean stands below them.
    """
    import matplotlib
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 4.4), layout="constrained")
    with matplotlib.rc_context({"font.size": 9, "svg.fonttype": "none"}):
        axes = figure.add_subplot()
        for unit, values in norms.items():
            ink, pattern = palette.colour(unit), palette.dashes(unit)
            width = 2.4 if unit == "lrn" else 1.5
            axes.plot(values, color=ink, linestyle=pattern, linewidth=width, label=unit)
        axes.axhline(1.0, color=palette.FAINT, linewidth=0.8, zorder=0)
        axes.set_yscale("log")
        axes.set_ylim(bottom=LEAST)
        axes.set_xlabel("distance n, in steps")
        axes.set_ylabel(r"norm of $\partial h_T\,/\,\partial h_{T-n}$")
        axes.set_title(title, fontsize=10, loc="left")
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, ncols=2)
        figure.supxlabel(fill(MEANING, 105), fontsize=8, color=palette.OTHER)
        write_whole(path, lambda file: figure.savefig(file, format=path.suffix[1:].lower(), dpi=160))

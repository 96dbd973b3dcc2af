"""The figure of a unit's memory: a curve for every word, from where it stands to the end of the document.

One drawing serves all: PNG and SVG files, the page in which one can point at words, and the report.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from lrn.files import write_whole
from lrn.report import palette

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from lrn.analysis import Memory

# Curves that are named have a pattern of their own beside their colour, for print without colour.
DASHES = ("-", "--", "-.", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 1)))
WORDS_ON_AXIS = 90  # beyond that positions are numbered


class Remembered(Protocol):
    """What a task that classifies texts finds about one of them."""

    @property
    def words(self) -> Sequence[str]: ...

    @property
    def memory(self) -> Memory: ...

    @property
    def label(self) -> str: ...

    @property
    def probabilities(self) -> Mapping[str, float]: ...

    @property
    def both_directions(self) -> bool: ...


@dataclass(frozen=True)
class Picture:
    """All that the picture of a document's memory shows.

    Args:
        words: the document.
        curves: the weight of word k in the state after word t as ``curves[k][t]``, for t ≥ k.
        half_life: the steps until each word's weight has fallen to half; inf if it never does.
        title: the prediction.
        top: how many of the words remembered best are coloured and named.
    """

    words: Sequence[str]
    curves: Sequence[Sequence[float]]
    half_life: Sequence[float]
    title: str
    top: int = 5

    @classmethod
    def of(cls, remembered: Remembered, top: int = 5) -> Picture:
        """The picture of what a task found."""
        label = remembered.label
        part = ", forward direction" if remembered.both_directions else ""
        title = f"predicted: {label} ({remembered.probabilities[label]:.3f}){part}"
        memory = remembered.memory
        return cls(remembered.words, memory.curves.tolist(), memory.half_life.tolist(), title, top)

    @property
    def ranking(self) -> list[int]:
        """The words by what is left of them at the end, most first."""
        return sorted(range(len(self.words)), key=lambda k: (-self.curves[k][-1], k))


def write(picture: Picture, path: Path) -> None:
    """Write the picture in the form that the file's name asks for."""
    write_whole(path, lambda file: file.write(FORMS[path.suffix.lower()](picture)))


def _figure(picture: Picture) -> Figure:
    import matplotlib
    from matplotlib.figure import Figure

    steps = len(picture.words)
    size = (min(16.0, max(6.5, 1.8 + 0.21 * steps)), 4.6)
    figure = Figure(figsize=size, layout="constrained")
    with matplotlib.rc_context({"font.size": 9}):
        axes = figure.add_subplot()
        _curves(axes, picture)
        _names(axes, picture)
        axes.set_title(picture.title, fontsize=10, loc="left")
        axes.set_ylabel("weight in the state")
        axes.set_ylim(bottom=0)
        axes.set_xlim(-0.5, steps - 0.5)
        axes.spines[["top", "right"]].set_visible(False)
        if steps <= WORDS_ON_AXIS:
            height = 8.0 if steps <= 64 else 6.5
            marks = axes.set_xticks(range(steps), [_plain(word) for word in picture.words], rotation=90)
            for tick in marks:
                tick.label1.set_fontsize(height)
        else:
            axes.set_xlabel("word")
    return figure


def _curves(axes: Axes, picture: Picture) -> None:
    best = picture.ranking[: picture.top]
    for k in range(len(picture.words)):
        place = range(k, len(picture.words))
        marker = "." if k == len(picture.words) - 1 else None  # of a single point no line is seen
        (line,) = axes.plot(place, picture.curves[k][k:], gid=f"curve-{k}", marker=marker)
        if k in best:
            rank = best.index(k)
            line.set(color=_ink(rank), linewidth=2.0, linestyle=DASHES[rank % len(DASHES)], zorder=3)
        else:
            line.set(color=palette.FAINT, linewidth=0.8, alpha=0.75)


def _ink(rank: int) -> str:
    return palette.RANKS[rank % len(palette.RANKS)]


def _names(axes: Axes, picture: Picture) -> None:
    """The best remembered words at the right end of their curves, moved apart where they would touch."""
    best = sorted(picture.ranking[: picture.top], key=lambda k: picture.curves[k][-1])
    highest = max(max(curve) for curve in picture.curves) or 1.0
    last = -1.0
    for k in best:
        place = max(picture.curves[k][-1] / highest, last + 0.055)
        last = place
        ink = _ink(picture.ranking.index(k))
        axes.annotate(
            f"{_plain(picture.words[k])} ({k + 1})",
            (1.01, place * highest / (axes.get_ylim()[1])),
            xycoords=("axes fraction", "axes fraction"),
            color=ink,
            va="center",
            fontsize=9,
            annotation_clip=False,
        )


def _plain(word: str) -> str:
    """A word that matplotlib does not take for mathematics, and not endless."""
    return (word if len(word) <= 16 else f"{word[:15]}…").replace("$", r"\$")


def png(picture: Picture) -> bytes:
    """The picture as PNG."""
    found = io.BytesIO()
    _figure(picture).savefig(found, format="png", dpi=160)
    return found.getvalue()


def svg(picture: Picture) -> bytes:
    """The picture as SVG, the same bytes for the same picture."""
    import matplotlib

    found = io.BytesIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "lrn", "font.family": "sans-serif"}):
        _figure(picture).savefig(found, format="svg", metadata={"Date": None, "Creator": None})
    return found.getvalue()


def inline(picture: Picture) -> str:
    """The SVG to put into a page."""
    text = svg(picture).decode()
    return text[text.index("<svg") :]


def table(picture: Picture) -> bytes:
    """The weights as CSV, a line for every word and every later position."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["word", "position", "at", "weight"])
    for k, word in enumerate(picture.words):
        for t in range(k, len(picture.words)):
            writer.writerow([word, k + 1, t + 1, f"{picture.curves[k][t]:.6g}"])
    return out.getvalue().encode()


def data(picture: Picture) -> bytes:
    """The weights as JSON; ``ranking`` has first what the last state remembers best."""
    content = {
        "title": picture.title,
        "words": list(picture.words),
        "curves": [list(curve[k:]) for k, curve in enumerate(picture.curves)],
        "half_life": [None if value == float("inf") else value for value in picture.half_life],
        "ranking": picture.ranking,
    }
    return (json.dumps(content, ensure_ascii=False) + "\n").encode()


STYLE = (
    f":root {{ color-scheme: light dark; --accent: {palette.ACCENT} }}"
    + """
body { margin: 0 auto; max-width: 1160px; padding: 1.2rem; font: 16px/1.6 system-ui, sans-serif }
h1 { font-size: 1.2rem } figure { margin: 1rem 0; background: #fff; border-radius: 6px; overflow-x: auto }
svg { display: block; width: 100%; min-width: 640px; height: auto }
p.words span { padding: .1em .15em; border-radius: 4px; cursor: default; outline-offset: 1px }
p.words span:hover, p.words span:focus { outline: 2px solid var(--accent) }
p.note { color: gray; font-size: .85rem }
svg.pointing [id^=curve-] { opacity: .12 } svg.pointing .lit { opacity: 1 }
svg .lit path { stroke: var(--accent) !important; stroke-width: 3 !important;
  stroke-dasharray: none !important; stroke-opacity: 1 !important }
"""
)
SCRIPT = """
const svg = document.querySelector("svg"), said = document.querySelector("#said");
const light = (k) => {
  svg.querySelectorAll(".lit").forEach((e) => e.classList.remove("lit"));
  svg.classList.toggle("pointing", k !== null);
  said.textContent = k === null ? " " : document.querySelector(`[data-word="${k}"]`).title;
  if (k !== null) document.getElementById(`curve-${k}`).classList.add("lit");
};
document.querySelectorAll("[data-word]").forEach((word) => {
  const k = word.dataset.word;
  for (const on of ["mouseenter", "focus"]) word.addEventListener(on, () => light(k));
  for (const off of ["mouseleave", "blur"]) word.addEventListener(off, () => light(null));
});
svg.querySelectorAll("[id^=curve-]").forEach((curve) => {
  const k = curve.id.slice(6);
  curve.addEventListener("mouseenter", () => light(k));
  curve.addEventListener("mouseleave", () => light(null));
});
"""


def page(picture: Picture) -> bytes:
    """A page that needs nothing else: point at a word, and its curve lights up."""
    title = escape(picture.title)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<link rel="icon" href="data:,"><style>{STYLE}</style></head><body><h1>{title}</h1>'
        f'<p class="words">{" ".join(_spans(picture))}</p><p class="note" id="said"> </p>'
        f"<figure>{inline(picture)}</figure>"
        '<p class="note">Each curve is a word: how much of it is in the state, from where it stands to the '
        "end. The darker a word above, the more of it is left at the end. Point at one to see its curve.</p>"
        f"<script>{SCRIPT}</script></body></html>\n"
    ).encode()


def _spans(picture: Picture) -> list[str]:
    most = max(curve[-1] for curve in picture.curves) or 1.0
    spans = []
    for k, word in enumerate(picture.words):
        left, half = picture.curves[k][-1], picture.half_life[k]
        lasting = "more than the rest of the text" if half == float("inf") else f"{half:.0f} words"
        about = f"{word} ({k + 1}): {left:.4f} left at the end; half-life {lasting}"
        shade = f"background: {palette.ACCENT}{round(140 * left / most):02x}"  # more or less transparent
        marked = f'data-word="{k}" tabindex="0" title="{escape(about)}" style="{shade}"'
        spans.append(f"<span {marked}>{escape(word)}</span>")
    return spans


FORMS: dict[str, Callable[[Picture], bytes]] = {
    ".png": png,
    ".svg": svg,
    ".html": page,
    ".csv": table,
    ".json": data,
}

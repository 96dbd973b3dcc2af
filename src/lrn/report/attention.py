"""The picture of attention: what of one text each word of another looks at.

One drawing serves all: PNG and SVG files, and the page in which one can point at words.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from lrn.files import write_whole
from lrn.report import palette

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Picture:
    """All that the picture shows.

    Args:
        words: the text that is read, a row each.
        looked_at: the text that is looked at, a column each.
        weights: how much of each column each row looks at, by head: ``weights[row][head][column]``.
        title: what the model made of it.
    """

    words: Sequence[str]
    looked_at: Sequence[str]
    weights: Sequence[Sequence[Sequence[float]]]
    title: str

    @property
    def heads(self) -> int:
        return len(self.weights[0]) if self.weights else 0

    def mean(self) -> list[list[float]]:
        """The mean over all heads, ``[row][column]``."""
        return [[sum(column) / len(row) for column in zip(*row, strict=True)] for row in self.weights]

    def of_head(self, head: int) -> list[list[float]]:
        """What one head looks at, ``[row][column]``."""
        return [list(row[head]) for row in self.weights]


def write(picture: Picture, path: Path) -> None:
    """Write the picture in the form that the file's name asks for."""
    write_whole(path, lambda file: file.write(FORMS[path.suffix.lower()](picture)))


def check(
    path: Path,
    overwrite: bool,
    forms: Sequence[str] = (".html", ".png", ".svg"),
    what: str = "a picture of attention",
) -> None:
    """Raise an error if a picture cannot be written there."""
    if path.suffix.lower() not in forms:
        raise ValueError(f"{path}: {what} ends in {', '.join(forms)}")
    if not path.absolute().parent.is_dir():
        raise ValueError(f"there is no folder {path.absolute().parent} to write {path.name} into")
    if path.exists() and not overwrite:
        raise ValueError(f"{path} exists; choose another name, or add --overwrite")


def _figure(picture: Picture) -> Figure:
    """The mean of all heads large, and each head small below it."""
    from matplotlib.figure import Figure

    rows, columns, heads = len(picture.words), len(picture.looked_at), picture.heads
    width = min(16.0, max(5.0, 1.6 + 0.34 * columns))
    large = min(12.0, 1.1 + 0.3 * rows)
    small = max(0.9, 0.5 * large) if heads > 1 else 0.0
    figure = Figure(figsize=(width, large + small + 0.5), layout="constrained")
    grid = figure.add_gridspec(
        2 if small else 1, max(1, heads), height_ratios=[large, small] if small else [1]
    )
    axes = figure.add_subplot(grid[0, :])
    axes.set_title(picture.title, fontsize=10, loc="left")
    _map(axes, picture.mean())
    axes.set_xticks(range(columns), [_plain(word) for word in picture.looked_at], rotation=90, fontsize=8)
    axes.set_yticks(range(rows), [_plain(word) for word in picture.words], fontsize=8)
    for head in range(heads if small else 0):
        axes = figure.add_subplot(grid[1, head])
        axes.set_title(f"head {head + 1}", fontsize=8)
        _map(axes, picture.of_head(head))
        axes.set_xticks([])
        axes.set_yticks([])
    return figure


def _map(axes: Axes, weights: list[list[float]]) -> None:
    from matplotlib.colors import LinearSegmentedColormap

    shades = LinearSegmentedColormap.from_list("attention", ["#ffffff", palette.ACCENT])
    axes.imshow(weights, cmap=shades, vmin=0, vmax=1, aspect="auto")
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_color(palette.FAINT)


def _plain(word: str) -> str:
    """A word that matplotlib does not take for mathematics, and not endless."""
    return (word if len(word) <= 16 else f"{word[:15]}…").replace("$", r"\$")


def _saved(picture: Picture, **how: object) -> bytes:
    import matplotlib

    found = io.BytesIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "lrn", "font.family": "sans-serif"}):
        _figure(picture).savefig(found, **how)  # type: ignore[arg-type]
    return found.getvalue()


def png(picture: Picture) -> bytes:
    """The picture as PNG."""
    return _saved(picture, format="png", dpi=160)


def svg(picture: Picture) -> bytes:
    """The picture as SVG, the same bytes for the same picture."""
    return _saved(picture, format="svg", metadata={"Date": None, "Creator": None})


STYLE = (
    f":root {{ color-scheme: light dark; --accent: {palette.ACCENT} }}"
    + """
body { margin: 0 auto; max-width: 900px; padding: 1.2rem; font: 17px/1.9 system-ui, sans-serif }
h1 { font-size: 1.2rem } h2 { font-size: .85rem; font-weight: normal; color: gray; margin: 1.2rem 0 0 }
p.words { margin: 0 } p.words span { padding: .12em .25em; border-radius: 4px }
#read span { cursor: pointer; border-bottom: 2px solid transparent }
#read span:hover, #read span:focus, #read .now { border-bottom-color: var(--accent); outline: none }
p.note { color: gray; font-size: .85rem; line-height: 1.5 }
fieldset { border: 0; padding: 0; font-size: .85rem }
label { margin-right: 1em } figure { margin: 1rem 0; background: #fff; border-radius: 6px; overflow-x: auto }
svg { display: block; width: 100%; min-width: 480px; height: auto }
"""
)
SCRIPT = """
const data = JSON.parse(document.querySelector("#data").textContent);
const all = (what) => [...document.querySelectorAll(what)];
const read = all("#read span"), seen = all("#seen span");
let row = 0, head = "mean";
const show = () => {
  const of = data[row], mean = (k) => of.reduce((sum, h) => sum + h[k], 0) / of.length;
  read.forEach((word, k) => word.classList.toggle("now", k === row));
  seen.forEach((word, k) => {
    const weight = head === "mean" ? mean(k) : of[Number(head)][k];
    word.style.background = `color-mix(in srgb, var(--accent) ${Math.round(100 * weight)}%, transparent)`;
    word.title = weight.toFixed(3);
  });
};
read.forEach((word, k) => {
  for (const on of ["mouseenter", "focus", "click"]) word.addEventListener(on, () => { row = k; show(); });
});
all("[name=head]").forEach((choice) =>
  choice.addEventListener("change", () => { head = choice.value; show(); }));
show();
"""


def page(picture: Picture) -> bytes:
    """A page that needs nothing else: point at a word to see what it looks at, with all heads or with one."""
    title = escape(picture.title)
    drawn = svg(picture).decode()
    choices = [("mean", "all heads")] + [(str(head), f"head {head + 1}") for head in range(picture.heads)]
    heads = "".join(
        f'<label><input type="radio" name="head" value="{value}"{" checked" if value == "mean" else ""}> '
        f"{name}</label>"
        for value, name in choices
    )
    weights = json.dumps([[[round(w, 4) for w in head] for head in row] for row in picture.weights])
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<link rel="icon" href="data:,"><style>{STYLE}</style></head><body><h1>{title}</h1>'
        f'<h2>looked at</h2><p class="words" id="seen">{_spans(picture.looked_at)}</p>'
        f'<h2>read, word by word</h2><p class="words" id="read">{_spans(picture.words, " tabindex=0")}</p>'
        f"<fieldset>{heads}</fieldset>"
        '<p class="note">Point at a word of the lower text: the darker a word of the upper one, the more it '
        f"is looked at when that word is read.</p><figure>{drawn[drawn.index('<svg') :]}</figure>"
        f'<script type="application/json" id="data">{weights}</script>'
        f"<script>{SCRIPT}</script></body></html>\n"
    ).encode()


def _spans(words: Sequence[str], more: str = "") -> str:
    return " ".join(f"<span{more}>{escape(word)}</span>" for word in words)


FORMS: dict[str, Callable[[Picture], bytes]] = {".html": page, ".png": png, ".svg": svg}

"""Small charts as SVG that follows the page's colours, for light, dark and paper."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

# Okabe & Ito's colours, which also the colour-blind tell apart; black is left out for the dark
COLOURS = {
    "lrn": "#d55e00",
    "lstm": "#0072b2",
    "gru": "#56b4e9",
    "sru": "#009e73",
    "atr": "#cc79a7",
    "olrn": "#e69f00",
    "glrn": "#8c8c8c",
    "elrn": "#b8a000",
}
WIDTH, HEIGHT = 560, 300
LEFT, RIGHT, TOP, BOTTOM = 76, 96, 14, 44

Point = tuple[float, float]


def colour(unit: str) -> str:
    return COLOURS.get(unit, "#8c8c8c")


class Axis:
    """Numbers to places, with round numbers to label."""

    def __init__(self, values: Sequence[float], low: float, high: float, *, zero: bool = False) -> None:
        least, most = (0.0 if zero else min(values)), max(values)
        room = (most - least) * 0.08 or abs(most) * 0.1 or 1.0
        self.least, self.most = (0.0 if zero else least - room), most + room
        self.low, self.high = low, high

    def __call__(self, value: float) -> float:
        return self.low + (value - self.least) / (self.most - self.least) * (self.high - self.low)

    def ticks(self, count: int = 6) -> list[float]:
        rough = (self.most - self.least) / count
        size = 10 ** math.floor(math.log10(rough))
        step = next(size * m for m in (1, 2, 5, 10) if size * m >= rough)
        first = math.ceil(self.least / step)
        return [n * step for n in range(first, math.floor(self.most / step) + 1)]


def number(value: float) -> str:
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:.4g}"


def _text(x: float, y: float, words: str, anchor: str = "start", fill: str = "") -> str:
    ink = f' fill="{fill}"' if fill else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{ink}>{escape(words)}</text>'


def _frame(x: Axis | None, y: Axis, across: str, up: str, whole: bool = False) -> list[str]:
    """Lines and numbers behind a chart; ``whole`` numbers only for what goes across."""
    right, low = WIDTH - RIGHT, HEIGHT - BOTTOM + 16
    parts = []
    for tick in y.ticks():
        place = y(tick)
        parts.append(f'<path class="grid" d="M{LEFT} {place:.1f}H{right}"/>')
        parts.append(_text(LEFT - 6, place + 4, number(tick), "end"))
    if x is not None:
        marked = [tick for tick in x.ticks() if not whole or tick == int(tick)]
        parts += [_text(x(tick), low, number(tick), "middle") for tick in marked]
    parts.append(_text((LEFT + right) / 2, HEIGHT - 8, across, "middle"))
    parts.append(f'<g transform="rotate(-90)">{_text(12 - HEIGHT / 2, 14, up, "middle")}</g>')
    return parts


def _svg(parts: list[str], about: str) -> str:
    head = f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(about)}">'
    return head + "".join(parts) + "</svg>"


def _spread(places: dict[str, float], gap: float = 14) -> dict[str, float]:
    """Labels' heights, moved apart where they would cover each other."""
    spread: dict[str, float] = {}
    last = -math.inf
    for unit, place in sorted(places.items(), key=lambda item: item[1]):
        last = max(place, last + gap)
        spread[unit] = last
    over = last - (HEIGHT - BOTTOM)
    return {unit: place - max(0.0, over) for unit, place in spread.items()}


def lines(curves: dict[str, list[Point]], across: str, up: str) -> str:
    """One line a unit, named at its end."""
    points = [point for curve in curves.values() for point in curve]
    x = Axis([p[0] for p in points], LEFT, WIDTH - RIGHT)
    y = Axis([p[1] for p in points], HEIGHT - BOTTOM, TOP)
    parts = _frame(x, y, across, up, whole=True)
    labels = _spread({unit: y(curve[-1][1]) for unit, curve in curves.items()})
    for unit, curve in curves.items():
        ink, places = colour(unit), [(x(a), y(b)) for a, b in curve]
        path = " ".join(f"{a:.1f},{b:.1f}" for a, b in places)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{ink}" stroke-width="2.2"/>')
        parts += [f'<circle cx="{a:.1f}" cy="{b:.1f}" r="2.6" fill="{ink}"/>' for a, b in places]
        parts.append(_text(WIDTH - RIGHT + 8, labels[unit] + 4, unit, fill=ink))
    return _svg(parts, f"{up} by {across}")


def bars(values: dict[str, float], up: str, shown: dict[str, str]) -> str:
    """One bar a unit, from zero, with its figure on top."""
    y = Axis(list(values.values()), HEIGHT - BOTTOM, TOP + 12, zero=True)
    parts = _frame(None, y, "", up)
    width = (WIDTH - RIGHT / 3 - LEFT) / len(values)
    for place, (unit, value) in enumerate(values.items()):
        left, top, low = LEFT + (place + 0.18) * width, y(value), HEIGHT - BOTTOM
        middle = left + width * 0.32
        size = f'width="{width * 0.64:.1f}" height="{low - top:.1f}"'
        parts.append(f'<rect x="{left:.1f}" y="{top:.1f}" {size} rx="2" fill="{colour(unit)}"/>')
        parts.append(_text(middle, top - 5, shown[unit], "middle"))
        parts.append(_text(middle, low + 16, unit, "middle"))
    return _svg(parts, up)


def scatter(points: dict[str, Point], across: str, up: str) -> str:
    """One named dot a unit."""
    x = Axis([p[0] for p in points.values()], LEFT, WIDTH - RIGHT)
    y = Axis([p[1] for p in points.values()], HEIGHT - BOTTOM, TOP)
    parts = _frame(x, y, across, up)
    for unit, (a, b) in points.items():
        parts.append(f'<circle cx="{x(a):.1f}" cy="{y(b):.1f}" r="6" fill="{colour(unit)}"/>')
        parts.append(_text(x(a) + 10, y(b) + 4, unit))
    return _svg(parts, f"{up} against {across}")

"""Small charts as SVG that follows the page's colours, for light, dark and paper."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape

from lrn.report.palette import colour

WIDTH, HEIGHT = 420, 260
LEFT, RIGHT, TOP, BOTTOM = 48, 52, 30, 40
LETTER, LINE = 7.5, 14  # about the size of a letter, to keep labels apart
DOTS = 40  # a curve of more points is drawn without dots

Point = tuple[float, float]
Range = tuple[float, float]
Box = tuple[float, float, float, float]


class Axis:
    """An axis gives numbers their places on the page, and finds round numbers to label.

    With ``log`` equal factors are equally far apart.
    """

    def __init__(
        self, values: Sequence[float], low: float, high: float, *, zero: bool = False, log: bool = False
    ) -> None:
        self.scale = math.log10 if log else float
        least, most = self.scale(0.0 if zero else min(values)), self.scale(max(values))
        room = (most - least) * 0.08 or abs(most) * 0.1 or 1.0
        self.least, self.most = (0.0 if zero else least - room), most + room
        self.low, self.high, self.log = low, high, log

    def __call__(self, value: float) -> float:
        """The place of a number."""
        part = (self.scale(value) - self.least) / (self.most - self.least)
        return self.low + part * (self.high - self.low)

    def ticks(self, count: int = 6) -> list[float]:
        """About ``count`` round numbers within the axis."""
        if self.log:
            powers = range(math.floor(self.least), math.ceil(self.most))
            steps = (1, 1.5, 2, 3, 5, 7) if len(powers) < 3 else (1,)
            marks = [m * 10.0**power for power in powers for m in steps]
            return [mark for mark in marks if self.least <= math.log10(mark) <= self.most]
        rough = (self.most - self.least) / count
        size = 10 ** math.floor(math.log10(rough))
        step = next(size * m for m in (1, 2, 5, 10) if size * m >= rough)
        first = math.ceil(self.least / step)
        return [n * step for n in range(first, math.floor(self.most / step) + 1)]


def number(value: float) -> str:
    """A number in few letters, for an axis."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e4, "K")):
        if abs(value) >= size:
            return f"{value / (1e3 if letter == 'K' else size):.4g}{letter}"
    return f"{int(value):,}" if value == int(value) else f"{value:.4g}"


def lines(
    curves: Mapping[str, Sequence[Point]],
    across: str,
    up: str,
    bands: Mapping[str, Sequence[tuple[float, float, float]]] | None = None,
    *,
    log: bool = False,
) -> str:
    """A chart with a line for each unit, named at its end.

    ``bands`` are drawn behind the lines; their points are place, lowest and highest.
    """
    curves = {unit: [p for p in curve if math.isfinite(p[1])] for unit, curve in curves.items()}
    curves = {unit: curve for unit, curve in curves.items() if curve}
    if not curves:
        return ""
    bands = {unit: [b for b in (bands or {}).get(unit, ()) if all(map(math.isfinite, b))] for unit in curves}
    edges = [edge for band in bands.values() for _, *pair in band for edge in pair]
    heights = [height for curve in curves.values() for _, height in curve] + edges
    x = Axis([place for curve in curves.values() for place, _ in curve], LEFT, WIDTH - RIGHT)
    log = log and 0 < 2 * min(heights) < max(heights)
    y = Axis(heights, HEIGHT - BOTTOM, TOP, log=log)
    parts = _frame(x, y, across, f"{up}, log scale" if log else up, WIDTH - RIGHT, whole=True)
    labels = _apart({unit: y(curve[-1][1]) for unit, curve in curves.items()})
    for unit, curve in curves.items():
        ink, places = colour(unit), [(x(a), y(b)) for a, b in curve]
        edge = [(x(a), y(low)) for a, low, _ in bands[unit]]
        edge += [(x(a), y(high)) for a, _, high in reversed(bands[unit])]
        parts.append(f'<polygon points="{_path(edge)}" fill="{ink}" opacity=".18"/>' if edge else "")
        width = 3 if unit == "lrn" else 1.8
        line = f'fill="none" stroke="{ink}" stroke-width="{width}" stroke-linejoin="round"'
        parts.append(f'<polyline points="{_path(places)}" {line}>{_title(unit)}</polyline>')
        for (a, b), (place, height) in zip(places, curve, strict=True) if len(curve) <= DOTS else ():
            parts.append(_dot(a, b, width, f'fill="{ink}"', f"{unit}, {across} {place:g}: {height:.2f}"))
        (a, b), end = places[-1], WIDTH - RIGHT + 12
        parts.append(f'<path d="M{a + 4:.1f} {b:.1f}L{end - 3} {labels[unit]:.1f}" stroke="{ink}"/>')
        parts.append(_text(end, labels[unit] + 4, unit))
    return _svg(parts, f"{up} by {across}")


def bars(
    values: Mapping[str, float], up: str, shown: Mapping[str, str], ranges: Mapping[str, Range] | None = None
) -> str:
    """A chart with a bar for each unit, its number ``shown`` on top, and whiskers where there are ranges."""
    ranges, right = ranges or {}, WIDTH - 6
    tops = {unit: max(value, ranges.get(unit, (value, value))[1]) for unit, value in values.items()}
    y = Axis(list(tops.values()), HEIGHT - BOTTOM + 10, TOP + 8, zero=True)
    parts = _frame(None, y, "", up, right)
    width = (right - LEFT) / len(values)
    thick = min(0.64 * width, 64)
    for place, (unit, value) in enumerate(values.items()):
        middle, top, low = LEFT + (place + 0.5) * width, y(value), y(0)
        size = f'width="{thick:.1f}" height="{low - top:.1f}"'
        about = f"{unit}: {shown[unit]} {up}"
        if unit in ranges:
            about += f", {ranges[unit][0]:.4g} to {ranges[unit][1]:.4g}"
        bar = f'<rect x="{middle - thick / 2:.1f}" y="{top:.1f}" {size} rx="2" fill="{colour(unit)}">'
        parts.append(f"{bar}{_title(about)}</rect>")
        if unit in ranges:
            parts.append(_whisker((middle, y(ranges[unit][1]), middle, y(ranges[unit][0]))))
        parts.append(_text(middle, y(tops[unit]) - 5, shown[unit], "middle"))
        parts.append(_text(middle, low + 16, unit, "middle"))
    return _svg(parts, up)


def scatter(
    points: Mapping[str, Point],
    across: str,
    up: str,
    ranges: Mapping[str, tuple[Range, Range]] | None = None,
) -> str:
    """A chart with a named dot for each unit, and whiskers both ways where there are ranges."""
    points = {unit: point for unit, point in points.items() if all(map(math.isfinite, point))}
    if not points:
        return ""
    spans = {unit: (ranges or {}).get(unit, ((a, a), (b, b))) for unit, (a, b) in points.items()}
    x = Axis([value for span, _ in spans.values() for value in span], LEFT, WIDTH - 16)
    y = Axis([value for _, span in spans.values() for value in span], HEIGHT - BOTTOM, TOP)
    parts = _frame(x, y, across, up, WIDTH - 6)
    places = {unit: (x(a), y(b)) for unit, (a, b) in points.items()}
    whiskers = [
        (x(low), places[unit][1], x(high), places[unit][1]) for unit, ((low, high), _) in spans.items()
    ]
    whiskers += [
        (places[unit][0], y(high), places[unit][0], y(low)) for unit, (_, (low, high)) in spans.items()
    ]
    parts += map(_whisker, whiskers)
    for unit, (a, b) in places.items():
        about = f"{unit}: {points[unit][0]:.4g} {across}, {points[unit][1]:.2f} {up}"
        parts.append(_dot(a, b, 5.5, f'class="dot" fill="{colour(unit)}"', about))
    for unit, (left, top, _, _) in _labels(places, whiskers).items():
        a, b = places[unit]
        near = (min(max(a, left), left + LETTER * len(unit)), min(max(b, top), top + LINE))
        if math.dist(near, (a, b)) > 9:  # not beside its dot: a thread leads there
            parts.append(f'<path d="M{a:.1f} {b:.1f}L{near[0]:.1f} {near[1]:.1f}" stroke="{colour(unit)}"/>')
        parts.append(_text(left, top + 11, unit))
    return _svg(parts, f"{up} against {across}")


# Parts ------------------------------------------------------------------------------------------


def _frame(x: Axis | None, y: Axis, across: str, up: str, right: float, whole: bool = False) -> list[str]:
    """The lines and numbers behind a chart; with ``whole`` only whole numbers go across."""
    parts = [_text(4, 13, up)]
    for tick in y.ticks():
        place = y(tick)
        parts.append(f'<path class="grid" d="M{LEFT} {place:.1f}H{right}"/>')
        parts.append(_text(LEFT - 6, place + 4, number(tick), "end"))
    if x is not None:
        marked = [tick for tick in x.ticks() if not whole or tick == int(tick)]
        parts += [_text(x(tick), HEIGHT - BOTTOM + 16, number(tick), "middle") for tick in marked]
        parts.append(_text((LEFT + right) / 2, HEIGHT - 6, across, "middle"))
    return parts


def _svg(parts: list[str], about: str) -> str:
    head = f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(about)}">'
    return head + "".join(parts) + "</svg>"


def _text(x: float, y: float, words: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'


def _title(words: str) -> str:
    """The words that are shown when the mouse is over a shape."""
    return f"<title>{escape(words)}</title>"


def _dot(x: float, y: float, radius: float, look: str, about: str) -> str:
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" {look}>{_title(about)}</circle>'


def _path(points: Iterable[Point]) -> str:
    return " ".join(f"{a:.1f},{b:.1f}" for a, b in points)


def _whisker(box: Box) -> str:
    """A line along a box without width or without height, with a stop at both ends."""
    left, top, right, low = box
    if right - left + low - top < 0.5:
        return ""
    stop = "m0 -3v6" if top == low else "m-3 0h6"
    ends = f"M{left:.1f} {top:.1f}{stop}M{right:.1f} {low:.1f}{stop}"
    return f'<path class="whisker" d="M{left:.1f} {top:.1f}L{right:.1f} {low:.1f}{ends}"/>'


def _apart(places: dict[str, float]) -> dict[str, float]:
    """The heights of labels, moved apart where they would cover each other, inside the frame."""
    order = sorted(places, key=places.__getitem__)
    apart, last = {}, -math.inf
    for unit in order:
        last = apart[unit] = max(places[unit], last + LINE)
    last = HEIGHT - BOTTOM + LINE
    for unit in reversed(order):
        last = apart[unit] = min(apart[unit], last - LINE)
    return apart


def _labels(dots: dict[str, Point], whiskers: list[Box]) -> dict[str, Box]:
    """A box for each dot's name: near it, inside the frame, over no other name, no dot and no whisker."""
    taken = [(a - 6, b - 6, a + 6, b + 6) for a, b in dots.values()]
    taken += [(left - 3, top - 3, right + 3, low + 3) for left, top, right, low in whiskers]
    found = {}
    for unit, (a, b) in dots.items():
        width = LETTER * len(unit)
        around = [(r, turn * math.pi / 8) for r in (8, 18, 30, 42, 54, 70) for turn in range(16)]
        boxes = []
        for r, angle in around:
            middle, height = a + (r + width / 2) * math.cos(angle), b + (r + LINE / 2) * math.sin(angle)
            boxes.append((middle - width / 2, height - LINE / 2, middle + width / 2, height + LINE / 2))
        inside = [box for box in boxes if box[0] >= LEFT and box[2] <= WIDTH and box[1] >= TOP - LINE]
        inside = [box for box in inside if box[3] <= HEIGHT - BOTTOM + 4] or boxes
        free = [box for box in inside if not any(_meet(box, other) for other in taken)]
        found[unit] = (free or inside)[0]
        taken.append(found[unit])
    return found


def _meet(a: Box, b: Box) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]

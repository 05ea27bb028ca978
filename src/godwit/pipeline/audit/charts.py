"""Charts as SVG for a page that needs nothing but a browser: axes with round numbers, and colours that everybody can
tell apart (Okabe and Ito), in light and in dark."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from html import escape
from itertools import pairwise

import msgspec

WIDTH, HEIGHT = 860.0, 240.0
LEFT, RIGHT, TOP, BOTTOM = 64.0, 12.0, 12.0, 40.0
TICKS = 5

STYLE = """
svg { width: 100%; height: auto; display: block } svg text { font-size: 12px; fill: var(--faint) }
svg .grid { stroke: var(--line); stroke-width: 1 } svg .axis { stroke: var(--faint); stroke-width: 1 }
svg path { fill: none; stroke-width: 2; stroke-linejoin: round }
.a { --own: #0072b2 } .b { --own: #d55e00 } .c { --own: #e69f00 }
@media (prefers-color-scheme: dark) {
.a { --own: #56b4e9 } .b { --own: #ff8c42 } .c { --own: #f0c419 } }
svg rect.a, svg rect.b, svg rect.c, svg circle { fill: var(--own) } svg path { stroke: var(--own) }
.key { display: inline-block; margin-right: 1.2rem } .key i { display: inline-block; width: .8rem; height: .8rem;
border-radius: 2px; margin-right: .4rem; vertical-align: -1px; background: var(--own) }"""


class Series(msgspec.Struct, frozen=True):
    """Values beside the places on the x axis; None where there is none. `colour` is one letter of `STYLE`."""

    name: str
    colour: str
    values: Sequence[float | None]


def bars(title: str, places: Sequence[float], stacked: Sequence[Series], tell: Callable[[float], str]) -> str:
    """A bar for each place, one series on top of another; `tell` writes a place."""
    totals = [sum(one.values[at] or 0.0 for one in stacked) for at in range(len(places))]
    frame = _Frame.around(places, max(totals, default=0.0), is_wide=True)
    width = max(frame.step - 1.0, 1.0)
    drawn = list[str]()
    for at, place in enumerate(places):
        base = 0.0
        for one in stacked:
            value = one.values[at] or 0.0
            if value:
                high, low = frame.y(base + value), frame.y(base)
                # What is rare must be seen too: a lost event among thousands is two pixels high.
                high = min(high, low - 2.0)
                label = f"{tell(place)}: {value:,g} {one.name}"
                where = f'x="{frame.x(place) - width / 2:.1f}" y="{high:.1f}" width="{width:.1f}"'
                size = f'height="{low - high:.1f}"'
                drawn.append(f'<rect class="{one.colour}" {where} {size}><title>{escape(label)}</title></rect>')
            base += value
    return _svg(title, frame, "".join(drawn), stacked, tell)


def lines(title: str, places: Sequence[float], drawn: Sequence[Series], tell: Callable[[float], str]) -> str:
    """A line for each series, broken where there is no value."""
    most = max((value for one in drawn for value in one.values if value is not None), default=0.0)
    frame = _Frame.around(places, most, is_wide=False)
    return _svg(title, frame, "".join(_line(one, places, frame, tell) for one in drawn), drawn, tell)


def _line(one: Series, places: Sequence[float], frame: _Frame, tell: Callable[[float], str]) -> str:
    path, pen, dots = list[str](), "M", list[str]()
    for place, value in zip(places, one.values, strict=True):
        if value is None:
            pen = "M"
            continue
        x, y = frame.x(place), frame.y(value)
        path.append(f"{pen}{x:.1f} {y:.1f}")
        dots.append(
            f'<circle class="{one.colour}" cx="{x:.1f}" cy="{y:.1f}" r="2.5">'
            f"<title>{escape(f'{tell(place)}: {value:.4g} {one.name}')}</title></circle>"
        )
        pen = "L"
    return f'<path class="{one.colour}" d="{" ".join(path)}"/>{"".join(dots)}'


class _Frame(msgspec.Struct, frozen=True):
    """From values to places on the paper."""

    first: float
    last: float
    most: float
    step: float
    inner: tuple[float, float]
    """The first and the last place that has a value."""

    @classmethod
    def around(cls, places: Sequence[float], most: float, *, is_wide: bool) -> _Frame:
        first, last = (places[0], places[-1]) if places else (0.0, 1.0)
        inner = (first, last)
        apart = min((b - a for a, b in pairwise(places)), default=1.0) or 1.0
        if is_wide or first == last:
            first, last = first - apart / 2, last + apart / 2
        step = (WIDTH - LEFT - RIGHT) * apart / (last - first)
        return cls(first, last, ticks(most)[-1], step, inner)

    def x(self, place: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * (place - self.first) / (self.last - self.first)

    def y(self, value: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * value / self.most


def ticks(most: float) -> list[float]:
    """Round numbers from 0 to at least this, about five of them."""
    if most <= 0 or not math.isfinite(most):
        return [0.0, 1.0]
    rough = most / TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * one for one in (1, 2, 2.5, 5, 10) if power * one >= rough * 0.999)
    return [step * number for number in range(math.ceil(most / step - 1e-9) + 1)]


def _svg(title: str, frame: _Frame, drawn: str, series: Sequence[Series], tell: Callable[[float], str]) -> str:
    keys = "".join(f'<span class="key {one.colour}"><i></i>{escape(one.name)}</span>' for one in series)
    size = f'viewBox="0 0 {WIDTH:g} {HEIGHT:g}" role="img" aria-label="{escape(title)}"'
    paper = f"<svg {size}>{_axes(frame, tell)}{drawn}</svg>"
    return f"<figure><figcaption>{escape(title)}</figcaption><p>{keys}</p>{paper}</figure>"


def _axes(frame: _Frame, tell: Callable[[float], str]) -> str:
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    found = list[str]()
    for value in ticks(frame.most):
        y = frame.y(value)
        found.append(f'<line class="grid" x1="{LEFT:g}" x2="{right:g}" y1="{y:.1f}" y2="{y:.1f}"/>')
        found.append(f'<text x="{LEFT - 8:g}" y="{y + 4:.1f}" text-anchor="end">{value:,g}</text>')
    for number in range(TICKS + 1):
        place = frame.inner[0] + (frame.inner[1] - frame.inner[0]) * number / TICKS
        anchor = "start" if number == 0 else "end" if number == TICKS else "middle"
        x = frame.x(place)
        found.append(f'<line class="axis" x1="{x:.1f}" x2="{x:.1f}" y1="{bottom:g}" y2="{bottom + 5:g}"/>')
        found.append(f'<text x="{x:.1f}" y="{bottom + 20:g}" text-anchor="{anchor}">{escape(tell(place))}</text>')
    found.append(f'<line class="axis" x1="{LEFT:g}" x2="{right:g}" y1="{bottom:g}" y2="{bottom:g}"/>')
    return "".join(found)

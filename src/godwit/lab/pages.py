"""What an experiment has shown, as one page: claims with verdicts, figures, tables; Markdown, or HTML in one file."""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from html import escape
from typing import TYPE_CHECKING, Any

import msgspec

from godwit.lab.claims import Dependence, Finding, Verdict
from godwit.lab.intervals import Interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CLAIMS_HEADER = ("claim", "published", "verdict", "numbers")


class Table(msgspec.Struct, frozen=True):
    """`note` says how to read it."""

    title: str
    note: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]


class Page(msgspec.Struct, frozen=True):
    title: str
    lead: str
    findings: Sequence[Finding]
    tables: Sequence[Table]


def picture(draw: Callable[[Axes], None]) -> bytes:
    """One plot of a page, as PNG: the same bytes for the same figures."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 3.8), layout="constrained")
    axes = figure.subplots()
    draw(axes)
    axes.grid(alpha=0.3)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize=8)
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=110, metadata={"Software": None})
    return out.getvalue()


def line(axes: Axes, found: Iterable[tuple[float, Interval | None]], label: str, **style: Any) -> None:
    """Means over what was varied, with their intervals; a single run has none."""
    known = [(x, mean) for x, mean in found if mean is not None]
    if known:
        errors = [mean.half if math.isfinite(mean.half) else 0.0 for _, mean in known]
        heights = [mean.mean for _, mean in known]
        usual: dict[str, Any] = {"fmt": "o-", "capsize": 2, "ms": 4}
        axes.errorbar([x for x, _ in known], heights, errors, label=label, **{**usual, **style})


def crossed(axes: Axes, found: Iterable[tuple[Interval, Interval]], label: str, **style: Any) -> None:
    """One mean over another, each with its interval, joined in the order of the first."""
    known = sorted(found, key=lambda both: both[0].mean)
    if known:
        widths, heights = (
            [mean.half if math.isfinite(mean.half) else 0.0 for mean in own] for own in zip(*known, strict=True)
        )
        x, y = ([mean.mean for mean in own] for own in zip(*known, strict=True))
        usual: dict[str, Any] = {"fmt": "o-", "capsize": 2, "ms": 4}
        axes.errorbar(x, y, heights, widths, label=label, **{**usual, **style})


def published(axes: Axes, points: Mapping[float, float], color: str = "black") -> None:
    """What the text has, as crosses; one entry in the legend for all."""
    named = "published" in axes.get_legend_handles_labels()[1]
    axes.plot(list(points), list(points.values()), "x", color=color, ms=7, label=None if named else "published")


def curves(found: Sequence[Finding]) -> dict[str, bytes]:
    """What each claim hangs on, drawn: by how much its parts hold at each value, as PNG by caption."""
    return {
        f"{finding.claim.name} along {finding.depends.on}; above zero it is true: {finding.claim.text}": picture(
            partial(_draw_curve, finding.depends)
        )
        for finding in found
        if finding.depends is not None and any(point.margins for point in finding.depends.curve)
    }


def _draw_curve(depends: Dependence, axes: Axes) -> None:
    """Parts are shares of their own largest margin, since their units differ."""
    places = {point.at: place for place, point in enumerate(depends.curve)}
    for part in dict.fromkeys(margin.of for point in depends.curve for margin in point.margins):
        drawn = [(places[p.at], m.by) for p in depends.curve for m in p.margins if m.of == part]
        largest = max(abs(by.mean) for _, by in drawn) or 1.0
        axes.errorbar(
            [place for place, _ in drawn],
            [by.mean / largest for _, by in drawn],
            yerr=[min(by.half / largest, 1.0) for _, by in drawn],
            marker="o",
            capsize=3,
            label=part,
        )
    axes.axhline(0, color="#b3261e", linewidth=1)
    axes.set_xticks(list(places.values()), list(places), fontsize=7, rotation=15, ha="right")
    axes.set_ylabel("margin, of the largest")


def markdown(page: Page) -> str:
    parts = [f"# {page.title}", page.lead]
    if page.findings:
        parts += ["## Claims", markdown_table(CLAIMS_HEADER, _claims(page.findings))]
    for table in page.tables:
        parts += [f"## {table.title}", table.note, markdown_table(table.header, table.rows)]
    return "\n\n".join(parts) + "\n"


def _claims(found: Sequence[Finding]) -> list[tuple[str, ...]]:
    return [(f.claim.name, f.claim.text, f.told, f.numbers) for f in found]


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 1100px; margin: 2em auto; padding: 0 1em; color: #1c2530 }
table { border-collapse: collapse; font-size: 13px; margin: .5em 0 2em; display: block; overflow-x: auto }
th, td { border-bottom: 1px solid #d8dee6; padding: .3em .6em; text-align: left; vertical-align: top }
th { background: #f2f5f8 }
figure { display: inline-block; width: 520px; max-width: 100%; margin: .5em } img { width: 100% }
figure.wide { width: 100% }
figcaption { font-size: 13px; color: #4a5866 }
.reproduced { color: #1b7a3d; font-weight: 600 } .not-reproduced { color: #b3261e; font-weight: 600 }
.not-decidable { color: #7a6a1b; font-weight: 600 } .depends { color: #1f5fa8; font-weight: 600 }
.claims { display: table; width: 100%; table-layout: fixed } .claims td { overflow-wrap: anywhere }
.claims th:nth-child(1) { width: 6% } .claims th:nth-child(2) { width: 26% } .claims th:nth-child(3) { width: 22% }
.index th:nth-child(1) { width: 13% } .index th:nth-child(2) { width: 7% } .index th:nth-child(3) { width: 45% }
.how th { white-space: nowrap } .how code { line-height: 1.9 }
.rest { font-weight: 400 }
.arithmetic-checked { color: #5b5b66; font-weight: 600 }
.counts span { display: inline-block; margin: 0 1.2em .6em 0; font-size: 17px } .counts b { font-size: 26px }
nav { font-size: 14px; margin-bottom: 1em } code { background: #f2f5f8; padding: .1em .3em }
details { margin: .3em 0 } summary { cursor: pointer; color: #4a5866 }
td.numbers { font-size: 12px; color: #3c4854 }
"""


def html(page: Page, figures: Mapping[str, bytes]) -> str:
    """One file that needs nothing else; `figures` are PNG pictures by caption."""
    pictures = "".join(
        f'<figure><img alt="{escape(caption)}" src="data:image/png;base64,{base64.b64encode(png).decode()}">'
        f"<figcaption>{escape(caption)}</figcaption></figure>"
        for caption, png in figures.items()
    )
    tables = "".join(
        f"<h2>{escape(t.title)}</h2><p>{escape(t.note)}</p>{html_table(t.header, t.rows)}" for t in page.tables
    )
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(page.title)}</title>'
        f"<style>{STYLE}</style><h1>{escape(page.title)}</h1><p>{escape(page.lead)}</p>"
        f"<h2>Claims</h2>{html_table(CLAIMS_HEADER, _claims(page.findings))}"
        f"<h2>Figures</h2>{pictures}{tables}</html>\n"
    )


def html_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    body = "".join("<tr>" + "".join(_html_cell(cell) for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _html_cell(cell: str) -> str:
    mark = next((verdict for verdict in Verdict if _tells(cell, verdict)), None)
    label = f' class="{class_of(mark)}"' if mark is not None else ""
    return f"<td{label}>{escape(cell)}</td>"


def _tells(cell: str, verdict: Verdict) -> bool:
    return cell == verdict or (verdict in _LONG and cell.startswith(_LONG[verdict]))


_LONG = {Verdict.DEPENDS: "depends on ", Verdict.NOT_DECIDABLE: "not decidable: "}


def class_of(verdict: Verdict) -> str:
    return verdict.value.replace(" ", "-")

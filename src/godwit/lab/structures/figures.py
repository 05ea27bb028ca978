"""The curves of the published figures, drawn from our rows."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from godwit.lab.pages import line
from godwit.lab.structures import evidence as of
from godwit.lab.structures.evidence import Evidence, Measure, Point
from godwit.lab.structures.judging import short
from godwit.lab.structures.merging import IMPERFECT, PERFECT, UNMERGED
from godwit.lab.structures.rows import Row
from godwit.lab.structures.settings import EXPERIMENTS

FILTERS, INTERFACES, CLIENTS = 1, 2, 3
"""Places in a `Point`: what the horizontal axis is."""
AXES = {FILTERS: "filters", INTERFACES: "interfaces", CLIENTS: "local clients"}

COLOURS = {
    "PF": "#0072b2",
    "BF": "#56b4e9",
    "NRF": "#009e73",
    "FP": "#d55e00",
    "NRF exact": "#009e73",
    "NRF approximate": "#cc79a7",
    UNMERGED: "#d55e00",
    PERFECT: "#0072b2",
    IMPERFECT: "#009e73",
}
MARKERS = ((9, "o"), (7, "s"), (5, "v"), (3, "D"))
"""Curves often lie on one another: smaller markers in larger, hollow ones show that all are there."""


class Curve(NamedTuple):
    structure: str
    measure: Measure
    label: str
    clients: int | None = None
    dashed: bool = False


class Panel(NamedTuple):
    title: str
    points: list[Point]
    axis: int
    curves: Sequence[Curve]


Picture = tuple[str, str, list[Panel], int]
"""File name, what is counted on the vertical axis, panels, and how many of them in a row."""


def draw(rows: Iterable[Row], folder: Path) -> list[Path]:
    """Write the figures that the rows have points for; raises ImportError where matplotlib is not installed."""
    from matplotlib.figure import Figure

    rows = list(rows)
    written = []
    for name, counted, panels, columns in pictures(rows):
        drawn = [panel for panel in panels if len({point[panel.axis] for point in panel.points}) > 1]
        if drawn:
            figure = Figure(figsize=(4.2 * columns, 3.2 * -(-len(drawn) // columns)), layout="constrained")
            _fill(figure, Evidence(rows, name.partition("-")[0]), drawn, columns, counted)
            figure.savefig(folder / f"{name}.png", dpi=110)
            written.append(folder / f"{name}.png")
    return written


def drawn(rows: Sequence[Row]) -> dict[str, bytes]:
    """The same as PNG by caption."""
    from matplotlib.figure import Figure

    found = {}
    for name, counted, panels, columns in pictures(rows):
        shown = [panel for panel in panels if len({point[panel.axis] for point in panel.points}) > 1]
        if shown:
            figure = Figure(figsize=(4.2 * columns, 3.2 * -(-len(shown) // columns)), layout="constrained")
            _fill(figure, Evidence(rows, name.partition("-")[0]), shown, columns, counted)
            out = io.BytesIO()
            figure.savefig(out, format="png", dpi=80, metadata={"Software": None})
            found[f"{name}: {EXPERIMENTS[name.partition('-')[0]]}"] = out.getvalue()
    return found


def pictures(rows: Sequence[Row]) -> list[Picture]:
    """All figures that the source describes; some of their panels may have no points."""
    local, shared, layered, peers, crowded, once, always = (
        Evidence(rows, experiment) for experiment in ("E1", "E2", "E3", "E4", "E5", "E12", "E13")
    )
    costs = "covering tests"
    return [
        ("E1", costs, _phases(local, FILTERS, ("PF", "BF", "NRF", "FP")), 3),
        ("E2", costs, _phases(shared, INTERFACES, ("PF", "BF", "NRF", "FP")), 2),
        ("E3", costs, _phases(layered, INTERFACES, ("NRF", "FP")), 3),
        ("E4-costs", costs, _phases(peers, INTERFACES, ("FP", "NRF exact", "NRF approximate"), clients=0), 3),
        ("E4-forwarded", "filters", [_forwarded(peers, schema) for schema in peers.schemas()], 3),
        ("E5", costs, _phases(crowded, CLIENTS, ("FP", "NRF exact", "NRF approximate")), 2),
        ("E12", "filters in all root sets", _one_shot(once), 2),
        ("E13", "filters in the root set", [_dynamic(always, schema) for schema in always.schemas()], 3),
    ]


def _phases(found: Evidence, axis: int, structures: Sequence[str], clients: int | None = None) -> list[Panel]:
    return [
        Panel(
            f"{phase}, {schema}",
            found.points(schema, clients=clients),
            axis,
            [Curve(structure, measure, structure) for structure in structures],
        )
        for phase, measure in (("add", of.add), ("add/remove", of.replace))
        for schema in found.schemas()
    ]


def _forwarded(found: Evidence, schema: str) -> Panel:
    curves = [
        Curve("FP", of.added, "told to the router", 0),
        Curve("NRF approximate", of.forwarded, "forwarded, approximate", 0),
        Curve("NRF exact", of.forwarded, "forwarded, exact", 0),
        Curve("FP", of.forwarded, "forwarded, with local clients", 1, dashed=True),
    ]
    return Panel(schema, found.points(schema), INTERFACES, curves)


def _one_shot(found: Evidence) -> list[Panel]:
    points = found.points("1-3 mixed")
    if not points:
        return []
    most, fewest = max(point[1] for point in points), min(point[2] for point in points)
    curves = [Curve(name, of.roots, name) for name in (UNMERGED, PERFECT, IMPERFECT)]
    return [
        Panel(f"{fewest} interfaces", [point for point in points if point[2] == fewest], FILTERS, curves),
        Panel(f"{most} filters", [point for point in points if point[1] == most], INTERFACES, curves),
    ]


def _dynamic(found: Evidence, schema: str) -> Panel:
    curves = [Curve(name, of.roots, name) for name in (UNMERGED, PERFECT, IMPERFECT)]
    return Panel(f"{schema.removesuffix(' mixed')} attributes", found.points(schema), FILTERS, curves)


def _fill(figure: Any, found: Evidence, panels: Sequence[Panel], columns: int, counted: str) -> None:
    """All panels have the same curves, and share one legend."""
    every = figure.subplots(-(-len(panels) // columns), columns, squeeze=False)
    for axes, panel in zip(every.flat, panels, strict=False):
        _plot(axes, found, panel)
    for axes in every[:, 0]:
        axes.set_ylabel(counted)
    for axes in every.flat[len(panels) :]:
        axes.remove()
    figure.legend(*every[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)


def _plot(axes: Any, found: Evidence, panel: Panel) -> None:
    for curve, (size, marker) in zip(panel.curves, MARKERS, strict=False):
        points = [point for point in panel.points if curve.clients is None or point[CLIENTS] == curve.clients]
        line(
            axes,
            [(float(point[panel.axis]), found.interval(curve.measure, curve.structure, point)) for point in points],
            curve.label,
            fmt=marker,
            ms=size,
            markerfacecolor="none",
            color=COLOURS[curve.structure],
            linestyle="--" if curve.dashed else "-",
        )
    axes.set(title=panel.title, xlabel=AXES[panel.axis])
    axes.margins(y=0.1)
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter(lambda value, _: short(value))
    axes.spines[["top", "right"]].set_visible(False)

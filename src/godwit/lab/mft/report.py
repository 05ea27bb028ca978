"""What a grid has shown: every claim with its verdict, the figures and all numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from godwit.lab.intervals import interval_if_any
from godwit.lab.mft.grid import DRAIN_SHARE, TUNED, Grid
from godwit.lab.mft.results import Results, Row
from godwit.lab.mft.runs import Result
from godwit.lab.mft.screening import FACTORS
from godwit.lab.mft.screening import NAMES as NAMES_OF_FACTORS
from godwit.lab.mft.verdicts import Evidence, findings
from godwit.lab.pages import Page, Table
from godwit.protocols.adhoc.aodv import AodvOptions
from godwit.protocols.topology.election import ElectionOptions

NAMES = {"mft": "MFT", "hardened": "hardened", "aodv": "AODV"}


def evidence_of(grid: Grid, results: Results) -> Evidence:
    rows, sparse = results.of(grid.cells()), results.of(grid.sparse())
    return Evidence(rows, sparse, grid.reference_mps, quick=grid.quick)


def page(grid: Grid, results: Results, command: str) -> Page:
    """From whatever runs of the grid there are; claims that need others are not decidable. No figures yet."""
    evidence = evidence_of(grid, results)
    tables = [
        _parameters(grid),
        _cells_table(evidence.cells.rows),
        _roles(evidence),
        _depths(evidence),
        _types(evidence),
        _walls(evidence, results.of(grid.floods())),
    ]
    lead = f"{_lead(grid, evidence.cells.rows)} Made by `{command}`."
    return Page("MFT-PubSub: the published evaluation", lead, findings(evidence), tables)


def _lead(grid: Grid, rows: Sequence[Row]) -> str:
    kind = "The quick grid, with short runs and few cells: a first look, not the evaluation. " if grid.quick else ""
    versions = ", ".join(sorted({row.made.commit for row in rows})) or "none"
    return (
        f"{kind}{len(rows)} of {len(grid.cells())} runs: sizes {_list(grid.sizes)}, speeds {_list(grid.speeds_mps)}"
        f" m/s, {grid.seeds} seeds, {', '.join(NAMES[p] for p in grid.protocols)}, {grid.workload} workload; each"
        f" publisher publishes once a second for {grid.publish_s:g} s, then {grid.publish_s * DRAIN_SHARE:g} s without."
        f" The published runs publish for 500 s, with 10 seeds in 25 cells. Commits: {versions}."
    )


def _list(numbers: Iterable[float]) -> str:
    return ", ".join(f"{number:g}" for number in numbers)


def _parameters(grid: Grid) -> Table:
    election, aodv = ElectionOptions(), AodvOptions()
    plain = next(iter(grid.cells()))
    tuned = msgspec.structs.replace(plain, protocol="hardened", **TUNED["hardened"])
    open_ones = ", ".join(f"{NAMES_OF_FACTORS[name]} ({len(values)})" for name, values in FACTORS.items())
    rows = [
        ("varied by the screening plan, with so many values", open_ones),
        ("heartbeat period", f"{plain.period_s:g} s, hello of AODV {aodv.hello_s:g} s"),
        ("leader, child and broker given up after", f"{3 * plain.period_s:g} s of silence"),
        ("jitter", f"heartbeats 0 to {election.jitter_s * 1e3:g} ms, AODV's requests 0 to {aodv.jitter_s * 1e3:g} ms"),
        ("choice of parent and broker", f"{plain.choice.value} copy of a round, held back {plain.hold_s:g} s"),
        ("patience with a silent parent or broker", f"MFT none; hardened {tuned.patience_s:g} s"),
        ("refresh of all filters (H6)", f"MFT never; hardened every {tuned.refresh_s:g} s"),
        ("look at queues, and questions of H10", f"MFT every {plain.retry_s:g} s; hardened every {tuned.retry_s:g} s"),
        ("acknowledgement", "events in both; control messages hardened only; after 100 ms, doubled each time, 3 tries"),
        ("acknowledgement between a client and its broker", "MFT events to subscribers only; hardened everything"),
        ("payload", f"{plain.payload_b} B; message sizes of spec 2.10 and 15 B of link overhead"),
        ("AODV", f"RFC 3561, expanding ring; routes live {aodv.active_route_s:g} s, {aodv.rreq_retries} retries"),
        ("movement", "random waypoint without pause, one world per seed for all protocols"),
        ("radio", "CC2420 at 0 dBm, log-distance 2.4 with shadowing, additive interference, CSMA"),
    ]  # fmt: skip
    return Table("Parameters", "What the published text leaves open is stated here.", ("parameter", "value"), rows)


CELL_HEADER = (
    *("protocol", "size", "m/s", "runs", "rate", "of all wanted", "delivered", "replayed", "duplicates", "delay s"),
    *("direct s", "replayed s", "hops", "messages/node", "without beacons", "kB/node", "migrations/min"),
    "attachments/min",
)


def _cells_table(rows: Sequence[Row]) -> Table:
    groups: dict[tuple[str, int, float], list[Result]] = {}
    for row in rows:
        c = row.configuration
        groups.setdefault((c.protocol, c.size, c.speed_mps), []).append(row.result)
    note = (
        "Means over seeds. Rate: deliveries over pairs that a broker knew of when the event came in, as published;"
        " beside it deliveries over all that somebody wanted. For AODV both are the same."
    )
    return Table("All cells", note, CELL_HEADER, [_cell(*key, groups[key]) for key in sorted(groups, key=_order)])


def _order(key: tuple[str, int, float]) -> tuple[int, float, int]:
    return key[1], key[2], list(NAMES).index(key[0])


def _cell(protocol: str, size: int, speed_mps: float, results: list[Result]) -> tuple[str, ...]:
    columns: list[tuple[str, list[float]]] = [
        (".3f", [r.rate for r in results]),
        (".3f", [r.honest_rate for r in results]),
        (".1f", [r.delivered for r in results]),
        (".1f", [r.replayed for r in results]),
        (".1f", [r.duplicates for r in results]),
        (".3f", [r.delay_mean_s for r in results]),
        (".3f", [r.delay_direct_mean_s for r in results]),
        (".2f", [r.delay_replayed_mean_s for r in results]),
        (".2f", [r.hops_mean for r in results]),
        (".0f", [r.messages_per_node for r in results]),
        (".0f", [r.messages_per_node_without_beacons for r in results]),
        (".1f", [r.bytes_per_node / 1e3 for r in results]),
        (".1f", [r.migrations_per_min for r in results]),
        (".1f", [r.attachments_per_min for r in results]),
    ]
    means = (format(sum(values) / len(values), form) for form, values in columns)
    return (NAMES[protocol], f"C{size}", f"{speed_mps:g}", str(len(results)), *means)


def _by_size(evidence: Evidence) -> Iterable[tuple[str, int, list[Result]]]:
    for size in evidence.cells.sizes:
        for protocol in evidence.cells.protocols:
            results = evidence.cells.results(protocol, size, evidence.speed_mps)
            if results:
                yield protocol, size, results


def _roles(evidence: Evidence) -> Table:
    roles = ("broker", "subscriber", "publisher")
    rows = [
        (NAMES[protocol], f"C{size}", *(f"{_mean(r.messages_by_role[role] for r in results):.0f}" for role in roles))
        for protocol, size, results in _by_size(evidence)
    ]
    note = f"Messages per node of each role at {evidence.speed_mps:g} m/s, beacons included."
    return Table("Messages by role", note, ("protocol", "size", *roles), rows)


DEPTH_MAX = 6


def _depths(evidence: Evidence) -> Table:
    rows = []
    for protocol, size, results in _by_size(evidence):
        if protocol == "aodv":
            continue
        cells = []
        for depth in map(str, range(DEPTH_MAX)):
            rounds = sum(r.beats_by_depth.get(depth, 0) for r in results)
            sent = sum(r.messages_by_depth.get(depth, 0.0) * r.beats_by_depth.get(depth, 0) for r in results)
            cells.append(f"{sent / rounds:.2f}" if rounds else "")
        rows.append((NAMES[protocol], f"C{size}", *cells))
    note = (
        f"What a broker so many hops from its leader sends in a heartbeat period at {evidence.speed_mps:g} m/s,"
        " heartbeats left out."
    )
    return Table("Messages by depth", note, ("protocol", "size", *map(str, range(DEPTH_MAX))), rows)


TYPES_SHOWN = 6


def _types(evidence: Evidence) -> Table:
    rows = []
    for protocol, size, results in _by_size(evidence):
        sent: Counter[str] = Counter()
        repeated: Counter[str] = Counter()
        for result in results:
            sent.update(result.messages_by_type)
            repeated.update(result.repeated_by_type)
        total = sent.total()
        most = "; ".join(
            f"{kind} {count / total:.0%}" + (f" ({repeated[kind] / count:.0%} again)" if repeated[kind] else "")
            for kind, count in sent.most_common(TYPES_SHOWN)
        )
        lost = _mean(sum(r.dropped.values()) / (sum(r.messages_by_type.values()) or 1) for r in results)
        rows.append((NAMES[protocol], f"C{size}", most, f"{lost:.0%}"))
    note = (
        "Shares of everything sent, and how many of them were repetitions; last, what a full send queue dropped, over"
        " what was sent."
    )
    return Table("Messages by type", note, ("protocol", "size", "most frequent", "send queue full"), rows)


def _walls(evidence: Evidence, floods: Sequence[Row]) -> Table:
    timed = [(NAMES[protocol], size, results) for protocol, size, results in _by_size(evidence)]
    timed += [("AODV, whole network at once", row.configuration.size, [row.result]) for row in floods]
    rows = [
        (
            name,
            f"C{size}",
            f"{_mean(r.wall_s for r in results):.1f}",
            f"{_mean(r.cpu_s for r in results):.1f}",
            f"{_mean(r.receptions for r in results):,.0f}",
        )
        for name, size, results in timed
    ]
    note = f"What it takes to simulate a run at {evidence.speed_mps:g} m/s, in seconds."
    return Table("Wall times", note, ("protocol", "size", "wall", "processor", "receptions"), rows)


def _mean(values: Iterable[float]) -> float:
    mean = interval_if_any(values)
    return mean.mean if mean is not None else 0.0

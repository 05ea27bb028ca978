"""What a plan's runs have shown: claims with verdicts, both readings of overhead, baselines, defects, all numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from godwit.lab.gathering.evidence import Evidence
from godwit.lab.gathering.plan import BITS, MISSING, RADII
from godwit.lab.gathering.races import ACTIVE_S, DELAY_S, MOVE_S, PUBLISHED_BAD, VARIANTS
from godwit.lab.gathering.runs import SERVING, Configuration, Result
from godwit.lab.gathering.verdicts import findings, handover, hops, overhead
from godwit.lab.pages import Page, Table

Column = tuple[str, Callable[[Result], float]]

WALK: Sequence[Column] = (
    ("hops", hops),
    ("from the client", lambda result: result.hops_mean + 1),
    ("longest", lambda result: result.hops_max),
    ("std", lambda result: result.hops_std),
    ("overhead, as plotted", overhead),
    ("as defined in the text", lambda result: result.overhead_text),
)
MOBILE: Sequence[Column] = (
    ("associations", lambda result: result.associations),
    ("relocations", lambda result: result.relocations),
    ("handover messages each", handover),
    ("registering each", lambda result: result.registering_sent / max(1, result.relocations)),
    ("detours each", lambda result: result.redirected / max(1, result.relocations)),
    ("late share", lambda result: result.late / max(1, result.received)),
    ("latency ms", lambda result: 1000 * result.latency_s),
    ("lost", lambda result: result.lost),
    ("most care-of", lambda result: result.care_of_max),
    ("most pointers", lambda result: result.pointers),
)
RIVAL: Sequence[Column] = (
    ("hops", hops),
    ("transmissions a request", lambda result: result.sent / 1000),
    ("distance a request", lambda result: result.travelled / 1000),
    ("most subscriptions at a broker", lambda result: result.stored_max),
)
RIVAL_MOBILE: Sequence[Column] = (
    ("lost", lambda result: result.lost),
    ("latency ms", lambda result: 1000 * result.latency_s),
    ("handover messages each", handover),
    ("subscribing each", lambda result: result.subscribing_sent / max(1, result.relocations)),
    ("detours", lambda result: result.redirected),
)


def page(evidence: Evidence, rows: int, command: str) -> Page:
    plan = evidence.plan
    lead = (
        f"{'The quick plan: few seeds and short runs, a first look. ' if plan.quick else ''}{rows} of"
        f" {len(plan.runs())} runs of real protocol cores; intervals of 95 % over maps. Made by `{command}`."
    )
    defects = [races(evidence), *([joins(evidence)] if plan.defects else ())]
    if not plan.evaluation:
        return Page("Races and joins on the ring", lead, [], defects)
    tables = [*_walks(evidence), _mobile(evidence), *_rivals(evidence), *defects]
    return Page("Data gathering over a ring", lead, findings(evidence), tables)


def _rows(
    evidence: Evidence, settings: Sequence[tuple[Sequence[str], Configuration]], columns: Sequence[Column]
) -> list[Sequence[str]]:
    rows: list[Sequence[str]] = []
    for names, setting in settings:
        if evidence.results(setting):
            rows.append((*names, *(str(evidence.mean(quantity, setting)) for _, quantity in columns)))
    return rows


def _heads(*names: str, columns: Sequence[Column]) -> Sequence[str]:
    return (*names, *(name for name, _ in columns))


def _walks(evidence: Evidence) -> list[Table]:
    plan = evidence.plan
    s1 = [((str(size), str(bits), "1"), plan.s1(size, bits)) for size in plan.sizes for bits in BITS]
    wide = [((str(size), "4", f"{radius:g}"), plan.s1(size, 4, radius)) for size in plan.sizes for radius in RADII[1:]]
    holes = [((str(size), "4", "1, holes"), plan.s1(size, missing=MISSING)) for size in plan.sizes]
    s2 = [((str(size), str(bits)), plan.s2(size, bits)) for size in plan.sizes for bits in BITS]
    note = "Hops from the attached broker. 'Holes': each table cell is missing with probability 0.05."
    return [
        Table(
            "S1: subscriptions",
            note,
            _heads("N", "b", "radius", columns=WALK),
            _rows(evidence, [*s1, *wide, *holes], WALK),
        ),
        Table("S2: notices", "One to ten destinations.", _heads("N", "b", columns=WALK), _rows(evidence, s2, WALK)),
    ]


def _mobile(evidence: Evidence) -> Table:
    plan = evidence.plan
    settings = [((str(size),), plan.m(size)) for size in plan.sizes]
    note = "32 phones, 1000 events; messages count once for each overlay hop, without confirmations."
    return Table("M: mobile clients", note, _heads("N", columns=MOBILE), _rows(evidence, settings, MOBILE))


def _rivals(evidence: Evidence) -> list[Table]:
    plan = evidence.plan
    installing = [
        ((str(size), scheme), plan.s1(size, scheme=scheme))
        for size in plan.rival_sizes
        for scheme in ("ring", "flooding", "rendezvous")
    ]
    moving = [
        ((str(size), scheme), plan.m(size, scheme))
        for size in plan.rival_sizes
        for scheme in ("ring", "resubscribing", "home only")
    ]
    first = (
        "A thousand subscriptions from one broker. Flooding runs over the shortest tree; the rendezvous has 20 types."
    )
    second = "The same phones and events. Resubscribing leaves what waited behind; home-only sends all through a home."
    return [
        Table(
            "Baselines for subscriptions",
            first,
            _heads("N", "scheme", columns=RIVAL),
            _rows(evidence, installing, RIVAL),
        ),
        Table(
            "Baselines for moving",
            second,
            _heads("N", "scheme", columns=RIVAL_MOBILE),
            _rows(evidence, moving, RIVAL_MOBILE),
        ),
    ]


def races(evidence: Evidence) -> Table:
    rows = []
    for variant in VARIANTS:
        bad, runs = evidence.bad(evidence.plan.race(variant))
        if runs:
            results = evidence.results(evidence.plan.race(variant))
            missing = sum(result.wanted - result.received for result in results)
            chain = max(result.chain_max for result in results)
            rows.append((variant, f"{bad} of {runs}", PUBLISHED_BAD[variant], f"{missing:,}", str(chain)))
    note = (
        f"12 clients that move every {MOVE_S:g} s on average, for {ACTIVE_S:g} s, among 5 brokers whose messages take"
        f" exponential {DELAY_S:g} s. A run is bad if anything was lost or went round for ever. The spec's counts come"
        " from another simulator, and it does not say how fast its clients moved."
    )
    header = ("rules and world", "bad runs", "the spec counted", "notices missing", "longest chain")
    return Table("Moves faster than messages", note, header, rows)


def joins(evidence: Evidence) -> Table:
    rows = []
    for serving in SERVING:
        bad, runs = evidence.bad(evidence.plan.join(serving))
        if runs:
            results = evidence.results(evidence.plan.join(serving))
            rows.append((serving, f"{bad} of {runs}", str(sum(result.buffered for result in results))))
    note = "A broker joins amid subscriptions, cancellations and events around it, with random delays."
    return Table("Joins under random delays", note, ("the newcomer serves", "bad runs", "matches missed"), rows)

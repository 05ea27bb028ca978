"""Where something is missing at the end: who misses what, where everybody is, and how busy the machine was."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from godwit.commands.demo.ledger import Fact
from godwit.commands.demo.play import Play, Span
from godwit.events import Value
from godwit.filters.filters import FilterSet
from godwit.net.ops.report import Report
from godwit.net.processes import BrokerProcess

SHOWN = 5
SLOW_S = 1.0
"""A handoff that takes longer wants an explanation."""
LATE_S = 1.0
"""A taxi whose report leaves so late tells of a machine that has too much to do."""

EventId = tuple[str, int]


def missing(
    facts: Iterable[Fact], contents: Mapping[EventId, Mapping[str, Value]], wishes: Mapping[str, FilterSet]
) -> dict[str, list[EventId]]:
    """By subscriber the events that it wanted and did not get."""
    got = {(record.client, record.event) for _, _, record in facts if record.kind == "delivered"}
    found = {
        name: [event for event, values in contents.items() if wish.matches(values) and (name, event) not in got]
        for name, wish in wishes.items()
    }
    return {name: events for name, events in found.items() if events}


async def findings(play: Play) -> list[str]:
    """What was seen, in lines; asked while the brokers are still there."""
    reports = await asyncio.gather(*(_report(broker) for broker in play.brokers))
    found = missing(play.ledger.facts, play.ledger.contents, play.wishes)
    named = {broker.address: broker.name for broker in play.brokers}
    where = {walker.person.name: walker for walker in play.walkers}
    lines = []
    for name, events in list(found.items())[:SHOWN]:
        some = ", ".join(f"{publisher}/{number}" for publisher, number in events[:3])
        at = named.get(str(where[name].client.broker), "no broker")
        state = "on its way to another broker" if where[name].under_way else f"at {at}"
        lines.append(f"{name}, {state}, misses {len(events):,}: {some}{', ...' if len(events) > 3 else ''}")
    if len(found) > SHOWN:
        lines.append(f"and {len(found) - SHOWN} others miss something")
    lines += repeated(play.ledger.facts, named)
    lines += disordered(play.ledger.facts, named)
    lines += renewed(play.renewed())
    lines += (told_of(broker.name, report) for broker, report in zip(play.brokers, reports, strict=True))
    return [*lines, *busy(max(play.late_s.values(), default=0.0))]


def disordered(facts: Iterable[Fact], named: Mapping[str, str]) -> list[str]:
    """By subscriber and publisher what came behind something newer, and where the subscriber had been before that."""
    newest: dict[tuple[str, str], int] = {}
    found = Strange("behind newer ones")
    for time_s, client, (publisher, sequence), way in _deliveries(facts, named):
        if sequence < newest.get((client, publisher), -1):
            found.note(time_s, client, publisher, way)
        newest[client, publisher] = max(sequence, newest.get((client, publisher), -1))
    return found.lines()


def repeated(facts: Iterable[Fact], named: Mapping[str, str]) -> list[str]:
    """By subscriber and publisher what came once more, and where the subscriber had been before that."""
    had: set[tuple[str, EventId]] = set()
    found = Strange("once more")
    for time_s, client, event, way in _deliveries(facts, named):
        if (client, event) in had:
            found.note(time_s, client, event[0], way)
        had.add((client, event))
    return found.lines()


def renewed(names: Sequence[str]) -> list[str]:
    """What waits in their old sessions comes when those are found, twice perhaps and behind what is newer."""
    some = ", ".join(names[:SHOWN]) + ", ..." * (len(names) > SHOWN)
    return [f"{len(names)} could not have their session in time, and were given a new one: {some}"] if names else []


class Strange:
    """Deliveries that ought not to be as they are, by subscriber and publisher."""

    def __init__(self, how: str) -> None:
        self.how = how
        self._found: dict[tuple[str, str], tuple[float, int, list[str]]] = {}

    def note(self, time_s: float, client: str, publisher: str, way: list[str]) -> None:
        first_s, many, first_way = self._found.get((client, publisher), (time_s, 0, way[-3:]))
        self._found[client, publisher] = first_s, many + 1, first_way

    def lines(self) -> list[str]:
        return [
            f"{client} got {many:,} of {publisher} {self.how}, first at {first_s:.1f} s, after {' to '.join(way)}"
            for (client, publisher), (first_s, many, way) in list(self._found.items())[:SHOWN]
        ]


def _deliveries(facts: Iterable[Fact], named: Mapping[str, str]) -> Iterator[tuple[float, str, EventId, list[str]]]:
    """When who got what, and where that one had been by then."""
    places: dict[str, list[str]] = {}
    for time_s, _, record in facts:
        if record.kind == "attached":
            places.setdefault(record.client, []).append(named.get(record.peer, record.peer))
        elif record.kind == "delivered" and record.event is not None:
            yield time_s, record.client, record.event, places.get(record.client, [])


async def _report(broker: BrokerProcess) -> Report | None:
    try:
        async with asyncio.timeout(5):
            return await broker.report()
    except (OSError, TimeoutError, msgspec.DecodeError):
        return None


def told_of(name: str, report: Report | None) -> str:
    if report is None:
        return f"broker {name} does not answer"
    waiting = sum(row.waiting + row.under_way for row in report.clients)
    figure = report.counts.get("dropped", 0)
    dropped = sum(figure.values()) if isinstance(figure, dict) else figure
    troubles = f"; in trouble: {'; '.join(report.troubles)}" if report.troubles else ""
    return f"broker {name}: {waiting:,} deliveries wait there, {dropped:,.0f} were dropped{troubles}"


def busy(late_s: float) -> Iterator[str]:
    if late_s > LATE_S:
        again = "try again with fewer: godwit demo --walkers 5 --seconds 10"
        yield f"this machine was busy, and a taxi's report left {late_s:.1f} s late; {again}"


def slow(handoffs: Iterable[Span], outage: tuple[str, Span] | None, late_s: Mapping[int, float]) -> Iterator[str]:
    """Why handoffs took long, as far as it was seen: whoever was killed was waited for, or the machine was busy."""
    rest = [one for one in handoffs if one[1] - one[0] > SLOW_S]
    if not rest:
        return
    yield f"{len(rest)} of them took longer than {SLOW_S:g} s, {max(end - begin for begin, end in rest):.1f} s at most:"
    if outage is not None:
        name, (killed_s, back_s) = outage
        waited = [one for one in rest if one[0] < back_s and one[1] > killed_s]
        if waited:
            down_s = back_s - killed_s
            yield f"  {len(waited)} while {name} was down, for {down_s:.1f} s: it had their sessions, or led there"
        rest = [one for one in rest if one not in waited]
    hurried = [(one, late) for one in rest if (late := _latest(one, late_s)) > LATE_S / 4]
    if hurried:
        most_s = max(late for _, late in hurried)
        yield f"  {len(hurried)} while this machine was so busy that taxis' reports left up to {most_s:.1f} s late"
    if len(rest) > len(hurried):
        yield f"  {len(rest) - len(hurried)} for no reason that was seen here"


def _latest(span: Span, late_s: Mapping[int, float]) -> float:
    return max((late_s.get(second, 0.0) for second in range(int(span[0]), int(span[1]) + 1)), default=0.0)

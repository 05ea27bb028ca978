"""Judges stand outside: they hear what clients were told and got, look at rows on disks, and know no implementation.

Safety: nothing acknowledged is lost, nothing comes twice, what one publisher says through one broker keeps its order,
nobody gets what it did not ask for. Liveness: once nothing is wrong all of that is there, nobody waits any more, disks
are back at their level, and what nobody wants travels nowhere.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import msgspec

from godwit.protocols.host import NodeId
from godwit.sim.brokers.roamer import EXTRA, Roamer, Said

if TYPE_CHECKING:
    from godwit.sim.exploration.trial import Trial

SHOWN_MAX = 6


class Finding(msgspec.Struct, frozen=True):
    kind: str
    who: str
    text: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.who} {self.text}" if self.who else f"{self.kind}: {self.text}"


def all_findings(trial: Trial) -> list[Finding]:
    return [*lost(trial), *twice(trial), *unwanted(trial), *disordered(trial), *left_over(trial), *strays(trial)]


def unfinished(trial: Trial) -> bool:
    """Whether something is still to come, be it a delivery, an acknowledgement or the end of a handoff."""
    return any(True for _ in (*lost(trial), *left_over(trial)))


def due(trial: Trial, roamer: Roamer) -> Iterator[Said]:
    """What it must get: all that matches its wishes and was acknowledged, or is certain to be."""
    for said in trial.said.values():
        if said.qos and not said.given_up and trial.wants(roamer, said) and _counts(trial, said.n):
            yield said


def _counts(trial: Trial, n: int) -> bool:
    """Where a disk was lost nothing can be said of what was published before all had calmed down."""
    return not trial.wiped or 0 < trial.probing_from <= n


def lost(trial: Trial) -> Iterator[Finding]:
    """A broker that loses its disk takes along what only it had: then only what is said afterwards counts."""
    for roamer in trial.subscribers:
        missing = [said.n for said in due(trial, roamer) if not roamer.counts[said.n]]
        if missing:
            yield Finding("lost", roamer.name, f"never got {shown(missing)}")


def twice(trial: Trial) -> Iterator[Finding]:
    for roamer in trial.subscribers:
        twins = [one for one in roamer.twins if _counts(trial, one.n)]
        if twins:
            yield Finding("twice", roamer.name, f"got again {', '.join(map(str, twins[:SHOWN_MAX]))}")


def unwanted(trial: Trial) -> Iterator[Finding]:
    for roamer in trial.subscribers:
        found = [n for n in roamer.counts if not trial.wants(roamer, trial.said[n]) and not _extra(trial.said[n])]
        if found:
            yield Finding("unwanted", roamer.name, f"did not ask for {shown(found)}")


def _extra(said: Said) -> bool:
    return said.topic.endswith(EXTRA.removeprefix("+"))


def disordered(trial: Trial) -> Iterator[Finding]:
    """What one publisher says through one broker comes in as many parts as the client was let in while something was
    wrong, each in its order. Who moves says at another broker again what the first may have taken: that has none."""
    if trial.wiped:
        return
    stayed = {one.name for one in trial.publishers if len({admission.at for admission in one.admissions}) == 1}
    for roamer in trial.subscribers:
        parts = 1 + sum(not one.present or one.disturbed for one in roamer.admissions[1:])
        seen: dict[str, list[int]] = defaultdict(list)
        for n in roamer.order:
            said = trial.said[n]
            certain = said.qos == 2 and roamer.certain and n not in roamer.excused
            if certain and said.publisher in stayed and trial.wants(roamer, said):
                seen[said.publisher].append(n)
        for publisher, order in seen.items():
            if longest_fall(order) > parts:
                yield Finding("disorder", roamer.name, f"got of {publisher} {order} in {parts} parts")


def longest_fall(sequence: Iterable[int]) -> int:
    """The length of the longest part that falls: into so many rising parts the whole can be divided, and no fewer."""
    ends: list[int] = []
    for one in sequence:
        at = bisect_left(ends, -one + 1)
        ends[at : at + 1] = [-one]
    return len(ends)


def left_over(trial: Trial) -> Iterator[Finding]:
    """By the contract of the store: what each table is for says when it must be empty."""
    for roamer in trial.roamers.values():
        if not roamer.at_rest:
            flights = [said.n for said, _ in roamer.flights.values()]
            state = f"waits for answers to {shown(flights)}" if roamer.inside else f"is not let in at {roamer.goal}"
            yield Finding("stuck", roamer.name, state)
    homes: dict[str, list[NodeId]] = defaultdict(list)
    for name, machine in trial.cluster.sites.items():
        kept = [f"{count} {what}" for what, count in machine.broker.unfinished.items() if count] if machine.up else []
        if kept:
            yield Finding("leak", name, f"keeps in memory {', '.join(kept)}")
        disk = machine.node.disk.get("disk", {})
        for table in ("queues", "bodies", "incoming"):
            if disk.get(table):
                yield Finding("leak", name, f"{len(disk[table])} rows in {table}: {_owners(disk[table])}")
        if unsent := [number for owner, number in disk.get("outbox", {}) if not owner]:
            yield Finding("leak", name, f"{len(unsent)} contents that others have not confirmed")
        if turns := [owner for owner, number in disk.get("places", {}) if number]:
            yield Finding("leak", name, f"turns not made for {sorted(set(turns))}")
        for owner, _ in disk.get("sessions", {}):
            homes[owner.partition("\0")[0]].append(name)
    for client, where in homes.items():
        if len(where) > 1:
            yield Finding("leak", client, f"has rows of sessions at {', '.join(sorted(where))}")


def _owners(rows: Iterable[tuple[str, int]]) -> str:
    return ", ".join(sorted({owner.replace("\0", "@") or "-" for owner, _ in rows})[:SHOWN_MAX])


def strays(trial: Trial) -> Iterator[Finding]:
    if trial.strays:
        yield Finding("stray", "", f"what nobody wants travelled from {', '.join(sorted(set(trial.strays)))}")


def shown(numbers: list[int]) -> str:
    more = f" and {len(numbers) - SHOWN_MAX} more" if len(numbers) > SHOWN_MAX else ""
    return ", ".join(map(str, numbers[:SHOWN_MAX])) + more

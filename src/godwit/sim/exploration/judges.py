"""Judges stand outside: they hear what clients were told and got, look at rows on disks, and know no implementation.

Safety: nothing acknowledged is lost, nothing comes twice, what one publisher says through one broker keeps its order,
nobody gets what it did not ask for. Liveness: once nothing is wrong all of that is there, nobody waits any more, disks
are back at their level, and what nobody wants travels nowhere.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator
from math import inf
from typing import TYPE_CHECKING

from godwit.protocols.host import NodeId
from godwit.sim.brokers.roamer import EXTRA, Roamer, Said
from godwit.sim.exploration import judges_lasting as lasting
from godwit.sim.exploration.findings import SHOWN_MAX, Finding, counts, is_certain, shown

if TYPE_CHECKING:
    from godwit.sim.exploration.trial import Trial

PLAIN = ("a/", "b/", "c/")
"""Topics whose retained publications neither expire nor are cleared."""

EMPTY = ("queues", "bodies", "incoming", "gates", "wills", "spilled")
"""Tables of what is on its way, and of connections whose sessions end with them: nobody here has such a one."""


def all_findings(trial: Trial) -> list[Finding]:
    judges = (lost, twice, shared, unwanted, retained, disordered, left_over, strays, *lasting.JUDGES)
    return [finding for judge in judges for finding in judge(trial)]


def unfinished(trial: Trial) -> bool:
    """Whether something is still to come, be it a delivery, an acknowledgement or the end of a handoff. Where sessions
    stay, some of it waits where its client is not, for as long as it likes."""
    waits = left_over(trial) if trial.follows else stuck(trial)
    lasts = (*lasting.misled(trial), *lasting.unrecalled(trial), *lasting.outdated(trial))
    return any(True for _ in (*lost(trial), *shared(trial), *lasts, *waits))


def due(trial: Trial, roamer: Roamer) -> Iterator[Said]:
    """What it must get: all that matches its wishes and was acknowledged, or is certain to be."""
    for said in trial.said.values():
        if not is_certain(trial, roamer, said):
            continue
        if said.time_s <= roamer.clean_s:
            continue  # it wanted nothing of what was
        if said.time_s <= roamer.forfeited_s:
            continue  # it said that it had never been where its session was, and was told that it has none
        keys = trial.wishes_for(roamer, said)
        if keys and not all(_may_miss(trial, roamer, said, key) for key in keys):
            yield said


def _may_miss(trial: Trial, roamer: Roamer, said: Said, key: str) -> bool:
    """Whether the client may have had no such subscription while a broker took this from its publisher: it was told
    that its session is new. If it wanted to start clean nobody collects for it until all brokers know the new one."""
    for gap in roamer.bond.gaps:
        until_s = trial.calm_after(gap.until_s) if gap.clean and gap.until_s < inf else gap.until_s
        if gap.key == key and said.time_s <= until_s and gap.from_s <= said.accepted_s:
            return True
    return False


def lost(trial: Trial) -> Iterator[Finding]:
    """A broker that loses its disk takes along what only it had: then only what is said afterwards counts."""
    for roamer in _plain(trial):
        missing = [said.n for said in due(trial, roamer) if not (roamer.counts[said.n] or roamer.shown[said.n])]
        if missing:
            yield Finding("lost", roamer.name, f"never got {shown(missing)}")


def _single(trial: Trial) -> list[Roamer]:
    """Those that want all of what they want for themselves."""
    return [one for one in trial.subscribers if not trial.cards[one.name].group]


def _plain(trial: Trial) -> list[Roamer]:
    """Those that want all of what comes."""
    cards = trial.cards
    return [one for one in _single(trial) if not (cards[one.name].recalls or cards[one.name].paced)]


def shared(trial: Trial) -> Iterator[Finding]:
    """Of what a group wants each is for one of its members, at whichever brokers they are. What its publisher said
    again where nobody could know that it had said it before is another publication there, as it is to a single client:
    another member may get that."""
    for group, members in trial.groups.items():
        wanted = [{said.n for said in due(trial, one)} for one in members]
        missing = [n for n in sorted(set.union(*wanted)) if not any(one.counts[n] for one in members)]
        if missing:
            yield Finding("lost", group, f"no member got {shown(missing)}")
        if any(not one.certain for one in members):
            continue
        again = [
            said.n
            for said in trial.said.values()
            if said.qos == 2
            and counts(trial, said.n)
            and sum(bool(one.counts[said.n]) for one in members) > said.copies(2)
        ]
        if again:
            yield Finding("twice", group, f"more than one member got {shown(again)}")


def twice(trial: Trial) -> Iterator[Finding]:
    for roamer in trial.subscribers:
        twins = [one for one in roamer.twins if counts(trial, one.n)]
        if twins:
            yield Finding("twice", roamer.name, f"got again {', '.join(map(str, twins[:SHOWN_MAX]))}")


def unwanted(trial: Trial) -> Iterator[Finding]:
    for roamer in trial.subscribers:
        found = [n for n in roamer.counts if not trial.wants(roamer, trial.said[n]) and not _extra(trial.said[n])]
        if found:
            yield Finding("unwanted", roamer.name, f"did not ask for {shown(found)}")
        wills = [n for n in roamer.counts if trial.said[n].taken_back and counts(trial, n)]
        if wills:
            yield Finding("unwanted", roamer.name, f"got wills of clients that had said goodbye: {shown(wills)}")
    for roamer in trial.roamers.values():
        if roamer.wrong:
            yield Finding("unwanted", roamer.name, roamer.wrong[0])


def retained(trial: Trial) -> Iterator[Finding]:
    """Everybody who asks anywhere is told the same: one that was not replaced by its own publisher."""
    if trial.wiped and not trial.promises.replicated:
        return
    topics = {said.topic for said in trial.said.values() if said.retain and said.topic.startswith(PLAIN)}
    for topic in sorted(topics if trial.looks else ()):
        found = {at: kept.get(topic, 0) for at, kept in trial.looks.items()}
        if len(set(found.values())) > 1:
            yield Finding("retained", topic, f"is not the same everywhere: {found}")
            continue
        kept = next(iter(found.values()))
        some = [said for said in trial.said.values() if said.retain and said.topic == topic]
        certain = [one for one in some if one.qos and one.accepted and counts(trial, one.n)]
        if not kept:
            if certain:
                yield Finding("retained", topic, "is lost")
        elif kept not in {said.n for said in some}:
            yield Finding("retained", topic, f"is {kept}, which was not to be retained")
        elif newer := [said.n for said in certain if _replaces(said, trial.said[kept])]:
            yield Finding("retained", topic, f"is {kept}, though {shown(newer)} came after it")


def _replaces(said: Said, other: Said) -> bool:
    """Whether the one was said after the other had been accepted, at the same broker."""
    return said.at == other.at and other.qos > 0 and said.time_s > other.accepted_s


def _extra(said: Said) -> bool:
    return said.topic.endswith(EXTRA.removeprefix("+"))


def disordered(trial: Trial) -> Iterator[Finding]:
    """What one publisher says through one broker comes in as many parts as the client was let in while something was
    wrong, each in its order. A new session is such a part also where the client went on before it heard of it: brokers
    do not know what it heard. Who moves says at another broker again what the first may have taken: that has none."""
    if trial.wiped or not (trial.promises.ordered or trial.is_straight):
        return
    stayed = {one.name for one in trial.publishers if len({admission.at for admission in one.admissions}) == 1}
    for roamer in _single(trial):
        if not (trial.promises.ordered or len(roamer.admissions) == 1):
            continue
        parts = 1 + sum(not one.present or one.disturbed for one in roamer.admissions[1:]) + len(roamer.unheard_of)
        seen: dict[str, list[int]] = defaultdict(list)
        by_level = trial.promises.by_level
        for n in roamer.order:
            said = trial.said[n]
            certain = said.qos == 2 and not said.is_will and roamer.certain and n not in roamer.excused
            if roamer.recalls and said.times > 1:
                continue  # it may be in an archive twice
            if certain and said.publisher in stayed and trial.wants(roamer, said):
                level = said.topic.partition("/")[0] if by_level else ""
                if trial.cards[roamer.name].paced:
                    level = said.topic  # each waits for its own time
                seen[f"{said.publisher} {level}".rstrip()].append(n)
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
    yield from stuck(trial)
    homes: dict[str, list[NodeId]] = defaultdict(list)
    for name, machine in trial.cluster.sites.items():
        kept = [f"{count} {what}" for what, count in machine.broker.unfinished.items() if count] if machine.up else []
        if kept:
            yield Finding("leak", name, f"keeps in memory {', '.join(kept)}")
        disk = machine.node.disk.get("disk", {})
        for table in EMPTY:
            if disk.get(table):
                yield Finding("leak", name, f"{len(disk[table])} rows in {table}: {_owners(disk[table])}")
        if orphans := [row for row in disk.get("subscriptions", {}) if (row[0], 0) not in disk.get("sessions", {})]:
            yield Finding("leak", name, f"subscriptions without sessions: {_owners(orphans)}")
        if unsent := [number for owner, number in disk.get("outbox", {}) if not owner]:
            yield Finding("leak", name, f"{len(unsent)} contents that others have not confirmed")
        if turns := [owner for owner, number in disk.get("places", {}) if number]:
            yield Finding("leak", name, f"turns not made for {sorted(set(turns))}")
        for owner, _ in disk.get("sessions", {}):
            homes[owner.partition("\0")[0]].append(name)
    for client, where in homes.items():
        if len(where) > 1 and trial.follows:
            yield Finding("leak", client, f"has rows of sessions at {', '.join(sorted(where))}")


def stuck(trial: Trial) -> Iterator[Finding]:
    for roamer in trial.roamers.values():
        if not roamer.at_rest:
            flights = [said.n for bond in roamer.bonds.values() for said, _ in bond.flights.values()]
            state = f"waits for answers to {shown(flights)}" if roamer.inside else f"is not let in at {roamer.goal}"
            yield Finding("stuck", roamer.name, state)


def _owners(rows: Iterable[tuple[str, int]]) -> str:
    return ", ".join(sorted({owner.replace("\0", "@") or "-" for owner, _ in rows})[:SHOWN_MAX])


def strays(trial: Trial) -> Iterator[Finding]:
    if trial.strays and trial.promises.confined:
        yield Finding("stray", "", f"what nobody wants travelled from {', '.join(sorted(set(trial.strays)))}")

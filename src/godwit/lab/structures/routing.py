"""E1 to E5: filters come, are matched, and are replaced, in every structure alike; what does each phase cost?"""

from __future__ import annotations

from collections.abc import Sequence

from godwit.filters.filters import TYPE_ATTRIBUTE
from godwit.lab.structures import subjects
from godwit.lab.structures.rows import Measures, Row
from godwit.lab.structures.settings import Setting
from godwit.lab.structures.sources import Change, Phase, phases, wishes
from godwit.lab.structures.subjects import Counts, HierarchicalForest, PeerForest, PeerPoset, Subject
from godwit.lab.structures.truth import Truth
from godwit.lab.workloads import Event
from godwit.tables.matching.counting import Counting

NAIVE, COUNTING = "naive", "counting"

EVENTS = 100
EVENTS_CHECKED_LAST = 20
"""After the replacements matching is only checked, no more measured."""


def run(setting: Setting) -> list[Row]:
    """One row for each structure of the experiment; raises `ViolationError` where one of them is wrong."""
    script = setting.script(events=EVENTS)
    built, replaced = wishes(script)
    truths = Truth(setting, built, script.events), Truth(setting, replaced, script.events[:EVENTS_CHECKED_LAST])
    fed = {reduced: phases(script, reduced=reduced) for reduced in (False, True)}
    rows = []
    for name, make in makers(setting).items():
        subject = make(Counts())
        trial = Trial(name, subject, fed[subject.reduced], truths)
        rows.append(Row(setting, name, trial.measures()))
    if setting.experiment == "E2":
        rows += [Row(setting, NAIVE, naive(truths[0])), Row(setting, COUNTING, counting(truths[0]))]
    return rows


def naive(truth: Truth) -> Measures:
    """What testing every filter takes."""
    tests = len(truth.users) * len(truth.events)
    return Measures(size=len(truth.users), events=len(truth.events), match_tests=tests)


def counting(truth: Truth) -> Measures:
    """What the counting matcher takes: it looks at no constraint but those that its indexes say are satisfied."""
    matcher = Counting()
    for wanted, interfaces in truth.users.items():
        for interface in sorted(interfaces):
            matcher.add(wanted, interface)
    satisfied = 0
    for event, right in zip(truth.events, truth.interested, strict=True):
        if matcher.match(event) != right:
            truth.fail(COUNTING, f"wrong about {event}")
        satisfied += sum(
            attribute.matches(event)
            for wanted in truth.users
            for attribute in wanted
            if attribute.name != TYPE_ATTRIBUTE
        )
    return Measures(size=len(matcher), events=len(truth.events), match_predicates=satisfied)


def makers(setting: Setting) -> subjects.Makers:
    match setting.experiment:
        case "E1":
            return subjects.for_clients()
        case "E2":
            return subjects.for_shared_interfaces()
        case "E3":
            return subjects.for_hierarchies()
        case "E4" | "E5":
            return subjects.for_peers(setting.neighbors)
    raise ValueError(f"{setting.experiment} is not about routing structures")


class Trial:
    """One structure, once."""

    def __init__(self, name: str, subject: Subject, fed: tuple[Phase, Phase], truths: tuple[Truth, Truth]) -> None:
        self.name = name
        self.subject = subject
        self.fed = fed
        self.truths = truths

    def measures(self) -> Measures:
        found = Measures()
        built, replaced = self.fed
        self._build(built.changes, found)
        self._match(self.truths[0].events, found)
        self._check(self.truths[0], built)
        self._replace(replaced.changes, found)
        self._check(self.truths[1], replaced)
        return found

    def _build(self, changes: Sequence[Change], found: Measures) -> None:
        told = [self.subject.add(wanted, change.interface) for change in changes for wanted in change.added]
        found.added = len(told)
        found.add_covers = self.subject.covers
        found.size = len(self.subject.table)
        found.roots = len(self.subject.table.roots())
        if isinstance(self.subject, HierarchicalForest):
            found.eliminate_covers = self.subject.forest.eliminate_covers
        if isinstance(self.subject, PeerForest | PeerPoset):
            found.forwarded = sum(map(bool, told))
            found.sent = sum(told)

    def _match(self, events: Sequence[Event], found: Measures) -> None:
        for event in events:
            self.subject.table.match(event)
        found.events = len(events)
        found.match_tests = self.subject.language.count["matches"]
        found.match_predicates = self.subject.language.count["predicates"]

    def _replace(self, changes: Sequence[Change], found: Measures) -> None:
        covers = {"removed": 0, "uncovered": 0, "added": 0}
        sent = 0
        for change in changes:
            for part, verb in zip(covers, (self.subject.remove, self.subject.resend, self.subject.add), strict=True):
                before = self.subject.covers
                sent += sum(verb(wanted, change.interface) for wanted in getattr(change, part))
                covers[part] += self.subject.covers - before
        found.remove_covers, found.resend_covers, found.insert_covers = covers.values()
        if isinstance(self.subject, PeerForest | PeerPoset):
            found.replace_sent = sent

    def _check(self, truth: Truth, phase: Phase) -> None:
        truth.check(self.name, self.subject.table, phase.held)
        if isinstance(self.subject, PeerForest):
            truth.check_forwards(self.name, self.subject.forest)
        elif isinstance(self.subject, PeerPoset):
            truth.check_forwards(self.name, self.subject.poset)

"""E12 and E13: merging, once for each interface or whenever the root set changes; what is saved, and what spent?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from godwit.filters.filters import Filter
from godwit.filters.language import Filters
from godwit.lab.structures.rows import Measures, Row
from godwit.lab.structures.settings import STEPS_E13, Setting
from godwit.lab.structures.sources import Change, phases, wishes
from godwit.lab.structures.subjects import Counts
from godwit.lab.structures.truth import Truth, interested
from godwit.lab.workloads import Subscription
from godwit.tables.forests.forest import LOCAL, PF, Forest
from godwit.tables.forests.rootset import MergedRoots
from godwit.tables.merging.merging import minimal_cover
from godwit.tables.table import Interface

EVENTS = 100

UNMERGED, PERFECT, IMPERFECT = "unmerged", "perfect", "imperfect"
LANGUAGES = {PERFECT: Filters(), IMPERFECT: Filters(imperfect=True)}


def run(setting: Setting) -> list[Row]:
    """One row without merging and one for each kind of it; raises `ViolationError` where one of them is wrong."""
    measured = measured_in_one_pass(setting) if setting.experiment == "E12" else measured_while_changing(setting)
    return [Row(setting, name, measures) for name, measures in measured.items()]


def measured_in_one_pass(setting: Setting) -> dict[str, Measures]:
    """Each interface's filters are reduced to their minimal cover, and that is merged in one pass (Algorithm 14)."""
    script = setting.script(events=EVENTS, steps=0)
    truth = Truth(setting, script.subscriptions, script.events)
    found: dict[str, Measures] = {}
    counts = Counts()
    wanted = _by_interface(script.subscriptions)
    covers = {interface: minimal_cover(counts, own) for interface, own in wanted.items()}
    found[UNMERGED] = Measures(add_covers=counts.count["covers"])
    _match(truth, UNMERGED, covers, found[UNMERGED])
    for name, language in LANGUAGES.items():
        counts = Counts(language)
        merged = {interface: _merged(counts, cover) for interface, cover in covers.items()}
        found[name] = Measures(merge_tests=counts.count["merge"], merge_covers=counts.count["covers"])
        _match(truth, name, merged, found[name])
    return found


def _by_interface(wanted: Iterable[Subscription]) -> dict[Interface, list[Filter]]:
    found: dict[Interface, list[Filter]] = {}
    for one in wanted:
        found.setdefault(one.interface, []).append(one.wanted)
    return found


def _merged(language: Counts, cover: Sequence[Filter]) -> list[Filter]:
    merged = MergedRoots(language)
    merged.follow(cover)
    return merged.propagated()


def _match(truth: Truth, name: str, told: Mapping[Interface, Sequence[Filter]], measures: Measures) -> None:
    """Install the filters in a forest, match all events there, and compare with what is wanted."""
    counts = Counts()
    table = Forest(counts, PF)
    for interface, filters in told.items():
        for one in filters:
            table.add(one, interface)
    users = _users(told)
    extra = 0
    for event, right in zip(truth.events, truth.interested, strict=True):
        found = table.match(event)
        if found != interested(users, event) or not found >= right or (found != right and name != IMPERFECT):
            truth.fail(name, f"{sorted(found)} is wrong about {event}, which {sorted(right)} want")
        extra += len(found - right)
    measures.roots = sum(map(len, told.values()))
    measures.events = len(truth.events)
    measures.match_tests = counts.count["matches"]
    measures.match_predicates = counts.count["predicates"]
    measures.false_positives = extra
    measures.unwanted = sum(len(told) - len(right) for right in truth.interested)


def _users(told: Mapping[Interface, Iterable[Filter]]) -> dict[Filter, set[Interface]]:
    users: dict[Filter, set[Interface]] = {}
    for interface, filters in told.items():
        for one in filters:
            users.setdefault(one, set()).add(interface)
    return users


def measured_while_changing(setting: Setting) -> dict[str, Measures]:
    """A forest of local clients, and its root set merged after every change (Algorithms 14 to 16)."""
    script = setting.script(events=EVENTS, steps=STEPS_E13)
    built, replaced = phases(script, reduced=False)
    truths = [Truth(setting, wanted, script.events) for wanted in wishes(script)]
    router = Router()
    router.play(built.changes)
    router.check(truths[0])
    found = router.built()
    router.play(replaced.changes)
    router.check(truths[1])
    router.replaced(found)
    return found


class Router:
    """A forest of local clients, and two merged views of its roots."""

    def __init__(self) -> None:
        self.counts = Counts()
        self.remove_covers = 0
        self.table = Forest(self.counts, LOCAL)
        self.languages = {name: Counts(language) for name, language in LANGUAGES.items()}
        self.merged = {name: MergedRoots(language) for name, language in self.languages.items()}

    def play(self, changes: Iterable[Change]) -> None:
        for change in changes:
            for one in change.removed:
                below, before = self.table.children(one), self.counts.count["covers"]
                self.table.remove(one, change.interface)
                self.remove_covers += self.counts.count["covers"] - before
                self._follow([one, *below])
            for one in change.added:
                self.table.add(one, change.interface)
                self._follow([one, *self.table.children(one)])

    def check(self, truth: Truth) -> None:
        if set(self.table.roots()) != truth.roots:
            truth.fail(UNMERGED, "the root set is wrong")
        for name, merged in self.merged.items():
            truth.check_propagated(name, merged.propagated(), perfect=name == PERFECT)

    def built(self) -> dict[str, Measures]:
        covers = self.counts.count["covers"]
        found = {UNMERGED: Measures(size=len(self.table), roots=len(self.table.roots()), add_covers=covers)}
        for name, merged in self.merged.items():
            count = self.languages[name].count
            found[name] = Measures(
                roots=len(merged.propagated()), merge_tests=count["merge"], merge_covers=count["covers"]
            )
        return found

    def replaced(self, found: Mapping[str, Measures]) -> None:
        """Add what has come since the measures were taken."""
        plain = found[UNMERGED]
        plain.remove_covers = self.remove_covers
        plain.insert_covers = self.counts.count["covers"] - (plain.add_covers or 0) - self.remove_covers
        plain.replace_roots = len(self.table.roots())
        for name, merged in self.merged.items():
            measures, count = found[name], self.languages[name].count
            measures.replace_roots = len(merged.propagated())
            measures.replace_merge_tests = count["merge"] - (measures.merge_tests or 0)
            measures.replace_merge_covers = count["covers"] - (measures.merge_covers or 0)

    def _follow(self, concerned: Sequence[Filter]) -> None:
        """Only what was added or removed and what is or was below it can have become a root or ceased to be one."""
        for merged in self.merged.values():
            merged.change(
                came=[one for one in concerned if self.table.is_root(one) and one not in merged.roots],
                went=[one for one in concerned if one in merged.roots and not self.table.is_root(one)],
            )

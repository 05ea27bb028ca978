"""Which worker of pytest-xdist gets which test, and which it gets first.

Tests that share what is made once, a Spark session or what a module has made for all its tests, are a group, and a
group goes to one worker: any other would make it again. Groups that take long are handed out first.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pytest
from xdist.scheduler import LoadGroupScheduling
from xdist.workermanage import WorkerController

MARK = "xdist_group"
PLAIN = pytest.StashKey[object]()
"""What a test is called where it is named after its group meanwhile."""


def join(item: pytest.Item, own: str) -> None:
    """Make a test one of this group, where it is in none yet."""
    if group(item) is None:
        item.add_marker(pytest.mark.xdist_group(own))


def group(item: pytest.Item) -> str | None:
    marker = item.get_closest_marker(MARK)
    return None if marker is None else str(marker.args[0])


def shares(item: pytest.Item) -> bool:
    """Whether it uses something that is made once for its module."""
    known = item._fixtureinfo.name2fixturedefs if isinstance(item, pytest.Function) else {}
    return any(found[-1].scope == "module" for found in known.values())


def are_asked_for(config: pytest.Config) -> bool:
    """Whether this is a worker that says which groups its tests are of."""
    return bool(getattr(config.option, "loadgroup", False))


def ordered(items: Collection[pytest.Item], first: Sequence[str]) -> list[pytest.Item]:
    """Tests of the groups that take longest, of other groups, and the rest, which are handed out one by one."""

    def turn(item: pytest.Item) -> int:
        own = group(item)
        return len(first) + 1 if own is None else first.index(own) if own in first else len(first)

    return sorted(items, key=turn)


def name_after_groups(items: Collection[pytest.Item]) -> None:
    """Workers tell xdist of groups by names of tests that end in `@group`.

    From pytest 9.2 on a name is kept elsewhere than where xdist 3.8 adds that end: it takes all groups apart, without
    a word (pytest-xdist, issue 1386).
    """
    for item in items:
        own, named = group(item), getattr(item, "_id", None)
        if own is not None and named is not None:
            item.stash[PLAIN] = named
            item._id = type(named).parse(f"{item.nodeid}@{own}")


def name_plainly(items: Collection[pytest.Item]) -> None:
    """When xdist knows: what a failed test is called can be typed again."""
    for item in items:
        if PLAIN in item.stash:
            item._id = item.stash[PLAIN]  # type: ignore[assignment]


class Scheduling(LoadGroupScheduling):
    """As pytest-xdist 3.8 hands out groups, and goes on where a worker has ended in the middle of a test.

    A worker begins a test when it knows what follows. There, one that replaces another is given a single unit: of one
    test, it waits for ever where nobody else is left. It is given the test that ended the other one. And the end of a
    worker is forgotten, with its test, while another one has yet to find its tests.
    """

    def remove_node(self, node: WorkerController) -> str | None:
        """The test in which this worker ended; it counts as done."""
        for unit in self.assigned_work[node].values():
            for name, done in unit.items():
                if not done:
                    unit[name] = True
                    super().remove_node(node)
                    return name
        return super().remove_node(node)

    def _reschedule(self, node: WorkerController) -> None:
        if node not in self.registered_collections:
            return  # `schedule` is called when it has found its tests
        super()._reschedule(node)
        while self.workqueue and not node.shutting_down and self._pending_of(self.assigned_work[node]) < 2:
            self._assign_work_unit(node)

"""Windows into the running broker (content-routing 2.14): how what its clients want is arranged, and how things and
lasting questions meet. Each answer is checked against the naive way, and says so."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, Callable, Iterable, Mapping
from dataclasses import replace
from itertools import islice

import msgspec

from godwit.events import Value
from godwit.filters.filters import Filter
from godwit.filters.language import FILTERS, Counted, Language
from godwit.filters.predicates import Values
from godwit.net.server import Parts
from godwit.protocols.broker.lasting.profiles import fits, profile_of, text_of
from godwit.protocols.broker.lasting.things import question_of
from godwit.protocols.broker.lasting.views import Watch
from godwit.protocols.broker.publication import Publication
from godwit.protocols.broker.session.parse import filters_of
from godwit.protocols.broker.session.retained import is_good
from godwit.protocols.broker.session.state import Session
from godwit.tables.double import DoubleForest, Side
from godwit.tables.forests.forest import BF, LOCAL, NRF, Forest, Pruning, Rules
from godwit.tables.forests.poset import Poset
from godwit.tables.forests.rootset import MergedRoots

SIZE, SIZE_MAX = 200, 1_000
"""Filters that are arranged: each may be compared with each."""
TOPICS_SHOWN = 20
QUESTIONS_SHOWN, CHECKED_THINGS_MAX = 200, 5_000
CLIENTS_SHOWN = 5


class NodeRow(msgspec.Struct, frozen=True, kw_only=True):
    """A filter in a structure. `parents` are places in the list; none: it is a root."""

    text: str
    clients: list[str]
    uses: int
    parents: list[int]


class StructureRow(msgspec.Struct, frozen=True, kw_only=True):
    """One way to arrange the same filters."""

    kind: str
    nodes: int
    roots: int
    depth: int
    tests: int
    """Covering tests that it took to build it."""
    merged: int
    """Roots once they are merged perfectly."""
    merged_loosely: int
    """And where a merger may accept more than they do."""
    agrees: bool
    """Its roots are those that comparing each with each finds."""


class Structures(msgspec.Struct, frozen=True, kw_only=True):
    total: int
    """Filters of clients here, each counted once."""
    taken: int
    """So many of them are arranged."""
    kind: str
    compared: list[StructureRow]
    nodes: list[NodeRow]
    """Of the kind that was asked for."""
    stated: list[str]
    """What this broker has told the others that it wants."""


class ThingRow(msgspec.Struct, frozen=True, kw_only=True):
    """A thing that is a subspace."""

    topic: str
    profile: str
    questions: int
    """Those that it answers."""


class QuestionRow(msgspec.Struct, frozen=True, kw_only=True):
    """A lasting subscription whose client is connected here."""

    client: str
    text: str
    sense: str
    view: str
    number: int
    """Of the last change that was told."""
    known: int
    """Things that the client knows to match."""
    pending: int
    """What is to be told."""
    topics: list[str]
    """The first of those that match now."""
    matches: int
    agrees: bool | None
    """Asking every thing finds the same; None where there are too many to ask."""


class Context(msgspec.Struct, frozen=True, kw_only=True):
    retained: int
    """Topics with a retained publication, here."""
    subspaces: list[ThingRow]
    total: int
    questions: list[QuestionRow]
    profile_forest: list[NodeRow]
    """Both forests are there once something is a subspace."""
    question_forest: list[NodeRow]


Edges = Callable[[Filter], Iterable[Filter]]
Counting = Counted[Filter, Values]


def _forest(rules: Rules) -> Callable[[Mapping[Filter, list[str]], Counting], tuple[list[Filter], list[Filter], Edges]]:
    def built(wanted: Mapping[Filter, list[str]], language: Counting) -> tuple[list[Filter], list[Filter], Edges]:
        table = Forest(language, rules)
        for one, clients in wanted.items():
            for client in clients:
                table.add(one, client)
        kept = [one for one in wanted if table.interfaces(one)]
        return kept, table.roots(), lambda one: [found] if (found := table.parent(one)) is not None else []

    return built


def _poset(wanted: Mapping[Filter, list[str]], language: Counting) -> tuple[list[Filter], list[Filter], Edges]:
    table = Poset(language, pruned=False)
    for one, clients in wanted.items():
        for client in clients:
            table.add(one, client)
    return list(wanted), table.roots(), table.predecessors


KINDS = {
    "FP": _poset,
    "PF": _forest(LOCAL),
    "BF": _forest(replace(BF, pruning=Pruning.NONE)),
    "NRF": _forest(NRF),
}
"""The filters poset, the poset-derived forest, the balanced one, and the one without redundant filters (spec 2.2 to
2.6). The first three keep all that a client wants; the last drops what the same client's other filters cover."""


async def structures(parts: Parts, sessions: AsyncIterable[Session], kind: str, size: int) -> Structures:
    """The filters of these clients, arranged in all ways; `kind`, one of `KINDS`, is shown filter by filter."""
    wanted: dict[Filter, list[str]] = {}
    async for session in sessions:
        for one in filters_of(session.subscriptions.values(), lasting=True):
            clients = wanted.setdefault(one, [])
            if session.client not in clients:
                clients.append(session.client)
    taken = dict(islice(wanted.items(), min(size or SIZE, SIZE_MAX)))
    stated = list(parts.stated)
    return await asyncio.to_thread(_structures, taken, len(wanted), kind, stated)


def _structures(wanted: Mapping[Filter, list[str]], total: int, kind: str, stated: list[Filter]) -> Structures:
    compared, nodes = [], list[NodeRow]()
    tops = _tops(wanted)
    for name, build in KINDS.items():
        language: Counting = Counted(FILTERS)
        kept, roots, parents = build(wanted, language)
        tests = language.count["covers"]
        agrees = {_top(root, tops) for root in roots} == set(tops) and len(roots) >= len(tops)
        compared.append(
            StructureRow(
                kind=name,
                nodes=len(kept),
                roots=len(roots),
                depth=_depth(kept, parents),
                tests=tests,
                merged=_merged(roots, FILTERS),
                merged_loosely=_merged(roots, type(FILTERS)(imperfect=True)),
                agrees=agrees,
            )
        )
        if name == kind:
            nodes = _rows(kept, parents, wanted)
    from godwit.filters.text import to_text  # takes a while to load, and few ask

    return Structures(
        total=total,
        taken=len(wanted),
        kind=kind,
        compared=compared,
        nodes=nodes,
        stated=[to_text(one) for one in stated[:SIZE_MAX]],
    )


def _tops(wanted: Iterable[Filter]) -> list[Filter]:
    """The naive way: those that no other covers, one of each that mean the same."""
    tops: list[Filter] = []
    for one in wanted:
        if not any(other.covers(one) for other in tops):
            tops = [other for other in tops if not one.covers(other)]
            tops.append(one)
    return tops


def _top(root: Filter, tops: Iterable[Filter]) -> Filter | None:
    """The one that means the same."""
    return next((one for one in tops if one.covers(root) and root.covers(one)), None)


def _depth(kept: Iterable[Filter], parents: Edges) -> int:
    """Filters on the longest way down."""
    depths: dict[Filter, int] = {}

    def depth(one: Filter) -> int:
        if one not in depths:
            depths[one] = 1 + max((depth(above) for above in parents(one)), default=0)
        return depths[one]

    return max(map(depth, kept), default=0)


def _merged(roots: Iterable[Filter], language: Language[Filter, Values]) -> int:
    merged = MergedRoots(language, eager=True)
    merged.follow(roots)
    return len(merged.propagated())


def _rows(kept: list[Filter], parents: Edges, clients: Mapping[Filter, Iterable[str]]) -> list[NodeRow]:
    from godwit.filters.text import to_text

    places = {one: at for at, one in enumerate(kept)}
    rows = []
    for one in kept:
        names = sorted(clients.get(one, ()))
        above = [places[other] for other in parents(one) if other in places]
        rows.append(NodeRow(text=to_text(one), clients=names[:CLIENTS_SHOWN], uses=len(names), parents=above))
    return rows


async def context(parts: Parts) -> Context:
    """Things, lasting questions, and what they have to do with each other at this moment."""
    views = parts.broker.views
    watches = list(views.watches)
    shelf, now = parts.broker.shelf, parts.broker.steady()
    good = [last.publication for last in shelf if is_good(last.publication, now)]
    checked = good if len(good) <= CHECKED_THINGS_MAX else None
    questions = []
    for watch in watches[:QUESTIONS_SHOWN]:
        questions.append(_question(watch, views.things.find(watch.asked, now), checked))
        await asyncio.sleep(0)
    subspaces = [one for one in good if text_of(one) is not None]
    forest = views.things.profiles.forest
    return Context(
        retained=len(shelf),
        subspaces=[
            ThingRow(
                topic=one.topic, profile=text_of(one) or "", questions=len(views.things.profiles.asking(one.topic))
            )
            for one in subspaces[:QUESTIONS_SHOWN]
        ],
        total=len(watches),
        questions=questions,
        profile_forest=_side(forest, Side.PROFILES),
        question_forest=_side(forest, Side.QUERIES),
    )


def _question(watch: Watch, found: Iterable[str], things: list[Publication] | None) -> QuestionRow:
    wanted, topics = watch.sub.wanted, sorted(found)
    return QuestionRow(
        client=watch.session.client,
        text=f"{wanted.topics}{f' where {wanted.condition}' if wanted.condition else ''}",
        sense=wanted.lasting.name.lower(),
        view=watch.view.name,
        number=watch.view.number,
        known=len(watch.view.told),
        pending=len(watch.pending),
        topics=topics[:TOPICS_SHOWN],
        matches=len(topics),
        agrees=None if things is None else _asked_of_all(watch, things) == topics,
    )


def _asked_of_all(watch: Watch, things: Iterable[Publication]) -> list[str]:
    """The set algorithm of the specification: every thing is compared with the question."""
    question, sense = question_of(watch.asked), watch.sub.wanted.lasting

    def answers(one: Publication) -> bool:
        if text_of(one) is None:
            return question.matches(one.values())
        return fits(question, profile_of(one), sense)

    return sorted(one.topic for one in things if answers(one))


def _side(forest: DoubleForest[Filter, dict[str, Value]] | None, side: Side) -> list[NodeRow]:
    if forest is None:
        return []
    kept = list(islice(forest.held(side), SIZE_MAX))
    names = {one: sorted(forest.names(side, one)) for one in kept}
    own = forest.forests[side]

    def parents(one: Filter) -> list[Filter]:
        return [found] if (found := own.parent(one)) is not None else []

    return _rows(kept, parents, names)

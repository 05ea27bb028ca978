"""A small plan that keeps all promises, and brokers that break them on purpose."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec

from godwit.filters.filters import filter_of
from godwit.protocols.broker.api import Delivery, Opening, Outlet
from godwit.protocols.broker.lasting.views import Change
from godwit.protocols.broker.messages import Dealt, Share
from godwit.protocols.broker.publication import Publication
from godwit.protocols.host import NodeId
from godwit.sim.brokers.disk import SimArchive
from godwit.sim.brokers.station import Station
from godwit.sim.exploration.plan import (
    AnyStep,
    Ask,
    Card,
    Come,
    Plan,
    Publish,
    Put,
    Recall,
    Slow,
    Strike,
    Vanish,
    Wish,
)

Tamper = Callable[[Station], None]


def small_plan(*more: AnyStep) -> Plan:
    """A subscriber that hops from one broker to the other while eight events are published at the other."""
    said = [Publish(at_s=0.4 * n, client="p1", topic="a/x", warm=bool(n % 2), qos=2) for n in range(8)]
    hop = Come(at_s=1.0, client="s1", to="b2")
    return Plan(
        seed=1,
        brokers=("b1", "b2"),
        links=(("b1", "b2"),),
        clients=(Card(name="s1", home="b1", wishes=(Wish("a"),)), Card(name="p1", home="b2")),
        steps=tuple(sorted((*said, hop, *more), key=lambda step: step.at_s)),
    )


def rich_plan() -> Plan:
    """What is retained, a client with a will that breaks off and one that starts clean, and a group at two brokers."""
    will = Card(name="s2", home="b1", wishes=(Wish("b"),), will_qos=1)
    members = [Card(name=f"g{n}", home=f"b{n}", wishes=(Wish("c", group="g"),)) for n in (1, 2)]
    steps: list[AnyStep] = [
        *(Publish(at_s=0.1 * n, client="p1", topic="c/x", warm=True, qos=2) for n in range(6)),
        Publish(at_s=0.7, client="p1", topic="b/x", warm=True, qos=2, retain=True),
        Vanish(at_s=1.0, client="s2", notice_s=0.0),
        Come(at_s=2.0, client="s2", to="b2"),
        Vanish(at_s=3.0, client="s2", goodbye=True),
        Come(at_s=9.0, client="s2", to="b1"),
        Come(at_s=12.0, client="s2", to="b2", clean=True),
    ]
    plan = small_plan()
    return msgspec.structs.replace(plan, clients=(*plan.clients, will, *members), steps=tuple(steps))


def lasting_plan() -> Plan:
    """Things that move, one who asks and is away for a while, one who wants the past, and one who wants little."""
    asking = Card(
        name="s1", home="b1", asks=(Ask("t", low=2, high=5), Ask("t", near="t/2", reach=1), Ask("t", quiet=True))
    )
    recalling = Card(name="r1", home="b1", wishes=(Wish("a", since_s=1.5),))
    paced = Card(name="k1", home="b2", wishes=(Wish("a", interval_s=2.0),))
    steps: list[AnyStep] = [
        *(Publish(at_s=0.3 * n, client="p1", topic="a/x", warm=True, qos=2) for n in range(40)),
        *(Put(at_s=0.25 * n, client="p1", topic=f"t/{n % 3}", x=n * 5 % 8, width=n % 2) for n in range(30)),
        Put(at_s=10.0, client="p1", topic="t/0", clear=True),
        Vanish(at_s=2.0, client="s1", notice_s=0.0),
        Come(at_s=6.0, client="s1", to="b2"),
        Recall(at_s=4.0, client="r1"),
    ]
    plan = small_plan()
    clients = (asking, recalling, paced, Card(name="p1", home="b2"))
    return msgspec.structs.replace(plan, clients=clients, steps=tuple(sorted(steps, key=lambda step: step.at_s)))


CRASH = (
    Slow(at_s=1.8, broker="b2", write_s=0.2, for_s=1.0),
    Strike(at_s=1.9, broker="b2", writes=1, after=False, down_s=1.0),
)
"""At a write that takes long enough for somebody to be told of it too early."""


def outlets(change: Callable[[Station, Any], None]) -> Tamper:
    """Brokers whose connections are changed as clients come in."""

    def tamper(station: Station) -> None:
        let_in = station.broker.open

        def changed(opening: Opening, outlet: Outlet) -> None:
            change(station, outlet)
            let_in(opening, outlet)

        station.broker.open = changed  # type: ignore[method-assign]

    return tamper


def _forget(station: Station, outlet: Any, number: int) -> None:
    station.broker.acknowledged(outlet.session, number)


def _dropping(station: Station, outlet: Any) -> None:
    """Every third delivery is taken for done, and never leaves."""
    deliver, count = outlet.deliver, iter(range(1_000_000))

    def dropped(delivery: Delivery) -> None:
        if next(count) % 3 == 2:
            station.node.after(0.01, partial(_forget, station, outlet, delivery.number))
        else:
            deliver(delivery)

    outlet.deliver = dropped


def _repeating(station: Station, outlet: Any) -> None:
    deliver = outlet.deliver

    def repeated(delivery: Delivery) -> None:
        deliver(delivery)
        deliver(msgspec.structs.replace(delivery, number=delivery.number + 1_000))

    outlet.deliver = repeated


def _reordering(station: Station, outlet: Any) -> None:
    """What comes second over a connection waits until others have overtaken it."""
    deliver, count = outlet.deliver, iter(range(1_000_000))

    def late(delivery: Delivery) -> None:
        delay_s = 1.0 if next(count) == 1 else 0.0
        station.node.after(delay_s, lambda: deliver(delivery))

    outlet.deliver = late


def _hasty(station: Station) -> None:
    """Publications are acknowledged before they are on any disk."""
    publish = station.broker.publish

    def published(session: Any, offered: Any) -> None:
        outlet = session.outlet
        publish(session, offered)
        for publication, number in offered:
            outlet.accepted(number, publication.qos, 0)

    station.broker.publish = published  # type: ignore[method-assign]


def _silent(station: Station, outlet: Any) -> None:
    outlet.accepted = lambda number, qos, reason: None


def _generous(station: Station) -> None:
    """Clients get all topics, whichever they ask for."""
    subscribe = station.broker.subscribe
    station.broker.subscribe = lambda session, wanted: subscribe(  # type: ignore[method-assign]
        session, [msgspec.structs.replace(one, topics="#", condition="") for one in wanted]
    )


def _greedy(station: Station) -> None:
    """The broker wants everything of the others, whatever its clients want."""
    want = station.fabric.want
    station.fabric.want = lambda filters: want([filter_of()])  # type: ignore[method-assign]


def _hoarding(station: Station) -> None:
    delete = station.store.delete

    def kept(table: str, owner: str, number: int) -> None:
        if table != "queues":
            delete(table, owner, number)

    station.store.delete = kept  # type: ignore[method-assign]


class _Kept(dict[Any, Any]):
    def pop(self, key: Any, default: Any = None) -> Any:
        return self.get(key, default)


def _remembering(station: Station) -> None:
    """Whom a session has asked to turn is never forgotten, though no row of it stays."""
    station.broker._moves.turning._asked = _Kept()


def _failing(station: Station) -> None:
    def received(session: Any, number: int) -> bool:
        raise KeyError(number)

    station.broker.received = received  # type: ignore[method-assign]


def _retaining_nothing(station: Station) -> None:
    """One broker keeps none of what is to be retained."""
    if station.node.name == "b2":
        station.broker._switch.retained.keep = lambda *last: None  # type: ignore[method-assign]


def _heedless(station: Station) -> None:
    """A client that says goodbye is taken for one that has broken off."""
    close = station.broker.close
    station.broker.close = lambda session, outlet, **how: close(session, outlet, will=True)  # type: ignore[method-assign]


def _disloyal(station: Station) -> None:
    """No will is ever said."""
    station.broker._registry._publish_will = lambda will, sequence: None  # type: ignore[method-assign]


def _clinging(station: Station) -> None:
    """Nobody can start clean."""
    let_in = station.broker.open
    station.broker.open = lambda opening, outlet: let_in(  # type: ignore[method-assign]
        msgspec.structs.replace(opening, clean=opening.clean and not opening.expiry_s), outlet
    )


def _ungrouped(station: Station) -> None:
    """Each member of a group gets everything."""
    subscribe = station.broker.subscribe
    station.broker.subscribe = lambda session, wanted: subscribe(  # type: ignore[method-assign]
        session, [msgspec.structs.replace(one, group="") for one in wanted]
    )


def _stingy(station: Station) -> None:
    """No member of a group gets anything."""
    station.broker._switch.dealing.share = lambda *shared, settle=True: True  # type: ignore[method-assign]


def _parochial(station: Station) -> None:
    """One member at each broker gets it."""
    dealing = station.broker._switch.dealing
    decide = dealing.decide

    def decided(publication: Publication, share: Share) -> NodeId | None:
        for broker in dealing.switch.audiences.seats(share.group):
            dealing.switch.fabric.send((broker,), Dealt(publication, share))
        return decide(publication, share)

    dealing.decide = decided  # type: ignore[method-assign]


def _deaf(station: Station) -> None:
    """What changes is not told."""
    station.broker._switch.retained.on_change = lambda last: None


def _miscounting(station: Station) -> None:
    """Every second change has the number of the one before."""
    views = station.broker._switch.views
    say = views._say

    def said(watch: Any, topic: str, change: Any) -> None:
        watch.view.number -= watch.view.number % 2
        say(watch, topic, change)

    views._say = said  # type: ignore[method-assign]


def _recording(station: Station) -> None:
    """What a client was not told while it was away it is told later, one after the other."""
    views, retained = station.broker._switch.views, station.broker._switch.retained
    wake, kept = views.wake, list[Any]()
    on_change = retained.on_change

    def changed(last: Any) -> None:
        kept.append(last)
        on_change(last)

    def woken(session: Any, *, anew: bool) -> None:
        wake(session, anew=anew)
        for watch in views._of.get(session, ()):
            for last in kept:
                views._say(watch, last.publication.topic, Change("+", last))

    retained.on_change, views.wake = changed, woken  # type: ignore[method-assign]


def _past_of(station: Station) -> SimArchive:
    assert isinstance(station.broker.past, SimArchive)
    return station.broker.past


def _forgetful(station: Station) -> None:
    """Nothing is archived in one of three cases."""
    past, count = _past_of(station), iter(range(1_000_000))
    station.broker.on_published = lambda one: past.add(one) if next(count) % 3 else None


def _echoing(station: Station) -> None:
    """Everything is archived twice."""
    past = _past_of(station)

    def added(one: Any) -> None:
        past.add(one)
        past.add(one)

    station.broker.on_published = added


def _ancient(station: Station) -> None:
    """All of the past is read, however little was asked for."""
    past = _past_of(station)
    read = past.read
    past.read = lambda since, *more: read(0.0, *more)  # type: ignore[method-assign]


def _rushing(station: Station) -> None:
    """Nothing waits for its time."""
    paces = station.broker._switch.paces
    paces.take = paces._give  # type: ignore[method-assign]


def _conservative(station: Station) -> None:
    """What waits for its time stays, whatever is newer."""
    paces = station.broker._switch.paces
    take = paces.take

    def taken(session: Any, item: Any) -> None:
        turn = paces._turns.get(session, {}).get((item.pace, item.label.topic))
        if turn is None or turn.item is None or turn.item is item:
            take(session, item)

    paces.take = taken  # type: ignore[method-assign]


PLANTED_LASTING: dict[str, tuple[Tamper, str]] = {
    "does not tell what changes": (_deaf, "misled"),
    "uses numbers twice": (_miscounting, "misnumbered"),
    "tells what is past": (_recording, "history"),
    "archives not everything": (_forgetful, "lost"),
    "archives everything twice": (_echoing, "twice"),
    "reads more than was asked for": (_ancient, "unwanted"),
    "has no patience": (_rushing, "hasty"),
    "keeps the oldest": (_conservative, "outdated"),
}
"""The same in a world of what lasts."""

PLANTED_RICH: dict[str, tuple[Tamper, str]] = {
    "forgets what is retained": (_retaining_nothing, "retained"),
    "says wills of clients that said goodbye": (_heedless, "unwanted"),
    "says no wills": (_disloyal, "lost"),
    "lets nobody start clean": (_clinging, "unwanted"),
    "gives each member of a group everything": (_ungrouped, "twice"),
    "gives no member of a group anything": (_stingy, "lost"),
    "deals out to a member at each broker": (_parochial, "twice"),
}
"""The same in a world with all of that."""

PLANTED: dict[str, tuple[Tamper, str]] = {
    "drops deliveries": (outlets(_dropping), "lost"),
    "repeats deliveries": (outlets(_repeating), "twice"),
    "reorders deliveries": (outlets(_reordering), "disorder"),
    "acknowledges what is on no disk": (_hasty, "lost"),
    "never acknowledges": (outlets(_silent), "stuck"),
    "delivers what nobody asked for": (_generous, "unwanted"),
    "wants what no client wants": (_greedy, "stray"),
    "never deletes": (_hoarding, "leak"),
    "never forgets": (_remembering, "leak"),
    "fails": (_failing, "error"),
}
"""What is wrong with a broker, and the judge that must say so."""

"""A directory of which no broker knows all: where a client's session is, its homes know, and they are asked.

A client has `HOMES` homes, found by hashing its name. A broker that has the session registers it there; of two places
the higher wins, and a home tells the loser. So a hop costs as many messages whether there are ten brokers or a thousand
(shared/ring.md, "Where sessions are"). What a home knows of clients stands in its `Places`, as what everybody knows
does in a tree; the rest here is soft, and made again where it is lost.

Deployed with the ring (docs/ring.md), where the homes of a client are the owners of keys. A session that began while
an older one was out of reach still asks all brokers that this one has ever had to do with; the homes would have to say
which older places they know of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from hashlib import blake2b
from typing import Protocol

import msgspec

from godwit.protocols.broker.fabric.base import ANYTHING, Fabric
from godwit.protocols.broker.handoff.directory import NOWHERE, At, Then, Whereabouts
from godwit.protocols.broker.messages import Found, Place, Placed, Sought
from godwit.protocols.host import Host, NodeId, Timer

HOMES = 3
ANSWER_S = 2.0
"""How long a home may take to answer where another has said that it knows nothing."""

RELAYED_S = 3 * ANSWER_S
"""How long a question of another broker is asked on. That one asks again itself."""

ASKERS_S = 60.0
"""How long a home remembers who has asked: it is told if the session turns up."""

HOPS_MAX = 4
"""So many brokers ask on for somebody who takes them for homes, and whose map is older than theirs."""

CLIENTS_MAX = 65_536
"""Of so many clients a home remembers who has asked, the last ones."""

Names = Callable[[Sequence[NodeId]], None]


class Homes(Protocol):
    """The homes of a client, this broker perhaps among them."""

    def homes(self, client: str) -> Sequence[NodeId]:
        """Those that are known now."""

    def find_homes(self, client: str, then: Names) -> None:
        """`then(homes)` follows once, now or later."""

    def is_sure(self, client: str) -> bool:
        """Whether this broker, where it is a home of the client, would know if there were a session."""

    def correct(self, client: str, broker: NodeId) -> None:
        """Tell another one, who takes this broker for a home, who the homes are."""


class Hashed:
    """Homes by the highest hash of client and broker: who knows of the same brokers finds the same homes, and of a
    broker that comes or goes only its own clients notice it."""

    def __init__(self, name: NodeId, fabric: Fabric, count: int = HOMES) -> None:
        self.name = name
        self.fabric = fabric
        self.count = count

    def homes(self, client: str) -> Sequence[NodeId]:
        brokers = (self.name, *self.fabric.sources(ANYTHING))
        return sorted(brokers, key=lambda broker: _weight(client, broker), reverse=True)[: self.count]

    def find_homes(self, client: str, then: Names) -> None:
        then(self.homes(client))

    def is_sure(self, client: str) -> bool:
        return True

    def correct(self, client: str, broker: NodeId) -> None:
        """It knows of the same brokers, or soon will."""


def _weight(client: str, broker: NodeId) -> bytes:
    return blake2b(f"{client}\0{broker}".encode("utf-8", "surrogatepass"), digest_size=8).digest()


class Question(msgspec.Struct):
    """Asked, and not answered by all yet."""

    client: str
    then: Then
    is_open: Callable[[], bool]
    """Whether anybody waits for the answer."""
    hops: int = 0
    patient: bool = False
    """Whoever is silent is waited for, though others have said that they know nothing."""
    silent: set[NodeId] = msgspec.field(default_factory=set)
    """The homes that were asked last and have not answered since."""
    timer: Timer | None = None
    sure: bool = False
    """Somebody who would know of a session has said that there is none."""
    doubted: bool = False
    """Somebody has said that there is none as far as he knows."""


class CareOf:
    """A `Directory`, for a broker with this host and this fabric."""

    complete = False

    def __init__(self, host: Host, fabric: Fabric, homes: Homes) -> None:
        self.host = host
        self.fabric = fabric
        self.homes = homes
        self._here: Whereabouts = lambda client: None
        self._noted: Whereabouts = lambda client: None
        self._settled: Callable[[str], None] = lambda client: None
        self._silent: dict[str, set[NodeId]] = {}
        """By client whose session is here: the homes that have not said that they know."""
        self._serial = 0
        self._questions: dict[int, Question] = {}
        self._askers: dict[str, dict[NodeId, float]] = {}
        """By client who has asked, and until when that is remembered."""
        self._registered: dict[str, set[NodeId]] = {}
        """By client whose session is here: the homes that were told."""
        self._placed: dict[str, At] = {}
        """What homes have said last of a client: each of them says it."""

    def serve(self, here: Whereabouts, noted: Whereabouts, settled: Callable[[str], None]) -> None:
        self._here, self._noted, self._settled = here, noted, settled

    def is_settled(self, client: str) -> bool:
        return client in self._registered and not self._silent.get(client)

    def hear(self, origin: NodeId, message: Sought | Found) -> None:
        if isinstance(message, Sought):
            self._sought(origin, message)
        else:
            self._found(origin, message)

    # A broker that looks for a session, or has one

    def ask(self, client: str, then: Then, is_open: Callable[[], bool], *, patient: bool = False) -> None:
        self._placed.pop(client, None)
        self._ask(Question(client, then, is_open, patient=patient))

    def _ask(self, question: Question) -> None:
        self._serial += 1
        self._ask_homes(self._serial, question)

    def _ask_homes(self, serial: int, question: Question) -> None:
        self._questions[serial] = question
        self.homes.find_homes(question.client, partial(self._ask_these, serial))

    def _ask_these(self, serial: int, names: Sequence[NodeId]) -> None:
        question = self._questions.get(serial)
        if question is None:
            return  # it was asked again, and has been answered meanwhile
        client, homes = question.client, set(names)
        known = self._known(client)
        question.sure = self.host.name in homes and self.homes.is_sure(client)
        question.doubted = self.host.name in homes and not question.sure
        is_alone = homes == {self.host.name} and not (question.patient and question.doubted)
        if is_alone or (self.host.name in homes and known is not None):
            self._answer(serial, known, question.sure)
            return
        question.silent = homes - {self.host.name}
        question.timer = self.host.after(ANSWER_S, partial(self._is_late, serial))
        self.fabric.send(sorted(question.silent), Sought(client, serial, question.hops), durable=False)

    def _noted_there(self, client: str, home: NodeId) -> None:
        silent = self._silent.get(client, set())
        silent.discard(home)
        if not silent:
            self._silent.pop(client, None)
            self._settled(client)

    def _found(self, origin: NodeId, message: Found) -> None:
        if not message.serial:
            self._noted_there(message.client, origin)
            return
        question = self._questions.get(message.serial)
        if question is None or question.client != message.client or origin not in question.silent:
            return
        question.silent.discard(origin)
        question.sure = question.sure or not message.unsure
        question.doubted = question.doubted or message.unsure
        if message.broker not in ("", self.host.name):
            self._answer(message.serial, At(message.epoch, message.broker), True)
        elif not question.silent and not (question.patient and question.doubted):
            self._answer(message.serial, None, question.sure)

    def _is_late(self, serial: int) -> None:
        """Those who have answered know nothing. Where nobody has, all are asked again: a home that was killed has lost
        the question, and another one may stand in for it now. So they are where there ought to be a session: who has
        answered may have become a home a moment ago, and the silent one may know of it."""
        question = self._questions[serial]
        others = set(self.homes.homes(question.client)) - {self.host.name}
        if len(question.silent) < len(others) and not question.patient:
            self._answer(serial, None, question.sure)
        elif question.is_open():
            self._ask_homes(serial, question)
        else:
            del self._questions[serial]

    def _answer(self, serial: int, at: At | None, sure: bool) -> None:
        question = self._questions.pop(serial)
        if question.timer is not None:
            question.timer.cancel()
        question.then(at, sure)

    def tell(self, place: Place) -> None:
        self.homes.find_homes(place.client, partial(self._tell, place))

    def _tell(self, place: Place, names: Sequence[NodeId]) -> None:
        homes = set(names)
        # Whoever made a copy that is claimed has the session, and must hear of it wherever the homes are.
        others = {claim.source for claim in place.claims if self.fabric.is_known(claim.source)}
        if place.gone:
            homes |= self._registered.pop(place.client, set())
            self._silent.pop(place.client, None)
        else:
            self._registered[place.client] = set(homes)
            self._silent[place.client] = homes - {self.host.name}
        if self.host.name in homes:
            self.registered(self.host.name, place)
        self.fabric.send(sorted((homes | others) - {self.host.name}), place)
        self._look_soon(place.client)

    def greet(self, brokers: Iterable[NodeId], place: Place) -> None:
        self._tell_new_homes(place)

    def missed(self, broker: NodeId, place: Place) -> None:
        self._registered.get(place.client, set()).discard(broker)
        self._silent.get(place.client, set()).discard(broker)
        self._tell_new_homes(place)

    def _tell_new_homes(self, place: Place) -> None:
        self.homes.find_homes(place.client, partial(self._tell_new, place))

    def _tell_new(self, place: Place, names: Sequence[NodeId]) -> None:
        told = self._registered.setdefault(place.client, set())
        new = [home for home in names if home not in told and home != self.host.name]
        told.update(new)
        if new:
            self._silent.setdefault(place.client, set()).update(new)
            self.fabric.send(sorted(new), place)
        self._look_soon(place.client)

    def _look_soon(self, client: str) -> None:
        """Where nobody need answer, all have."""
        if not self._silent.get(client):
            self.host.after(0.0, partial(self._settled, client))

    # A home

    def _sought(self, origin: NodeId, message: Sought) -> None:
        """Who is no home, as it knows better than whoever asks, asks those who are."""
        client = message.client
        if self.host.name in self.homes.homes(client) or message.hops == HOPS_MAX:
            self._remember(client, origin)
            self._say_found(origin, message, None, self.homes.is_sure(client))
        else:
            self.homes.correct(client, origin)
            until_s = self.host.now() + RELAYED_S
            then = partial(self._say_found, origin, message)
            self._ask(Question(client, then, lambda: self.host.now() < until_s, message.hops + 1))

    def _say_found(self, origin: NodeId, message: Sought, heard: At | None, is_sure: bool) -> None:
        at = max(self._known(message.client) or NOWHERE, heard or NOWHERE)
        found = Found(message.client, message.serial, at.epoch, at.broker, unsure=not is_sure)
        self.fabric.send((origin,), found, durable=False)

    def registered(self, origin: NodeId, place: Place) -> None:
        """Call it before the place is noted: whoever had the session before, or has asked for it, is told; or the
        origin, where the session is elsewhere since."""
        known, homes = self._noted(place.client), self.homes.homes(place.client)
        if place.aside and self.host.name not in homes:
            self._compare(origin, place, homes)
            return
        if origin != self.host.name and not place.gone:
            older = known if known is not None and known.broker != origin else NOWHERE
            self.fabric.send((origin,), Found(place.client, 0, older.epoch, older.broker))
        if self.host.name not in homes:
            if origin != self.host.name:
                self.homes.correct(place.client, origin)
            self.homes.find_homes(place.client, partial(self._hand_on, origin, place))
        else:
            self.weigh(origin, place)

    def weigh(self, broker: NodeId, place: Place) -> None:
        at, own = At(place.epoch, broker), broker == self.host.name
        known = self._noted(place.client) if own else self._known(place.client)
        if known is not None and at < known:
            self._say_placed((broker,), Placed(known.broker, Place(place.client, known.epoch)))
            return
        told = self._recent(place.client)
        if known is not None and known.broker != place.source:
            told.add(known.broker)
        self._say_placed(told, Placed(broker, place))

    def _say_placed(self, to: Iterable[NodeId], placed: Placed) -> None:
        others = set(to) - {placed.broker, self.host.name}
        self.fabric.send(sorted(filter(self.fabric.is_known, others)), placed)

    def _hand_on(self, origin: NodeId, place: Place, homes: Sequence[NodeId]) -> None:
        """This broker was taken for a home; these are. It may have become one since."""
        self._compare(origin, place, homes)
        self._say_placed(homes, Placed(origin, place))

    def handed_on(self, message: Placed) -> None:
        self._compare(message.broker, message.place, self.homes.homes(message.place.client))

    def _compare(self, broker: NodeId, place: Place, homes: Sequence[NodeId]) -> None:
        """Who is no home says so too where it knows of a newer place: those whom it takes for homes may be none any
        more, and it may be about to become the only one."""
        known = self._known(place.client)
        if self.host.name in homes:
            self.weigh(broker, place)
        elif known is not None and not place.gone and At(place.epoch, broker) < known:
            self._say_placed((broker,), Placed(known.broker, Place(place.client, known.epoch)))

    def is_news(self, message: Placed) -> bool:
        """Whether what a home says has not been said by another."""
        at = At(message.place.epoch, message.broker)
        if self._placed.get(message.place.client) == at:
            return False
        self._placed.pop(message.place.client, None)
        self._placed[message.place.client] = at
        if len(self._placed) > CLIENTS_MAX:
            del self._placed[next(iter(self._placed))]
        return True

    def check(self, origin: NodeId, message: Placed, then: Callable[[bool], None]) -> None:
        client, broker, place = message.place.client, message.broker, message.place
        if origin in self.homes.homes(client) or origin == broker or place.gone or not self.fabric.is_known(broker):
            then(True)
            return
        self._serial += 1
        question = Question(client, partial(_judge, place, then), lambda: False, silent={broker})
        self._questions[self._serial] = question
        question.timer = self.host.after(ANSWER_S, partial(self._believe, self._serial, then))
        self.fabric.send((broker,), Sought(client, self._serial, HOPS_MAX), durable=False)

    def _believe(self, serial: int, then: Callable[[bool], None]) -> None:
        """Nobody has said that it is not so."""
        if self._questions.pop(serial, None) is not None:
            then(True)

    def _known(self, client: str) -> At | None:
        """The newer of what is here and what was noted."""
        return max((at for at in (self._here(client), self._noted(client)) if at is not None), default=None)

    def _remember(self, client: str, asker: NodeId) -> None:
        askers = self._askers.pop(client, {})
        askers[asker] = self.host.now() + ASKERS_S
        self._askers[client] = askers
        if len(self._askers) > CLIENTS_MAX:
            del self._askers[next(iter(self._askers))]

    def _recent(self, client: str) -> set[NodeId]:
        now = self.host.now()
        return {asker for asker, until_s in self._askers.pop(client, {}).items() if until_s > now}


def _judge(place: Place, then: Callable[[bool], None], at: At | None, is_sure: bool) -> None:
    then(at is not None and at.epoch >= place.epoch)

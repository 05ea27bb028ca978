"""A broker without disk, others or content: enough to try a front alone."""

from __future__ import annotations

import time
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from godwit.protocols.broker.broker import Audience, Broker, Granted
from godwit.protocols.broker.outlet import Delivery, Opening, Outlet, Reason, Subscription
from godwit.protocols.broker.publication import Publication
from godwit.protocols.broker.sessions import Session
from godwit.protocols.broker.topics import matches


class Fake(Broker):
    def __init__(self) -> None:
        host: Any = SimpleNamespace(name="fake")
        none: Any = None
        super().__init__(host, none, none, time.time)
        self.generation = 1
        self.sessions: dict[str, Session] = {}
        self.wanted: dict[str, dict[str, Subscription]] = {}
        self.retained: dict[str, Publication] = {}
        self.log: list[object] = []

    def open(self, opening: Opening, outlet: Outlet) -> None:
        self.log.append(opening)
        self.generation += 1
        session, present = self.sessions.get(opening.client), True
        if session is not None and session.outlet is not None:
            session.outlet.closed(Reason.SESSION_TAKEN_OVER, "another connection")
        if session is None or opening.clean:
            session, present = Session(opening.client, 1), False
            self.sessions[opening.client] = session
            self.wanted[opening.client] = {}
        session.outlet = outlet
        session.will = opening.will
        session.expiry_s = opening.expiry_s
        outlet.opened(session, present)

    def close(self, session: Session, outlet: Outlet, *, will: bool, expiry_s: float | None = None) -> None:
        self.log.append(("close", session.client, will, expiry_s))
        if session.outlet is not outlet:
            return
        self.generation += 1
        session.outlet = None
        if will and session.will is not None:
            self.publish(session, [(session.will.publication, 0)])
        if not (session.expiry_s if expiry_s is None else expiry_s):
            self.sessions.pop(session.client, None)
            self.wanted.pop(session.client, None)

    def give_up(self, opening: Opening, outlet: Outlet) -> None:
        self.log.append(("give up", opening.client))

    def subscribe(self, session: Session, wanted: Sequence[Subscription]) -> list[Granted]:
        self.generation += 1
        for one in wanted:
            self.log.append(one)
            self.wanted[session.client][one.key] = one
            for publication in self.retained.values():
                if matches(one.topics, publication.topic) and session.outlet is not None:
                    session.outlet.deliver(Delivery(publication, 0, True))
        return [Granted(Reason.OK, one.qos) for one in wanted]

    def unsubscribe(self, session: Session, keys: Sequence[str]) -> list[Reason]:
        self.generation += 1
        had = [self.wanted[session.client].pop(key, None) is not None for key in keys]
        return [Reason.OK if one else Reason.NO_SUBSCRIPTION for one in had]

    def publish(self, session: Session, offered: Sequence[tuple[Publication, int]]) -> None:
        for publication, number in offered:
            self.log.append(publication)
            if publication.retain:
                self.retained[publication.topic] = publication
            if publication.qos and session.outlet is not None:
                session.outlet.accepted(number, publication.qos, Reason.OK)
            for client, wanted in self.wanted.items():
                for one in wanted.values():
                    if matches(one.topics, publication.topic):
                        self._deliver(self.sessions[client], one, publication)

    def _deliver(self, session: Session, one: Subscription, publication: Publication) -> None:
        if session.outlet is not None:
            qos = min(one.qos, publication.qos)
            identifiers = (one.identifier,) if one.identifier else ()
            session.outlet.deliver(Delivery(publication, qos, False, identifiers, session.next_number() if qos else 0))

    def acknowledged(self, session: Session, number: int) -> bool:
        self.log.append(("acknowledged", number))
        return True

    def received(self, session: Session, number: int) -> bool:
        if session.outlet is not None:
            session.outlet.release(number)
        return True

    def released(self, session: Session, number: int) -> bool:
        if session.outlet is not None:
            session.outlet.completed(number)
        return True

    def audience(self, topic: str) -> Audience:
        straight = [
            outlet
            for client, wanted in self.wanted.items()
            if (outlet := self.sessions[client].outlet) is not None
            for one in wanted.values()
            if matches(one.topics, topic)
        ]
        return Audience(self.generation, tuple(straight))

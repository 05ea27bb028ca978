"""How a session arrives where there may be another of the same client: docs/broker.md, "A session moves"."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from godwit.protocols.broker import contents
from godwit.protocols.broker.contents import Turn
from godwit.protocols.broker.memory import lines_of, merge
from godwit.protocols.broker.sessions import Gate, Session, Upstream
from godwit.protocols.broker.turning import item_of
from godwit.protocols.broker.understanding import remembered
from godwit.protocols.host import NodeId

if TYPE_CHECKING:
    from godwit.protocols.broker.moving import Moves


class Arriving:
    """It is the client's session here from now on; or, where the client has one here already, goes into that."""

    def __init__(self, moves: Moves) -> None:
        self.moves = moves
        self.registry = moves.registry
        self.switch = moves.switch

    def on_session(self, origin: NodeId, moved: contents.Session) -> None:
        waiting = self.moves.stop_waiting(moved.client)
        present, copy = self.registry.sessions.get(moved.client), self.moves.holding.get(moved.client, origin)
        if copy is not None:
            self.moves.holding.forget(copy)
        way = Upstream(moved.epoch, origin, moved.chain, set(moved.origins), present is None)
        way.lines = tuple(sorted(lines_of(moved.memory)))
        way.had = self.moves.taking.void(origin, moved.client)
        if present is not None:
            self._add_to(present, moved, way)
            if waiting is not None and (waiting.outlet is not None or waiting.wanted_by is not None):
                self.moves.let_in(present, waiting, present=True)
            return
        session = self._installed(moved, way)
        self.switch.counts.moved_in += 1
        self.switch.counts.handoffs_missed += waiting is not None
        self.moves.copying.came(origin)
        self.moves.turning.turn_all(session, way)
        self.moves.arrive(session, waiting)

    def _installed(self, moved: contents.Session, way: Upstream) -> Session:
        session = Session(moved.client, moved.epoch)
        session.expiry_s = moved.expiry_s
        session.sequence = max(moved.sequence, self.registry.first_sequence())
        session.incoming = set(moved.incoming)
        session.clean, session.started = moved.clean, moved.started
        session.unheard = set(moved.unheard)
        session.claims, session.strange = moved.claims, moved.strange
        session.memory = moved.memory
        session.passages = dict.fromkeys(moved.passages)
        session.came_from = way.source
        session.upstreams.append(way)
        session.gates = {origin: Gate() for origin in moved.origins}
        session.review()
        for wanted in moved.subscriptions:
            session.row += 1
            sub = remembered(session, wanted, session.row)
            if sub is not None:
                session.subscriptions[wanted.key] = sub
        for kept in moved.kept:
            session.flying[kept.number] = item_of(kept, under_way=True)
            session.number = kept.number
        self.registry.add(session)
        self.switch.counts.waiting += len(session.flying)
        self.switch.ledger.save(session)
        self.moves.speaking.arrive(session)
        return session

    def _add_to(self, session: Session, moved: contents.Session, way: Upstream) -> None:
        """The client could not wait, or was at two brokers: what the other session kept goes to this one, unless the
        client wanted to start clean. Where one of them began as a copy of the other, they have started together."""
        if session.clean and session.started != moved.started:
            to = sorted(way.origins & self.switch.fabric.brokers)
            turn = Turn(moved.client, moved.epoch, way.source, self.switch.restate(), way.chain, lines=way.lines)
            self.switch.say(to, turn)
            self.moves.turning.make_turn(self.switch.name, msgspec.structs.replace(turn, interest=0))
            return
        self.moves.copying.drop(session)
        session.passages.update(dict.fromkeys(moved.passages))
        if not session.subscriptions:
            # The client may not have heard that this one is new: then it takes it for the old one, and so must we.
            for wanted in moved.subscriptions:
                self.registry.adopt(session, wanted)
        if session.memory is not None:
            merge(session.memory, moved.memory, moved.subscriptions, moved.epoch)
            way.born = moved.memory.born if moved.memory is not None else 0
            session.memory.source = session.memory.source if session.memory.source != way.source else ""
        session.epoch = max(session.epoch, moved.epoch)
        session.announced = False
        session.upstreams.append(way)
        if session.durable:
            self.switch.ledger.put_session(session)
        self.moves.turning.turn_all(session, way)
        self.moves.announce(session)
        for kept in moved.kept:
            if not kept.received:
                self.moves.turning.pass_to(session, way, item_of(kept, under_way=False))

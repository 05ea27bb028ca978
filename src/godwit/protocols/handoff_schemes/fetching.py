"""Contexts that travel from the broker a subscriber has left to the one where it appears (spec 2.8, 2.14)."""

from __future__ import annotations

from collections.abc import Sequence

from godwit.events import Event
from godwit.protocols.handoff_schemes.broker import HandoffBroker, HandoffOptions, attach
from godwit.protocols.handoff_schemes.lifecycle import Life
from godwit.protocols.handoff_schemes.marks import merged, reaches
from godwit.protocols.handoff_schemes.messages import Connect, CtxRequest, CtxResponse
from godwit.protocols.handoff_schemes.records import Kind, Mode, Record
from godwit.protocols.host import Host, NodeId


class Fetching(HandoffBroker):
    """Asks for contexts, hands them out, and puts together what comes in pieces."""

    def __init__(self, host: Host, options: HandoffOptions) -> None:
        super().__init__(host, options)
        self.on(CtxRequest, self.asked)
        self.on(CtxResponse, self.answered)
        self._pieces: dict[tuple[NodeId, int], list[Event]] = {}

    def fetch(self, message: Connect) -> Record:
        """The subscriber is here, its context is not: collect what comes by, ask for the rest."""
        record = self.records.get(message.subscriber)
        if record is None:
            record = self.new_real(message.subscriber, message.wishes, message.epoch)
        record.kind, record.mode, record.controller = Kind.REAL, Mode.ACTIVE, ""
        if record.life is not Life.MOVE_IN:
            record.arrive()
        attach(record, message.epoch)
        record.moved = None
        record.came_from = message.previous
        record.fallbacks[message.epoch] = list(message.tried)
        self.trace("attached", record.subscriber, "miss")
        self._ask(record, message.epoch, message.previous)
        return record

    def _ask(self, record: Record, epoch: int, place: NodeId) -> None:
        record.fetches[epoch] = place
        self.host.send(place, CtxRequest(record.subscriber, epoch, dict(self.seen)))

    def asked(self, sender: NodeId, message: CtxRequest) -> None:
        raise NotImplementedError

    def may_answer(self, record: Record, request: CtxRequest) -> bool:
        """Z8: this broker is as far as the asker, and nothing older than the request is still under way to here."""
        if any(number < request.epoch for number in record.fetches):
            return False
        if record.held and record.held_for < request.epoch:
            return False
        return reaches(self.seen, request.seen)

    def answer(self, record: Record | None, to: NodeId, request: CtxRequest) -> None:
        if record is None:
            self.host.send(to, CtxResponse(request.subscriber, request.epoch, unknown=True))
            return
        backlog = self.buffer.peek(record.subscriber, record.marks)
        pieces = self.in_pieces(backlog) or [()]
        for i, piece in enumerate(pieces):
            last = i == len(pieces) - 1
            wishes = record.wishes if i == 0 else {}
            response = CtxResponse(record.subscriber, request.epoch, wishes, dict(record.marks), piece, last)
            self.host.send(to, response)

    def in_pieces(self, events: Sequence[Event]) -> list[tuple[Event, ...]]:
        """As many as go into one message."""
        size = self.options.chunk
        return [tuple(events[i : i + size]) for i in range(0, len(events), size)]

    def answered(self, sender: NodeId, message: CtxResponse) -> None:
        """A piece has come. What is for an attachment that nobody here knows of is nobody's any more."""
        record = self.records.get(message.subscriber)
        if record is None or message.epoch not in record.fetches:
            self._pieces.pop((message.subscriber, message.epoch), None)
            return
        pieces = self._pieces.setdefault((message.subscriber, message.epoch), [])
        pieces.extend(message.events)
        record.marks = merged(record.marks, message.marks)
        others = record.fallbacks.get(message.epoch)
        if message.unknown and others:
            self._ask(record, message.epoch, others.pop(0))
        elif message.last:
            del record.fetches[message.epoch]
            record.fallbacks.pop(message.epoch, None)
            events = self._pieces.pop((message.subscriber, message.epoch))
            if message.unknown:
                self.trace("unknown", record.subscriber)
            self.fetched(record, events)

    def fetched(self, record: Record, events: list[Event]) -> None:
        raise NotImplementedError

"""Generic mobility (spec 2.11.3): the brokers' proxies only publish and subscribe, as any client could.

A ping that arrives shows that the way is laid and that whatever went the old way has arrived; a pong says so. Under
advertisement semantics the first ping finds no way yet: adverts and the answers to them come first, so that a handover
takes a period of pings more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from godwit.events import Event
from godwit.protocols.host import Timer
from godwit.protocols.relocation.messages import PING, PONG, TransferRequest, handover, signal
from godwit.protocols.relocation.sessions import Session

if TYPE_CHECKING:
    from godwit.protocols.relocation.broker import RelocationBroker


class Call(msgspec.Struct):
    """One handover as one of its two ends sees it: it hears `hears` and says what it says."""

    session: Session
    hears: str
    says: str
    hop: int
    said: int = 0
    timer: Timer | None = None

    @property
    def interface(self) -> str:
        return f"{self.hears} {self.session.client}#{self.hop}"


class Pings:
    def __init__(self, broker: RelocationBroker) -> None:
        self.broker = broker
        self._calls: dict[str, Call] = {}
        self._expecting: dict[str, str] = {}
        self._calling: dict[str, str] = {}

    def expect(self, session: Session) -> None:
        """The source: listen for pings from wherever the client appears next."""
        call = Call(session, PING, PONG, session.hop + 1)
        self._expecting[session.interface] = call.interface
        self._open(call)

    def begin(self, session: Session) -> None:
        """The destination: ping until somebody answers."""
        call = Call(session, PONG, PING, session.born)
        self._calling[session.interface] = call.interface
        self._open(call)
        self._ping(call)

    def heard(self, interface: str, event: Event) -> bool:
        """Whether this was for a proxy."""
        call = self._calls.get(interface)
        if call is None:
            return interface.startswith((f"{PING} ", f"{PONG} "))
        if call.hears == PING:
            self._say(call)
        elif call.timer is not None:
            call.timer.cancel()
            call.timer = None
            session = call.session
            self.broker.host.send(session.source, TransferRequest(session.client, call.hop - 1))
        return True

    def end(self, session: Session) -> None:
        """The destination has what it asked for."""
        self._close(self._calling.pop(session.interface, ""))

    def close(self, session: Session) -> None:
        """The source has handed over, or has its client back."""
        self._close(self._expecting.pop(session.interface, ""))

    def _open(self, call: Call) -> None:
        broker = self.broker
        self._calls[call.interface] = call
        broker.subscribe(call.interface, handover(call.hears, call.session.client, call.hop))
        if broker.router.scope.advertising:
            broker.advertise(call.interface, handover(call.says, call.session.client, call.hop))

    def _close(self, interface: str) -> None:
        call = self._calls.pop(interface, None)
        if call is None:
            return
        if call.timer is not None:
            call.timer.cancel()
        self.broker.unsubscribe(call.interface, handover(call.hears, call.session.client, call.hop))
        if self.broker.router.scope.advertising:
            self.broker.unadvertise(call.interface, handover(call.says, call.session.client, call.hop))

    def _ping(self, call: Call) -> None:
        call.timer = self.broker.host.after(self.broker.rules.ping_s, lambda: self._ping(call))
        self._say(call)

    def _say(self, call: Call) -> None:
        call.said += 1
        self.broker.publish(call.interface, signal(call.says, call.session.client, call.hop, call.said))

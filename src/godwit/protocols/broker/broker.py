"""The broker that fronts speak to, in both worlds."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from godwit.protocols.broker.fabric import Fabric
from godwit.protocols.broker.outlet import Opening, Outlet, Reason, Subscription
from godwit.protocols.broker.publication import Publication
from godwit.protocols.broker.sessions import Session
from godwit.protocols.broker.store import Store
from godwit.protocols.host import Host


class Audience:
    """Who wants a topic here. Good as long as `generation` is the broker's."""

    __slots__ = ("generation", "straight")

    def __init__(self, generation: int, straight: tuple[Outlet, ...] | None) -> None:
        self.generation = generation
        self.straight = straight
        """The connections to which a QoS 0 publication without retain may be passed as it is, with nothing else to do;
        None where more is to be done: conditions, identifiers, groups, other brokers, an archive."""


class Granted(msgspec.Struct, frozen=True):
    """The answer to one subscription: the QoS where `reason` is OK, else why not, in words."""

    reason: Reason
    qos: int = 0
    text: str = ""


class Broker:
    """Fronts call these; answers that must wait for the disk or for another broker come through the outlet."""

    def __init__(self, host: Host, store: Store, fabric: Fabric, clock: Callable[[], float]) -> None:
        self.host = host
        self.store = store
        self.fabric = fabric
        self.clock = clock
        """Seconds since 1970."""
        self.generation = 0

    def open(self, opening: Opening, outlet: Outlet) -> None:
        """A client wants in: `outlet.opened` or `outlet.refused` follows, now or later."""
        raise NotImplementedError

    def close(self, session: Session, outlet: Outlet, *, will: bool, expiry_s: float | None = None) -> None:
        """The connection has ended; `will` unless the client said goodbye. Nothing happens where the session has
        another connection already."""
        raise NotImplementedError

    def give_up(self, opening: Opening, outlet: Outlet) -> None:
        """The connection has ended before `opened` came."""
        raise NotImplementedError

    def subscribe(self, session: Session, wanted: Sequence[Subscription]) -> list[Granted]:
        """Each by itself: a bad one is refused with its reason, the others work. Retained publications follow."""
        raise NotImplementedError

    def unsubscribe(self, session: Session, keys: Sequence[str]) -> list[Reason]:
        raise NotImplementedError

    def publish(self, session: Session, offered: Sequence[tuple[Publication, int]]) -> None:
        """Publications in their order, each with its packet id, 0 at QoS 0, made with `session.next_sequence()` and
        `clock()`. For each above QoS 0 `outlet.accepted` follows once it is safe; QoS 2 with a packet id that was taken
        before is only acknowledged again."""
        raise NotImplementedError

    def acknowledged(self, session: Session, number: int) -> bool:
        """The client has done with a delivery (PUBACK, PUBCOMP, or PUBREC with an error); False where there is none."""
        raise NotImplementedError

    def received(self, session: Session, number: int) -> bool:
        """QoS 2, second step: the client has it (PUBREC); `outlet.release` follows. False where there is none."""
        raise NotImplementedError

    def released(self, session: Session, number: int) -> bool:
        """QoS 2, third step of a publication (PUBREL); `outlet.completed` follows. False where there is none, and it
        follows all the same."""
        raise NotImplementedError

    def audience(self, topic: str) -> Audience:
        """Who wants this topic; keep it as long as the generation is the same."""
        raise NotImplementedError

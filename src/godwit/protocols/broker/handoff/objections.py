"""Another broker claims a session whose client is connected here: the client is heard before the session goes.

In a ring each token has a secret in it (`session.proofs`), which whoever asks for a session shows. A broker that lies
has none. But a client may have lost its token, and its old connection here may be dead without anybody's noticing. The
two look alike, so the connection is ended: a client that is there comes back with its token, and one that is elsewhere
does not. Clients that show no tokens are not concerned: they have nothing by which they could be told from a lie. Nor
is one that comes back without its token.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from godwit.protocols.broker.api import Opening, Reason
from godwit.protocols.broker.messages import Nothing, Place
from godwit.protocols.broker.session.proofs import is_proven, proof_of
from godwit.protocols.broker.session.state import Session
from godwit.protocols.host import NodeId

if TYPE_CHECKING:
    from godwit.protocols.broker.handoff.coordinator import Moves

OBJECT_S = 3.0
"""So long a client whose session is claimed has time to come back."""


class Contested(msgspec.Struct, eq=False):
    """What another broker says, and what follows where it is true."""

    by: NodeId
    message: str
    epoch: int
    then: Callable[[], None]
    proof: str = ""
    place: Place | None = None
    refused: bool = False

    @property
    def what(self) -> tuple[NodeId, str, int]:
        """Tells it from others, also from those that the same broker has made before: to object to one is not to object
        to the next."""
        return self.by, self.message, self.epoch


class Objections:
    def __init__(self, moves: Moves) -> None:
        self.moves = moves
        self.contested: dict[str, list[Contested]] = {}
        """By client. Its session may still go, so whoever asks for older sessions is to ask again (`Turned`)."""
        self._undisputed: Contested | None = None
        """What has waited long enough, while it is done."""

    @property
    def pending(self) -> int:
        return sum(map(len, self.contested.values()))

    def heard_first(self, session: Session, claim: Contested) -> bool:
        """Whether the session stays for now: `claim.then` follows if the client does not come back."""
        claims, registry = self.contested.get(session.client, []), self.moves.registry
        if is_proven(session.carried, claim.proof):
            self._refuse(session, claims)
            return False
        if self._undisputed is not None or (not claims and not (session.is_proven and session.outlet is not None)):
            return False
        if all(claim.what != other.what for other in claims):
            self.contested.setdefault(session.client, []).append(claim)
            before = session.standing.claimed
            if before is None or before[1].epoch <= claim.epoch:
                self._note(session, (claim.by, claim.place or Place(session.client, claim.epoch)))
            self.moves.switch.host.after(OBJECT_S, partial(self._decide, session.client, claim))
        if session.outlet is not None:
            text = f"{claim.by} says that the client has connected there: come back with your token if it has not"
            registry.hang_up(session, Reason.SERVER_BUSY, text)
            registry.rest(session)
        return True

    def knocks(self, opening: Opening) -> None:
        """The client whose session is claimed comes. One that does not show what only it can know does not object: what
        is claimed follows before it is let in, and not while it is. It may have started clean at who claims it, and
        would say here what it wants in a session that ends."""
        session = self.moves.registry.sessions.get(opening.client)
        if session is None or not is_proven(session.carried, proof_of(opening.token)):
            for claim in [one for one in self.contested[opening.client] if not one.refused]:
                self._decide(opening.client, claim)

    def against(self, session: Session, opening: Opening) -> list[Contested]:
        """What is claimed of a session whose client comes and shows what only it can know, unless it has done so."""
        if not is_proven(session.carried, proof_of(opening.token)):
            return []
        return [one for one in self.contested.get(session.client, ()) if not one.refused]

    def attached(self, session: Session) -> None:
        """Its client is in, and has shown what only it can know."""
        self._refuse(session, self.contested.get(session.client, ()))
        if session.standing.claimed is not None:
            self._note(session, None)

    def _refuse(self, session: Session, claims: Iterable[Contested]) -> None:
        """Whoever has asked for the session is answered, in the same turn: a copy of it waits there for the answer."""
        for claim in claims:
            if claim.message == "Fetch" and not claim.refused:
                nothing = Nothing(session.client, claim.epoch, self.moves.name, session.standing.epoch)
                self.moves.fabric.send((claim.by,), nothing)
            claim.refused = True

    def _note(self, session: Session, claimed: tuple[NodeId, Place] | None) -> None:
        """Who claims it says so once: should this broker crash before it is decided, the session goes then."""
        session.standing.claimed = claimed
        self.moves.switch.ledger.put_session(session)

    def _decide(self, client: str, claim: Contested) -> None:
        claims = self.contested.get(client, [])
        if claim not in claims:
            return  # its client has come, and did not object
        claims.remove(claim)
        if not claims:
            del self.contested[client]
        if not claim.refused:
            self._undisputed = claim
            claim.then()
            self._undisputed = None
            self.moves.settled(client)  # another session may be here by now, which waited for this to be decided
            return
        note = f"claims the session of {client}, whose client has shown elsewhere that it is not there"
        self.moves.refuse(claim.by, claim.message, note)
        session = self.moves.registry.sessions.get(client)
        if session is not None:
            self.moves.contradicted(session, claim.by, claim.epoch)
            self.moves.settled(client)

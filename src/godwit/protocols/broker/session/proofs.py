"""What a client must show so that its session crosses to another site: docs/sites.md, "Who gets a session".

Each token has a secret in it. Whoever lets a client in makes a new one, and the session knows those that its client may
still show. A site that had the session once knows older ones, which are of no use as soon as the client has shown a
newer token.
"""

from __future__ import annotations

from random import Random

from godwit.protocols.broker.api import UNSURE
from godwit.protocols.broker.messages import Carried

BEFORE = "~"
"""In a token: the proof follows, up to the next point."""
BITS = 128
PROOFS_MAX = 8
"""So many tokens may have been given to a client since it showed the oldest of them."""


def proof_of(token: str) -> str:
    """Empty where it has none."""
    return token.removeprefix(UNSURE).partition(".")[2].partition(".")[0].partition(BEFORE)[2]


def renewed(carried: Carried, shown: str, dice: Random) -> str:
    """The proof of the next token. The client will not show one that is older than the one it has shown."""
    proof, known = proof_of(shown), carried.proofs
    kept = known[known.index(proof) :] if proof in known else known
    fresh = f"{dice.getrandbits(BITS):0{BITS // 4}x}"
    carried.proofs = _bounded((*kept, fresh))
    return fresh


def is_proven(carried: Carried, proof: str) -> bool:
    return bool(proof) and proof in carried.proofs


def unite(carried: Carried, other: Carried) -> None:
    """Two sessions of a client become one: it may show the tokens of either."""
    carried.hasty = carried.hasty or other.hasty
    carried.proofs = _bounded(tuple(dict.fromkeys((*other.proofs, *carried.proofs))))


def _bounded(proofs: tuple[str, ...]) -> tuple[str, ...]:
    """Those in the middle were most likely never heard of."""
    return proofs if len(proofs) <= PROOFS_MAX else (proofs[0], *proofs[1 - PROOFS_MAX :])

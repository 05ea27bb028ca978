"""Copies of resting sessions at the brokers where their clients may appear next: docs/broker.md, "Copies"."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal, Protocol

from godwit.protocols.host import NodeId

Handoff = Literal["durable", "reactive", "proactive"]
"""How a session follows its client: not at all, each broker keeping one of its own; fetched when the client appears
elsewhere; or with copies there before."""

COPIES_BYTES_MAX = 64 * 1024 * 1024


class Neighbours(Protocol):
    """Where clients go from here, as far as it has been learned."""

    def likely(self) -> tuple[NodeId, ...]:
        """Who gets copies, the most likely first."""

    def went(self, to: NodeId, copied: Collection[NodeId]) -> None:
        """A session has left for `to`; these had copies of it."""

    def came(self, source: NodeId) -> None:
        """A session has come from there."""

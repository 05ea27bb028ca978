"""How a broker of a tree tells apart what bridges bring from the air, so that two of them bring nothing twice.

What is in the air has a name: the broker where it entered, in which of its lives or streams, and a number there. Of
what was published in the tree the tree's own streams bring every copy that is owed. So a bridge's copy of it is not
needed, and of the rest the first copy is taken and remembered.
"""

from __future__ import annotations

from collections.abc import Container

from godwit.protocols.adhoc.seen import Recent
from godwit.protocols.host import NodeId

REMEMBERED_MAX = 65_536
REMEMBERED_S = 24 * 3600.0
"""A stream may bring its copy late: as late as its broker is given up."""


def passage_of(broker: NodeId, line: int, number: int) -> tuple[str, int]:
    """`line` is the life or the stream of the broker in which the number is used once."""
    return f"{broker}/{line:x}", number


def entrance(passage: tuple[str, int]) -> NodeId:
    """The broker where it entered the air, or that had it first."""
    return passage[0].rpartition("/")[0]


class Passages:
    """Those that were taken here. It is memory: after a restart one may be taken again."""

    def __init__(self) -> None:
        self._taken: Recent[None] = Recent(REMEMBERED_MAX, REMEMBERED_S)

    def admit(self, passage: tuple[str, int], origin: NodeId, tree: Container[NodeId], now_s: float) -> bool:
        """Whether to take what `origin` brings; `tree` are the brokers whose streams lead here, this one among them."""
        broker = entrance(passage)
        if broker == origin:
            return True
        if broker in tree or passage in self._taken:
            return False
        self._taken.add(passage, None, now_s)
        return True

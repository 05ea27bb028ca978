"""What the log says of other brokers: whom this one does not believe, and how cells of a ring change hands.

Cores never log. They trace facts, and these few are worth a line each.
"""

from __future__ import annotations

import logging

from godwit.protocols.host import NodeId, Record

log = logging.getLogger("godwit.fabric")

INFO, WARNING = logging.INFO, logging.WARNING
LINES: dict[str, tuple[int, str]] = {
    "refused": (WARNING, "refused what %(peer)s says (%(message)s): %(note)s"),
    "joined": (INFO, "cell %(note)s is this broker's, by %(peer)s"),
    "divided": (INFO, "cell %(note)s is %(peer)s's from now on"),
    "undivided": (INFO, "a cell that was to change hands stays where it is (%(peer)s); in the way: %(note)s"),
    "assumed": (WARNING, "this broker stands in for %(peer)s, which is silent, in cell %(note)s"),
    "taken": (WARNING, "cell %(note)s is this broker's: nobody knew an owner of it"),
    "replaced": (WARNING, "%(peer)s is silent, so %(note)s keeps the book of this broker in its place"),
    "restored": (INFO, "this broker had lost its disk; its book is back from: %(note)s"),
}
"""By kind of record."""

BEGUN = "this broker begins a ring, and owns all of the globe"


def write(time_s: float, node: NodeId, record: Record) -> None:
    """A sink of a host."""
    line = LINES.get(record.kind)
    if line is None:
        return
    level, text = line
    if record.kind == "joined" and not record.peer:
        log.log(level, BEGUN)
        return
    nothing = "nobody" if record.kind == "restored" else "something else" if record.kind == "undivided" else "all"
    told = {"peer": record.peer, "message": record.message, "note": record.note or nothing}
    log.log(level, text, told, extra={"peer": record.peer})

"""Names at the border of a site. Brokers of two sites may have the same name, so a gateway of another site is known as
`site/name` here, while at home it calls itself by its name alone. Frames are put into the receiver's words."""

from __future__ import annotations

import msgspec

from godwit.protocols.broker.fabric.passages import Passage
from godwit.protocols.broker.streams.frames import Ask, Parcels, Run, Taken
from godwit.protocols.host import Message, NodeId


def known_as(site: str, name: NodeId) -> NodeId:
    """A gateway, for other sites."""
    return f"{site}/{name}"


def site_of(peer: NodeId) -> str:
    return peer.rpartition("/")[0]


def at_home(peer: NodeId) -> NodeId:
    """What it calls itself."""
    return peer.rpartition("/")[2]


def site_in(passage: Passage) -> str:
    """The site where what is called so was published; empty where only one site calls it so."""
    return passage[0].partition("/")[0] if passage[0].count("/") >= 2 else ""


def in_all_sites(passage: Passage, site: str) -> Passage:
    """A name that no other site gives, of what a site calls so."""
    return passage if not site or site_in(passage) else (f"{site}/{passage[0]}", passage[1])


def outbound(frame: Message, peer: NodeId) -> Message:
    """As the gateway that it goes to understands it."""
    home = at_home(peer)
    match frame:
        case Parcels():
            runs = tuple(
                Run(tuple(msgspec.structs.replace(leg, to=home) for leg in run.legs if leg.to == peer), run.items)
                for run in frame.runs
            )
            return msgspec.structs.replace(frame, runs=runs)
        case Ask():
            return msgspec.structs.replace(frame, to=home)
        case Taken():
            return msgspec.structs.replace(frame, origin=home)
    return frame


def inbound(frame: Message, peer: NodeId) -> Message:
    """As it is understood here. Whoever speaks over this link is the peer, whatever it calls itself."""
    match frame:
        case Parcels() | Ask():
            return msgspec.structs.replace(frame, origin=peer)
        case Taken():
            return msgspec.structs.replace(frame, by=peer)
    return frame

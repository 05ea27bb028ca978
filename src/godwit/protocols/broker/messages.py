"""What brokers say to one another through streams (docs/broker.md): publications, and how sessions move."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import msgspec

from godwit.filters.filters import Filter
from godwit.protocols.broker.api import Subscription
from godwit.protocols.broker.publication import (
    TIME_MAX,
    Count,
    Digest,
    Identifier,
    PacketId,
    Publication,
    Qos,
    Span,
    Time,
)
from godwit.protocols.broker.vacant import VACANT
from godwit.protocols.gathering.areas import Reach
from godwit.protocols.gathering.space import Cell, Point
from godwit.protocols.host import NodeId

Stamp = tuple[NodeId, Count]
"""A broker, and a number in its stream."""

Name = tuple[str, str, Count]
"""Of a publication: when it was taken, its publisher, and its number among that one's. Two sessions of a client may
begin at the same moment at two brokers, and number alike what they say. The name of the broker would not do: it is
another one in each site."""

ELSEWHERE: Stamp = ("", 0)
"""Of what a session took in another site: numbers of that one's streams mean nothing here."""


Line = tuple[Count, NodeId]
"""Tells one session of a client from another wherever they go: the epoch at which it began, where an older one was out
of reach, and the broker where that was. Two may begin at the same moment at two brokers."""

FIRST: Line = (0, "")
"""Of a session that did not begin so."""


class Claim(msgspec.Struct, frozen=True, array_like=True):
    """A copy that `source` had made under an epoch was taken up by its `holder`, and the source may not know it yet."""

    source: NodeId
    epoch: Count
    holder: NodeId


class Place(msgspec.Struct, frozen=True, tag="place", array_like=True):
    """The session of this client is mine since this epoch; a higher (epoch, broker) wins. Whoever has one of a lower
    epoch gives it to me, or forgets it where the client wants to start clean, or where mine is gone too: it has ended.
    Whoever made a copy that is claimed gives its session to the holder of that copy.
    """

    client: str
    epoch: Count
    gone: bool = False
    clean: bool = False
    claims: tuple[Claim, ...] = ()
    source: NodeId = ""
    """The broker that has given it to me, and need not be told."""
    aside: bool = False
    """For you to know: I do not take you for a home of this client."""


class Fetch(msgspec.Struct, frozen=True, tag="fetch", array_like=True):
    """The client has come to me: give me its session, which will be mine at this epoch or, where it is already newer
    than I know, at the next.

    `copy` is the epoch of the copy that I hold of it, on my disk by now; 0: none that you made. `held`: the client is
    in already, since it has shown that nobody can have had the session since the copy was made.
    """

    client: str
    epoch: Count
    copy: Count = 0
    held: bool = False
    abroad: str = ""
    """To a gateway: the client shows that its session was at this broker of another site, `site/broker`."""
    since: Count = 0
    """The epoch of that."""
    proof: str = ""
    """What the client has shown for it: that of its token."""
    outside: bool = False
    """It is another site that asks: give it only where the proof is one of the session's."""


class Kept(msgspec.Struct, frozen=True, array_like=True):
    """A delivery that waits, or is under way: `number` and `received` are then its packet id and whether the client has
    it (QoS 2)."""

    publication: Publication
    qos: Qos
    retain: bool = False
    identifiers: tuple[Identifier, ...] = ()
    number: PacketId = 0
    received: bool = False
    group: tuple[str, str, str] | None = None
    """The shared subscription that it came by: name, topics, condition."""
    stamp: tuple[NodeId, Count] | None = None
    """The broker that published it, and its number in that broker's stream, where it came by one."""
    since: Time = 0.0
    """Since when it waits, by the steady clock of the broker that says so; 0: nobody knows."""
    view: str = ""
    """The view that it tells a change of, where it is one."""
    pace: str = ""
    """The subscription that it came by, where that has a rate."""


Stand = tuple[Time, str, Count]
"""Which of the publications of a topic: its time, publisher, and number among that one's. A later one is higher."""


class View(msgspec.Struct, array_like=True):
    """What a client has been told of a lasting subscription (docs/lasting.md)."""

    name: str
    """No other view of the client is called so."""
    number: Count = 0
    """Of the last change that it was told."""
    told: dict[str, Stand] = msgspec.field(default_factory=dict)
    """By topic: the things that it knows to match, each as it was told last."""


Position = tuple[str, Count]
"""In an archive: a file, and how many of its rows come before. No file: before all of them."""


class Replay(msgspec.Struct, array_like=True):
    """How far a subscription has come that wants what was published before it (docs/lasting.md)."""

    since: Time
    at: dict[NodeId, Position] = msgspec.field(default_factory=dict)
    """By broker: all before this in its archive the session has taken, or does not want."""
    live: set[NodeId] = msgspec.field(default_factory=set)
    """The brokers of whose archives it has had all: what they send is the session's as it comes."""
    born: Line = FIRST
    """The session that asked."""
    had: set[Name] = msgspec.field(default_factory=set)
    """What waited for the client when it asked, mostly out of an older session, and what has been passed on to it
    since: it need not be read again."""
    early: bool = False
    """It was asked for while the broker where the session had been was passing on what came there."""
    ahead: dict[Name, None] = msgspec.field(default_factory=dict)
    """What was read of brokers whose publications may still be passed on so, the last of them."""


class Mark(msgspec.Struct, array_like=True):
    """What brokers were asked to turn to, and whether they knew by then that the session is where it is."""

    keys: set[str]
    announced: bool
    to: set[NodeId] = msgspec.field(default_factory=set)
    """Who has not answered. What such a broker sent before may be under way, and come from an older session too."""


class Memory(msgspec.Struct, array_like=True):
    """What a session has by itself that began while an older one of its client was out of reach."""

    born: Line
    mark: Count
    """The last under which brokers were asked to turn to it."""
    source: NodeId
    """Who was asked in vain for the older one."""
    since: Count
    """The epoch since when that one was known to be there."""
    original: Line | None = None
    """The age of the session of which this one was a copy that was taken up without a word of its source."""
    last: str = ""
    """The last token of that one when the copy was made: with another, the client was let in there since."""
    firsts: dict[NodeId, dict[str, Count]] = msgspec.field(default_factory=dict)
    """By broker and subscription: all that is wanted is its own that has a higher number in the broker's stream."""
    had: dict[Name, None] = msgspec.field(default_factory=dict)
    """All that it has taken, and those that have gone into it had; the oldest first."""
    marks: dict[Count, Mark] = msgspec.field(default_factory=dict)
    answered: set[NodeId] = msgspec.field(default_factory=set)
    """The brokers that have no older session any more."""
    lines: set[Line] = msgspec.field(default_factory=set)
    """The sessions that have gone into it."""
    passed: dict[NodeId, NodeId] = msgspec.field(default_factory=dict)
    """By the broker that has said so: to whom an older session went from there."""
    counts_from: dict[NodeId, Count] = msgspec.field(default_factory=dict)
    """The first mark that a broker must answer before it is believed to have no older session."""
    awaited: dict[NodeId, Count] = msgspec.field(default_factory=dict)
    """Who has an older session that may have had what still older ones kept, and since which epoch. It was asked for in
    vain by this one, or by one that has gone into this."""
    known: bool = False
    """The client has answered in it at an earlier place, so it knows of it."""
    continued: set[Line] = msgspec.field(default_factory=set)
    """Under which it was known at this place before it began to remember, or was a copy: some brokers turn to it under
    these yet."""
    stays: bool = False
    """It began as a copy, and goes on with what it remembers when its source says that this is the session: it had
    remembered before, another has gone into it since, or somebody may have a newer one (`Carried.unproven`)."""
    united: dict[Line, str] = msgspec.field(default_factory=dict)
    """By age: the sessions that have gone into it, each with the token that was given last in it."""
    shown: bool = False
    """It began as a copy, and its client showed the last token that is in it when it was let in."""
    unmet: set[NodeId] = msgspec.field(default_factory=set)
    """Brokers where the client was since, as it has shown, and of which nobody has heard here: as soon as one is met it
    is asked."""


class Stay(msgspec.Struct, frozen=True, array_like=True):
    """A site in which a session was, and how far each stream of it had come where the session left. What it wanted up
    to there it has had, whoever brings the same to it again and however late. Without site: what it wanted once."""

    site: str
    lines: dict[str, Count]
    """By stream, as publications are named in other sites: the last number."""
    but: frozenset[str] = frozenset()
    """Subscriptions that it did not have there: those of another session of the client, which have become its own."""


def _nothing() -> dict[Any, Any]:
    """An idle client costs no dict of its own; see `vacant`."""
    return VACANT


class Carried(msgspec.Struct, array_like=True):
    """What a session takes along wherever it goes: it is in its row on the disk, in `Session` and in `Copy`."""

    expiry_s: Span = 0.0
    """How long it lasts without a connection; in a copy, how long it has left."""
    token: str = ""
    """For the client to keep and to show, unread, at whichever broker it appears next; empty where the session ends
    with the connection."""
    last: str = ""
    """The token that was given last, wherever that was."""
    clean: bool = False
    """The client has started it clean: what an earlier one kept elsewhere is not for it."""
    started: Count = 0
    """The epoch of that."""
    age: Line = FIRST
    """Where and when it began, or was taken up out of a copy without a word of its source. Of two sessions of a client
    the one with the lower goes into the other; it stays the same wherever the session goes."""
    strange: bool = False
    """It began while an older one was out of reach, and the client has not shown that it has heard so. Until then it is
    told so each time: it may take packet identifiers and subscriptions for those of the older one."""
    unheard: frozenset[tuple[Count, NodeId]] = frozenset()
    """By the epoch before which the client was elsewhere: brokers that may not have all yet that it said there. Each
    tells the session with `Heard`."""
    claims: tuple[Claim, ...] = ()
    """The copies by which it came from brokers that may not know it yet."""
    memory: Memory | None = None
    """What it has by itself, where an older session of the client may turn up."""
    passages: dict[tuple[str, Count], None] = msgspec.field(default_factory=_nothing)
    """What it had elsewhere, and takes while it moves, of what bridges bring from the air; the oldest first."""
    views: dict[str, View] = msgspec.field(default_factory=_nothing)
    """By lasting subscription."""
    replays: dict[str, Replay] = msgspec.field(default_factory=_nothing)
    """By subscription that has not had all yet of what it wants of the past."""
    proofs: tuple[str, ...] = ()
    """Of the tokens that the client may show, the oldest first: secrets, without which no other site gets it."""
    unproven: bool = False
    """The client has come back to it without a token, and has shown none since. It may have had another session before,
    of which nobody here has heard yet."""
    stays: tuple[Stay, ...] = ()
    """The sites where it was before, the last one last."""
    unshown: bool = False
    """It began for a client that showed no token, and that has shown none of it since. Who shows an older one then has
    not heard of it, and takes it for another."""
    hasty: bool = False
    """What its client said elsewhere before may come later than what it says now: somebody was not waited for."""
    asks_since: Time = 0.0
    """When its client began to subscribe in it, by the steady clock of the broker that says so; long ago where that is
    not known. It may not have asked for all that it wants yet."""


class Matchers(msgspec.Struct, frozen=True, array_like=True):
    """Who of the brokers that reach a session through the sender may match something of it, though the receiver knows
    others as the owners: it tells them what it wants before they turn. Only in a ring."""

    late: tuple[NodeId, ...] = ()
    """Those for whom another stands in, and who may not know it."""
    own: tuple[tuple[str, Count], ...] = ()
    """The sender's cells, with their terms: one may be another's by now."""


NO_MATCHERS = Matchers()


class Session(msgspec.Struct, frozen=True, tag="session", array_like=True):
    """Here it is: what it takes along, what it wants, what it has taken and not released, and what is under way.

    What waits follows as `Forwarded`. `origins` are the brokers, the sender and the receiver among them, whose events
    reach it through the sender, each until `Through`. `chain` are the brokers where it was before and that may still
    pass on to the sender.
    """

    client: str
    epoch: Count
    carried: Carried
    subscriptions: tuple[Subscription, ...]
    incoming: tuple[PacketId, ...]
    kept: tuple[Kept, ...]
    origins: tuple[NodeId, ...]
    sequence: Count = 0
    """The last number of a publication of this client."""
    chain: tuple[NodeId, ...] = ()
    digests: tuple[Digest | None, ...] = ()
    """Of what was taken under the packet identifiers in `incoming`."""
    matchers: Matchers = NO_MATCHERS


class Copy(msgspec.Struct, frozen=True, tag="copy", array_like=True):
    """A session that rests with me, for you to hold until the client comes to you or I say `Drop`. It stays mine.

    What waits follows as `Forwarded`, and so does all that I take for it from each broker until that one has turned to
    you as well. `epoch` is the copy's; `origins` are the brokers that I know, both of us among them.
    """

    client: str
    epoch: Count
    carried: Carried
    subscriptions: tuple[Subscription, ...]
    incoming: tuple[PacketId, ...]
    kept: tuple[Kept, ...]
    origins: tuple[NodeId, ...]
    digests: tuple[Digest | None, ...] = ()
    matchers: Matchers = NO_MATCHERS


class Drop(msgspec.Struct, frozen=True, tag="drop", array_like=True):
    """Forget the copy that I made under this epoch."""

    client: str
    epoch: Count


class Uncopied(msgspec.Struct, frozen=True, tag="uncopied", array_like=True):
    """I do not hold the copy that you made under this epoch."""

    client: str
    epoch: Count


class Reserve(msgspec.Struct, frozen=True, tag="reserve", array_like=True):
    """The client has come to me, where I hold the copy that you made under this epoch: let nobody else have the session
    until I have asked for it. It may get lost: `Fetch` follows when my disk has the copy."""

    client: str
    copy: Count


class Reserved(msgspec.Struct, frozen=True, tag="reserved", array_like=True):
    """The answer: whoever wants the session waits until you have told me whether you have taken it."""

    client: str
    copy: Count


class Given(msgspec.Struct, frozen=True, tag="given", array_like=True):
    """The answer to `Fetch` with a copy, in place of `Session`: your copy is the session now, at this epoch. `origins`
    are the brokers whose publications still come to it through me, each until `Through`. `heard`: all have what the
    client said here; else `Heard` follows when they do."""

    client: str
    epoch: Count
    copy: Count
    origins: tuple[NodeId, ...]
    heard: bool = False
    matchers: Matchers = NO_MATCHERS


class Nothing(msgspec.Struct, frozen=True, tag="nothing", array_like=True):
    """I have no session of this client; `at` where I believe it to be, since an epoch."""

    client: str
    epoch: Count
    at: NodeId = ""
    since: Count = 0
    denied: str | None = None
    """I have one, but not for another site that has shown this as its proof. Or another site has one, and the client
    has shown a newer proof there since."""


class Sought(msgspec.Struct, frozen=True, tag="sought", array_like=True):
    """You are a home of this client: where is its session? I am told too if it turns up soon. `hops`: so many have
    asked on, since they were none."""

    client: str
    serial: Count
    hops: Count = 0


class Found(msgspec.Struct, frozen=True, tag="found", array_like=True):
    """The answer of a home: at this broker since this epoch; or nowhere that I know (no broker). With serial 0 to a
    `Place`: I know it now, and before that it was there."""

    client: str
    serial: Count
    epoch: Count = 0
    broker: NodeId = ""
    unsure: bool = False
    """I am its home in the place of another, and whoever has the session may not have been able to tell me."""


class Placed(msgspec.Struct, frozen=True, tag="placed", array_like=True):
    """A home passes on what this broker has said: to whoever had the session before, or has sought it. Whoever was
    taken for a home passes it on to those that are."""

    broker: NodeId
    place: Place


class Forwarded(msgspec.Struct, frozen=True, tag="forwarded", array_like=True):
    """One more for a session that has moved from me to you; in the order in which the client must see them.

    `born`: it was kept by another session of the client, that has gone into this one.
    """

    client: str
    epoch: Count
    kept: Kept
    born: Line | None = None


class Turn(msgspec.Struct, frozen=True, tag="turn", array_like=True):
    """To every broker: as soon as you know my interest of this number, turn the session's events from `source` to me,
    and say so to both of us, and to those of the chain before, with `Turned`."""

    client: str
    epoch: Count
    source: NodeId
    interest: Count
    chain: tuple[NodeId, ...] = ()
    copy: bool = False
    """It is only a copy that I have: `source` goes on collecting, and no other place is concerned."""
    lines: tuple[Line, ...] = (FIRST,)
    """Whose places are concerned: the session's, and those of the ones that have gone into it. None: nothing is to be
    turned, and only the answer is wanted."""


class Turned(msgspec.Struct, frozen=True, tag="turned", array_like=True):
    """What I sent before this is for the session's earlier places to pass on; what I send from now on is for the
    place of this epoch. With `copy`, the name of a broker, only for the copy there; `lines` are those of `Turn`."""

    client: str
    epoch: Count
    copy: NodeId = ""
    lines: tuple[Line, ...] = (FIRST,)
    passed_to: NodeId = ""
    """A session of the client went from me to this broker, which may not have it yet. My own name: one may yet go."""


class Through(msgspec.Struct, frozen=True, tag="through", array_like=True):
    """All that came from this origin for the session has been passed on to you. `void`: it was taken up out of a copy,
    and the source of that has said that it was not the session."""

    client: str
    epoch: Count
    origin: NodeId
    void: bool = False


class Said(msgspec.Struct, frozen=True, tag="said", array_like=True):
    """The client has moved to another broker, and what you got before this is all that it said here: tell `to`."""

    client: str
    epoch: Count
    to: NodeId


class Heard(msgspec.Struct, frozen=True, tag="heard", array_like=True):
    """This broker has all that the client said where it was before this epoch."""

    client: str
    epoch: Count
    broker: NodeId
    hops: Count = 0


class Repeated(msgspec.Struct, frozen=True):
    """Never sent: another bridge's copy of what was taken here before. A session that moves may not have had that."""

    publication: Publication


class Hello(msgspec.Struct, frozen=True, tag="hello", array_like=True):
    """The first of my stream to you. If you have heard another stream of mine before, its disk is lost, and with it all
    that I had and confirmed."""


class Retained(msgspec.Struct, frozen=True, tag="retained", array_like=True):
    """To a broker that is new: keep this as the last of its topic. It is no news to anybody."""

    publication: Publication


class Recall(msgspec.Struct, frozen=True, tag="recall", array_like=True):
    """Read on in your archive for this subscription. With `final` it has had all that you said was there: if there is
    no more than you can send at once, and you know my statement of this number, send it and say that it was all."""

    client: str
    key: str
    serial: Count
    since: Time
    position: Position
    topics: str
    condition: str
    statement: Count
    final: bool = False


class Recalled(msgspec.Struct, frozen=True, tag="recalled", array_like=True):
    """The next rows that it wants, each with how many rows of the file are before what follows it. `position` is how
    far I have read."""

    client: str
    key: str
    serial: Count
    rows: tuple[tuple[Count, Publication], ...]
    position: Position
    until: Time = 0.0
    """By my calendar: there was nothing else up to then, where there is nothing behind `position`; else 0."""
    live: bool = False
    """These were all: what I publish from now on comes by itself, behind this."""
    lost: str = ""
    """What was asked for and is not there any more."""


SITES_MAX = 1_024
Path = Annotated[tuple[str, ...], msgspec.Meta(min_length=1, max_length=64)]
"""From one site to the next."""
Paths = Annotated[tuple[Path, ...], msgspec.Meta(max_length=SITES_MAX)]
Filters = tuple[Filter, ...]


class Outlook(msgspec.Struct, frozen=True, tag="outlook", array_like=True):
    """Over an uplink: what my side may publish, and what it wants of yours (docs/sites.md). It changes the statement
    `base`, which came before it; 0: this is all, whatever I said before."""

    site: str
    number: Count
    base: Count
    paths: Paths = ()
    """The sites that are reached through me, each with the way there."""
    unoffered: Filters = ()
    offered: Filters = ()
    unwanted: Filters = ()
    wanted: Filters = ()
    acts: bool = False
    """Events cross over this uplink. Of two sites the one that is first in the alphabet decides."""
    leads: bool = False
    """It always does, so that sessions cross over it."""


class Unclear(msgspec.Struct, frozen=True, tag="unclear", array_like=True):
    """I do not have what this outlook of yours changes: tell me all."""

    number: Count


class Seated(msgspec.Struct, frozen=True, tag="seated", array_like=True):
    """I am a gateway of our site: tell me what your clients may publish, and again when that changes."""

    site: str
    reaches: tuple[str, ...] = ()
    """The sites with whom I can speak now."""
    paths: Paths = ()
    """Those that lie behind my uplinks."""
    crosses: tuple[str, ...] = ()
    """Those from and to which sessions cross over my uplinks."""
    by: NodeId = ""
    """The gateway, where another broker passes it on."""
    number: Count = 0
    """Of two that others pass on, the higher is the newer."""


class Offered(msgspec.Struct, frozen=True, tag="offered", array_like=True):
    """To a gateway: this is all that my clients may publish, and what lies behind me if I am a gateway too."""

    filters: Filters


# How a session crosses an uplink (docs/sites.md, "Sessions that move between sites").


class Summon(msgspec.Struct, frozen=True, tag="summon", array_like=True):
    """Over an uplink: the client is on my side, and its session was at this broker of a site, `site/broker`, since this
    epoch: send it to me. A site without broker is as far as I know."""

    client: str
    at: str
    epoch: Count
    proof: str = ""
    """That of the token which the client shows: nobody else knows it but the brokers where the session was."""


class Marker(msgspec.Struct, frozen=True, tag="marker", array_like=True):
    """Over an uplink: what I sent before this is for the session where it was, what I send from now on I take for it
    myself. As soon as you know my outlook of this number, send me all that it wants, and say so."""

    client: str
    epoch: Count
    outlook: Count


class Crossed(msgspec.Struct, frozen=True, tag="crossed", array_like=True):
    """Over an uplink: all that came for the session before this has been passed on to you. What I send from now on is
    for the session itself."""

    client: str
    epoch: Count
    lines: dict[str, Count] = msgspec.field(default_factory=dict)
    """How far the streams of my site have come here, where that is further than `Session` said: see `Stay`."""


class Astray(msgspec.Struct, frozen=True, tag="astray", array_like=True):
    """Over an uplink: nobody on my side has a session of this client. `taken`: somebody else has asked for it since, so
    that the client is elsewhere by now."""

    client: str
    taken: bool = False
    proof: str = ""
    """That of the `Summon` which this answers: the client may have shown another since."""
    outdated: bool = False
    """That is why: it has, to whoever has the session."""


# Only where brokers own cells (docs/ring.md): who matches what, and how a cell changes hands.


class Region(msgspec.Struct, frozen=True, array_like=True):
    """A cell and its owner. `term` grows whenever the cell, or one that it was cut out of, changes hands."""

    cell: Cell
    owner: NodeId
    term: Count

    @property
    def prefix(self) -> str:
        return self.cell.prefix


Hops = Annotated[int, msgspec.Meta(ge=0, le=1_000)]


class Share(msgspec.Struct, frozen=True, array_like=True):
    """Of a publication that is for one member of a group: how far the search for the member has come."""

    group: tuple[str, str, str]
    """Name, topics, condition."""
    tried: tuple[tuple[NodeId, Count], ...] = ()
    """The brokers that had no such member, each with the newest statement of it that was known to whoever sent it."""
    settle: bool = False
    """A member will do that is not connected; else only one that is."""


class Dealt(msgspec.Struct, frozen=True, tag="dealt", array_like=True):
    """This is for one member of a group, and for none elsewhere: give it to one of yours, or pass it on."""

    publication: Publication
    share: Share


class Routed(msgspec.Struct, frozen=True, tag="routed", array_like=True):
    """You own the target of this: match it as if it had been published at your broker."""

    publication: Publication
    hops: Hops = 0
    probe: Count = 0
    """It is none, but a number: say it to `by` with `Passed`, behind all that you have sent there."""
    by: NodeId = ""
    share: Share | None = None
    """It was matched before, and no member of this group was found: look for another one, and do nothing else."""


class Wanted(msgspec.Struct, frozen=True, tag="wanted", array_like=True):
    """All that I want and that concerns your cells, in place of what I said before. No filters: as before. And do this
    then, if it says so."""

    statement: Count
    filters: tuple[Filter, ...] | None
    turn: Turn | None = None
    cells: tuple[str, ...] = ()
    """The prefixes of those that I take for yours, or to be yours soon."""


class Noted(msgspec.Struct, frozen=True, tag="noted", array_like=True):
    """The statement of this number is in my book. `regions` are my cells, and those that I gave away and you may not
    know of."""

    statement: Count
    regions: tuple[Region, ...]


class Seek(msgspec.Struct, frozen=True, tag="seek", array_like=True):
    """Whoever owns a part of these within the cells that begin like `prefix`: tell `by`."""

    by: NodeId
    serial: Count
    reaches: tuple[Reach, ...]
    prefix: str = ""
    hops: Hops = 0


class Owned(msgspec.Struct, frozen=True, tag="owned", array_like=True):
    """These cells have these owners."""

    serial: Count
    regions: tuple[Region, ...]


class Enter(msgspec.Struct, frozen=True, tag="enter", array_like=True):
    """`by` stands at this place and wants a cell."""

    by: NodeId
    place: Point
    hops: Hops = 0


class Barred(msgspec.Struct, frozen=True, tag="barred", array_like=True):
    """You cannot have a cell now, or never (`final`)."""

    reason: str
    final: bool = False
    outside: bool = False
    """I have none either."""


class Dividing(msgspec.Struct, frozen=True, tag="dividing", array_like=True):
    """A cell of mine is to become another broker's. Count it among those that may send what you want, and tell me when
    no session at your broker waits for me that does not wait for it too."""

    ticket: Count
    region: Region
    owner: NodeId = ""
    """Whose the cell is, where that is not me: it is silent, and I stand in for it."""


class Agreed(msgspec.Struct, frozen=True, tag="agreed", array_like=True):
    """There is none, and all that you have sent before is here."""

    ticket: Count


class Undivided(msgspec.Struct, frozen=True, tag="undivided", array_like=True):
    """The cell stays mine, or that of the owner for whom I wanted to stand in."""

    ticket: Count
    owner: NodeId = ""


class Divided(msgspec.Struct, frozen=True, tag="divided", array_like=True):
    """The cell has changed hands: these are those that became of it."""

    ticket: Count
    regions: tuple[Region, ...]
    owner: NodeId = ""
    """Whose the cell was, where that was not me: I stand in for it now."""


class BookEntry(msgspec.Struct, frozen=True, array_like=True):
    """Of a book: what a broker wants."""

    broker: NodeId
    statement: Count
    filters: tuple[Filter, ...]


class HomeEntry(msgspec.Struct, frozen=True, array_like=True):
    client: str
    epoch: Count
    broker: NodeId


class Ceded(msgspec.Struct, frozen=True, tag="ceded", array_like=True):
    """This cell is yours from now on, with what the book says of it, the clients whose home it is, and whom you can ask
    about the other cells."""

    region: Region
    book: tuple[BookEntry, ...] = ()
    homes: tuple[HomeEntry, ...] = ()
    contacts: tuple[Region, ...] = ()
    again: bool = False
    """It was yours before, and your disk is lost: whoever keeps a replica of it will send you that."""


class Pass(msgspec.Struct, frozen=True, tag="pass", array_like=True):
    """Behind all that `by` has sent you for a cell which is another broker's now: pass it on to there, behind all that
    waits at your broker for the same cell."""

    by: NodeId
    ticket: Count
    to: NodeId
    hops: Hops = 0
    region: Region | None = None
    """The cell; brokers of an earlier version say only whose it is."""


class Passed(msgspec.Struct, frozen=True, tag="passed", array_like=True):
    """What you had sent before, for the cell that is mine now, is here."""

    ticket: Count


class Replica(msgspec.Struct, frozen=True, tag="replica", array_like=True):
    """All of a book: keep it, in case that its owner is silent or loses its disk. Without regions: forget it."""

    owner: NodeId
    version: Count
    regions: tuple[Region, ...]
    holders: tuple[NodeId, ...]
    """Who else keeps one: only together can they tell what the owner has granted."""
    book: tuple[BookEntry, ...]
    cells: tuple[Region, ...] = ()
    """What the owner has, where it says so itself. In `regions` others may stand in for it: that is less while it is
    about to give something away."""


class Amended(msgspec.Struct, frozen=True, tag="amended", array_like=True):
    """One entry of my book is this now."""

    version: Count
    entry: BookEntry


class Watched(msgspec.Struct, frozen=True, tag="watched", array_like=True):
    """I keep a replica of your book, of this version (0: none): are you there?"""

    version: Count


class Awake(msgspec.Struct, frozen=True, tag="awake", array_like=True):
    """I am: say which version of my book you keep. `lost`: my disk is not, so send me what you keep of it, or
    what is retained for my cells and wanted at your broker."""

    lost: bool = False


class Standin(msgspec.Struct, frozen=True, tag="standin", array_like=True):
    """This owner is silent. Take nothing more from it, and send me your replica, so that I can stand in for it."""

    owner: NodeId
    version: Count


class Unfit(msgspec.Struct, frozen=True, tag="unfit", array_like=True):
    """You cannot stand in for it: it is there, or (`stale`) your replica is not one that counts."""

    owner: NodeId
    stale: bool = False


Content = (
    Publication
    | Place
    | Fetch
    | Session
    | Nothing
    | Forwarded
    | Turn
    | Turned
    | Through
    | Said
    | Heard
    | Hello
    | Retained
    | Copy
    | Drop
    | Uncopied
    | Given
    | Reserve
    | Reserved
    | Sought
    | Found
    | Placed
    | Recall
    | Recalled
    | Outlook
    | Unclear
    | Seated
    | Offered
    | Summon
    | Marker
    | Crossed
    | Astray
    | Dealt
    | Routed
    | Wanted
    | Noted
    | Seek
    | Owned
    | Enter
    | Barred
    | Dividing
    | Agreed
    | Undivided
    | Divided
    | Ceded
    | Pass
    | Passed
    | Replica
    | Amended
    | Watched
    | Awake
    | Standin
    | Unfit
)


def filters_in(content: Content) -> Iterator[Filter]:
    """Those that a broker will ask one day: they must be good."""
    match content:
        case Outlook():
            yield from (*content.unoffered, *content.offered, *content.unwanted, *content.wanted)
        case Offered(filters):
            yield from filters


def retimed(content: Content, offset_s: float) -> Content:
    """The same with its times by another broker's steady clock, which is so much ahead of the speaker's.

    When something was published stays as it is: that is a date for people, and decides which of two retained ones is
    the last. Nobody's age is measured by it.
    """
    match content:
        case Publication():
            return _retimed(content, offset_s)
        case Retained(publication):
            return Retained(_retimed(publication, offset_s))
        case Routed(publication) | Dealt(publication):
            return msgspec.structs.replace(content, publication=_retimed(publication, offset_s))
        case Forwarded():
            return msgspec.structs.replace(content, kept=_retimed_kept(content.kept, offset_s))
        case Session() | Copy():
            kept = tuple(_retimed_kept(one, offset_s) for one in content.kept)
            return msgspec.structs.replace(content, kept=kept, carried=_retimed_carried(content.carried, offset_s))
    return content


def _retimed(publication: Publication, offset_s: float) -> Publication:
    if publication.expires is None:
        return publication
    return msgspec.structs.replace(publication, expires=_bounded(publication.expires + offset_s))


def _retimed_kept(kept: Kept, offset_s: float) -> Kept:
    since = _bounded(kept.since + offset_s) if kept.since else 0.0
    return msgspec.structs.replace(kept, publication=_retimed(kept.publication, offset_s), since=since)


def _retimed_carried(carried: Carried, offset_s: float) -> Carried:
    if not carried.asks_since:
        return carried
    return msgspec.structs.replace(carried, asks_since=_bounded(carried.asks_since + offset_s))


def _bounded(time_s: float) -> float:
    return min(max(time_s, -TIME_MAX), TIME_MAX)

"""From topic filters on the wire to what the broker calls a subscription, and how it is asked for them.

sport/+/score                               a topic filter
$share/<group>/<topic filter>               shared among the group
$filter/<condition>/<topic filter>          with a condition on the content, percent-encoded
$share/<group>/$filter/<condition>/<topic filter>
$lasting/<topic filter>                     told what is and what changes (docs/lasting.md)
$lasting/$filter/<condition>/<topic filter>
$since/<time>/<topic filter>                first what was published since then, as -2h or 2026-11-17T08:00:00Z
$since/<time>/$filter/<condition>/<topic filter>
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from functools import partial
from time import perf_counter
from urllib.parse import unquote

import msgspec

from godwit.net.access import user_of
from godwit.net.moments import moment
from godwit.net.mqtt.codec import PROTOCOL_ERROR, PacketError, Subscribe, Wish
from godwit.net.mqtt.front import SHARE_S, Front
from godwit.net.mqtt.writer import Delivering
from godwit.protocols.broker.api import Lasting, Reason, RefusedError, RetainHandling, Subscription
from godwit.protocols.broker.broker import Granted
from godwit.protocols.broker.interest.subscribers import BROKERS_OWN
from godwit.protocols.broker.session.state import Session
from godwit.protocols.broker.topics import problem_of_filter, problem_of_form

log = logging.getLogger("godwit.mqtt")

FILTER = "filter"
"""The user property of SUBSCRIBE that carries a condition for all topic filters of the packet."""

LASTING = "lasting"
"""The user property of SUBSCRIBE that makes all subscriptions of the packet last."""

SHARE_PREFIX = "$share/"
FILTER_PREFIX = "$filter/"
LASTING_PREFIX = "$lasting/"
SINCE_PREFIX = "$since/"

SINCE = "since"
"""The user property of SUBSCRIBE by which all subscriptions of the packet want what was published before."""

SENSES = {"overlap": Lasting.OVERLAP, "cover": Lasting.COVER}
QUIET = "quiet"


def check_filter(pattern: str, what: str) -> None:
    """That it is a topic filter at all, whoever may have it: one that is none costs the connection (MQTT 5, 4.7, 4.8
    and 4.13.1). What only this broker makes of it, a condition, is refused in the answer."""
    if pattern.startswith(SINCE_PREFIX):
        pattern = pattern[len(SINCE_PREFIX) :].partition("/")[2]
    try:
        _, topics = _split_share(pattern.removeprefix(LASTING_PREFIX))
    except RefusedError as error:
        raise PacketError(f"{what}: {error.text}") from None
    if topics.startswith(FILTER_PREFIX):
        topics = topics[len(FILTER_PREFIX) :].partition("/")[2] or "none"
    if problem := problem_of_form(topics):
        raise PacketError(f"{what}: {problem}")


def conditions_of(packet: Subscribe) -> list[str]:
    """What the packet wants of the content, whatever the topic."""
    found = [value for name, value in packet.user_properties if name == FILTER]
    if "" in found:
        raise PacketError("SUBSCRIBE: an empty `filter`; leave the property out to ask for all content", PROTOCOL_ERROR)
    return found


def lasting_of(packet: Subscribe) -> list[str] | None:
    """The words of its `lasting`; None where it has none."""
    said = [value for name, value in packet.user_properties if name == LASTING]
    return " ".join(said).replace(",", " ").lower().split() if said else None


def since_of(packet: Subscribe) -> str | None:
    """Since when it wants what was published; None where it does not."""
    return next((value for name, value in packet.user_properties if name == SINCE), None)


def subscription_of(
    wish: Wish,
    conditions: Iterable[str],
    identifier: int,
    lasting: list[str] | None = None,
    since: str | None = None,
    now_s: float = 0.0,
) -> Subscription:
    """What the broker is asked for; `RefusedError` where the topic filter is none."""
    if wish.pattern.startswith(SINCE_PREFIX):
        encoded, _, rest = wish.pattern[len(SINCE_PREFIX) :].partition("/")
        said = since or unquote(encoded)
        plain = msgspec.structs.replace(wish, pattern=rest)
        wanted = subscription_of(plain, conditions, identifier, lasting, said, now_s)
        return msgspec.structs.replace(wanted, key=wish.pattern)
    if wish.pattern.startswith(LASTING_PREFIX):
        rest, lasting = wish.pattern[len(LASTING_PREFIX) :], lasting or []
    else:
        rest = wish.pattern
    sense, quiet = _sense(lasting)
    group, rest = _split_share(rest)
    if group and wish.no_local:
        raise PacketError(f"SUBSCRIBE: no-local on the shared subscription {wish.pattern!r}", PROTOCOL_ERROR)
    condition, topics = _split_filter(rest)
    if condition and topics.startswith(SHARE_PREFIX):
        raise _invalid(f"{wish.pattern!r}: right would be $share/<group>/$filter/<condition>/<topic filter>")
    problem = problem_of_filter(topics)
    if problem:
        raise _invalid(problem)
    return Subscription(
        wish.pattern,
        topics,
        _all_of([*conditions, *([condition] if condition else [])]),
        group,
        wish.qos,
        wish.no_local,
        wish.retain_as_published,
        RetainHandling(wish.retain_handling),
        identifier,
        sense,
        quiet,
        None if since is None else _moment(since, now_s),
    )


def _moment(since: str, now_s: float) -> float:
    try:
        return moment(since, now_s)
    except ValueError as error:
        raise _invalid(f"since: {error}") from None


def _sense(words: list[str] | None) -> tuple[Lasting, bool]:
    if words is None:
        return Lasting.NO, False
    for word in words:
        if word not in SENSES and word != QUIET:
            raise _invalid(f"lasting: {word!r} is none of overlap, cover, quiet; leave it empty for overlap")
    senses = [SENSES[word] for word in words if word != QUIET]
    return senses[-1] if senses else Lasting.OVERLAP, QUIET in words


def _split_share(pattern: str) -> tuple[str, str]:
    if not pattern.startswith(SHARE_PREFIX):
        return "", pattern
    group, slash, rest = pattern[len(SHARE_PREFIX) :].partition("/")
    if not group or not slash or "+" in group or "#" in group:
        raise _invalid(f"{pattern!r}: a shared subscription is $share/<group>/<topic filter>, no wildcard in the group")
    return group, rest


def _split_filter(pattern: str) -> tuple[str, str]:
    if not pattern.startswith(FILTER_PREFIX):
        return "", pattern
    encoded, slash, topics = pattern[len(FILTER_PREFIX) :].partition("/")
    if not encoded or not slash:
        raise _invalid(f"{pattern!r}: a content filter is $filter/<percent-encoded condition>/<topic filter>")
    try:
        return unquote(encoded, errors="strict"), topics
    except UnicodeDecodeError:
        raise _invalid(f"{pattern!r}: the condition is not UTF-8 once its percent signs are decoded") from None


def _all_of(conditions: list[str]) -> str:
    if len(conditions) < 2:
        return "".join(conditions)
    return " AND ".join(f"({condition})" for condition in conditions)


def _invalid(text: str) -> RefusedError:
    return RefusedError(Reason.TOPIC_FILTER_INVALID, text)


NOT_IN_PLACE = "some brokers that would match it do not answer; try again"


class Asked:
    """A SUBSCRIBE that is being answered: its conditions, where its answer belongs in what is written, and the answers
    so far."""

    __slots__ = ("answers", "conditions", "packet", "place")

    def __init__(self, packet: Subscribe, conditions: list[str], place: int) -> None:
        self.packet = packet
        self.conditions = conditions
        self.place = place
        self.answers: list[Granted] = []


class Subscribing(Delivering):
    """The part of a connection that answers SUBSCRIBE, in turns where that takes long."""

    __slots__ = ("_asked", "_client")

    def __init__(self, front: Front) -> None:
        super().__init__(front)
        self._client = ""
        self._asked: Asked | None = None

    def _check_filters(self, patterns: Sequence[str], what: str) -> None:
        self._teller.check_answer(what, len(patterns))
        for pattern in patterns:
            check_filter(pattern, what)

    def _subscribe(self, packet: Subscribe) -> None:
        self._check_filters([wish.pattern for wish in packet.wishes], "SUBSCRIBE")
        self._asked = Asked(packet, conditions_of(packet), len(self._pieces or ()))
        self._go_on_subscribing()

    def _go_on_subscribing(self) -> None:
        """As many topic filters as fit into a share of a turn: a long condition is not cheap. The answer to all follows
        the last, and nothing else of this client is looked at before."""
        asked, session = self._asked, self._session
        assert asked is not None
        assert session is not None
        end = perf_counter() + SHARE_S
        for wish in asked.packet.wishes[len(asked.answers) :]:
            asked.answers.append(self._granted(wish, asked))
            if perf_counter() > end and len(asked.answers) < len(asked.packet.wishes):
                return
        self._asked = None
        answered = zip(asked.packet.wishes, asked.answers, strict=True)
        keys = [wish.pattern for wish, granted in answered if granted.reason < Reason.UNSPECIFIED]
        self.front.broker.in_place(session, keys, partial(self._subscribed, asked, session, keys))

    def _subscribed(self, asked: Asked, session: Session, keys: list[str], in_place: bool) -> None:
        """Whoever may send something knows of it by now, or cannot be told: then the client is not told that it will
        get everything."""
        if not in_place:
            refused = Granted(Reason.IMPLEMENTATION_SPECIFIC, 0, NOT_IN_PLACE)
            gone = self.front.broker.withdraw_unplaced(session, keys)
            wishes = zip(asked.packet.wishes, asked.answers, strict=True)
            asked.answers = [refused if wish.pattern in gone else one for wish, one in wishes]
            log.warning("subscriptions of %r refused: %s", self._client, NOT_IN_PLACE, extra={"client": self._client})
        if self.ended or self._session is not session:
            return
        answered = zip(asked.packet.wishes, asked.answers, strict=True)
        answers = [self.front.broker.renewed(session, wish.pattern, one) for wish, one in answered]
        said = self._teller.subscribed(asked.packet.packet_id, answers)
        if session.durable:
            self._once_safe(said)
        elif not self.ended:
            # Retained publications may have come already; a client likes to have the answer before them.
            self.send(said)
            assert self._pieces is not None
            self._pieces.insert(min(asked.place, len(self._pieces) - 1), self._pieces.pop())

    def _granted(self, wish: Wish, asked: Asked) -> Granted:
        assert self._session is not None
        most = self.options.filters_per_packet_max
        if len(asked.answers) >= most:
            return Granted(Reason.QUOTA_EXCEEDED, 0, f"more than {most} topic filters in one packet; send several")
        try:
            packet, now_s = asked.packet, self.front.broker.clock()
            wanted = subscription_of(
                wish, asked.conditions, packet.subscription_id, lasting_of(packet), since_of(packet), now_s
            )
        except RefusedError as error:
            return self._told(wish, Granted(error.reason, 0, error.text))
        if wanted.topics.startswith(BROKERS_OWN) and not user_of(self._client):
            return self._told(wish, Granted(Reason.NOT_AUTHORIZED, 0, f"{BROKERS_OWN} is for clients with a user name"))
        (granted,) = self.front.broker.subscribe(self._session, (wanted,))
        return self._told(wish, granted)

    def _told(self, wish: Wish, granted: Granted) -> Granted:
        """Clients of 3.1.1 cannot be told why, so that their operators are."""
        if granted.reason >= Reason.UNSPECIFIED:
            extra = {"client": self._client, "topics": wish.pattern, "reason": int(granted.reason)}
            log.warning(
                "subscription of %r to %r refused: %s", self._client, wish.pattern[:200], granted.text, extra=extra
            )
        return granted

    def _once_safe(self, said: bytes) -> None:
        """Say it when the disk has what it says, where the session is one that a disk has."""
        assert self._session is not None
        if self._session.durable:
            self.front.broker.store.settled(partial(self._say, said))
        else:
            self._say(said)

    def _say(self, said: bytes) -> None:
        if not self.ended:
            self.send(said)

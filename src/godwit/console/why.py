"""Why did this client not get that event? What each broker knows of it, put together into steps and one sentence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

YES, NO, OPEN = "yes", "no", "open"


class Step(msgspec.Struct, frozen=True):
    """One thing that must be so, whether it is, and what says so."""

    mark: str
    text: str


class Answer(msgspec.Struct, frozen=True):
    sentence: str
    steps: list[Step]


def answered(client: str, told: Sequence[Mapping[str, Any]], *, thought_of: bool) -> Answer:
    """`told` is `godwit.net.admin.rows.Why` of every broker. `thought_of`: the event was typed, nobody published it."""
    steps = list(_steps(client, told, thought_of))
    failed = next((one for one in steps if one.mark == NO), None)
    if failed is not None:
        return Answer(failed.text, steps)
    if thought_of:
        return Answer(f"{client} would get it.", steps)
    if _records(told, "delivered"):
        return Answer(f"{client} did get it.", steps)
    unknown = next((one for one in steps if one.mark == OPEN), None)
    return Answer(unknown.text if unknown is not None else "Nothing speaks against it: it may be under way.", steps)


def _steps(client: str, told: Sequence[Mapping[str, Any]], thought_of: bool) -> Iterator[Step]:
    origin = next((one for one in told if one["event"] or _published(one)), None)
    if thought_of:
        yield Step(OPEN, "The event is only thought of: nobody published it.")
    elif origin is None:
        yield Step(
            OPEN, "No broker has recorded this event. Record for a while, let it be published again, and ask again."
        )
    else:
        event = origin["event"]
        where = f" to {event['topic']!r}" if event else ""
        yield Step(YES, f"It was published{where} at {origin['broker']}.")
    home = next((one for one in told if one["state"] in ("connected", "away")), None)
    if home is None:
        moved = next((one for one in told if one["moved_to"]), None)
        more = f"; {moved['broker']} last sent it to {moved['moved_to']}, which does not answer" if moved else ""
        yield Step(NO, f"No broker that answers has a session of {client}{more}.")
        return
    is_here = "is connected" if home["state"] == "connected" else "is away"
    yield Step(YES, f"The session of {client} is at {home['broker']}, and the client {is_here}.")
    yield from _wishes(client, home)
    yield from _ways(client, told, origin, home)


def _wishes(client: str, home: Mapping[str, Any]) -> Iterator[Step]:
    subscriptions = home["subscriptions"]
    if not subscriptions:
        yield Step(NO, f"{client} has subscribed to nothing.")
        return
    if not home["permitted"]:
        yield Step(NO, f"The user of {client} may not see it: no grant matches.")
    fitting = [one for one in subscriptions if one["fits"]]
    unknown = any(one["because"] == "the event is not known" for one in subscriptions)
    if fitting:
        yield Step(YES, f"Its subscription {_named(fitting[0])} wants it.")
    elif unknown:
        yield Step(OPEN, "What the event said is not known any more, so that nobody can say whether it was wanted.")
    else:
        nearest = next((one for one in subscriptions if one["topic_fits"]), subscriptions[0])
        many = "Its subscription does not want it"
        if len(subscriptions) > 1:
            many = f"None of its {len(subscriptions)} subscriptions wants it"
        yield Step(NO, f"{many}: {_named(nearest)} {nearest['because']}.")


def _named(one: Mapping[str, Any]) -> str:
    return f"‘{one['condition']}’" if one["condition"] else f"‘{one['key']}’"


def _ways(
    client: str, told: Sequence[Mapping[str, Any]], origin: Mapping[str, Any] | None, home: Mapping[str, Any]
) -> Iterator[Step]:
    if origin is not None and origin["broker"] != home["broker"] and origin["wanted_by"] is not None:
        wanted = origin["wanted_by"].get(home["broker"])
        if wanted:
            yield Step(YES, f"{origin['broker']} knows that {home['broker']} wants it, and sends it there.")
        elif origin["event"]:
            what = "does not know what it wants" if wanted is None else "thinks that it does not want it"
            yield Step(NO, f"{origin['broker']} did not send it to {home['broker']}: it {what}.")
    for one, record in _records(told, "dropped"):
        yield Step(NO, f"It was dropped at {one['broker']}: {DROPS.get(record['note'], record['note'])}.")
    for one, _ in _records(told, "delivered"):
        yield Step(YES, f"It was delivered by {one['broker']}.")
        return
    if home["waiting"]:
        yield Step(OPEN, f"It waits at {home['broker']} until {client} takes it.")
    elif origin is not None and not home["traced_since"]:
        yield Step(OPEN, f"{home['broker']} recorded nothing, so that nobody knows whether it was delivered.")
    elif origin is not None and home["state"] == "away":
        yield Step(OPEN, f"{client} is away: what comes with QoS 0 is not kept for it.")


DROPS = {
    "queue": "more waited for the client than [backlog] allows",
    "age": "it had waited longer than [backlog] allows",
    "expired": "its publisher let it expire",
    "offline": "the client was away, and it came with QoS 0",
    "ended": "the client's session ended",
    "purged": "an operator purged what waited",
    "not_authorized": "the client's rights were taken",
    "closed": "the connection ended",
}


def _published(one: Mapping[str, Any]) -> bool:
    return any(record["kind"] == "published" for record in one["trace"])


def _records(told: Sequence[Mapping[str, Any]], kind: str) -> list[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    return [(one, record) for one in told for record in one["trace"] if record["kind"] == kind]

"""What a session has had in the sites where it was: docs/sites.md, "Two gateways".

What another gateway brings of it late is told by the name that a publication has in all sites: the stream where it
began, and its number there. Streams are taken in order, so one number for each of them says all.

In a ring the same holds for what a session wanted once: who matches that is not asked to turn when the session moves.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from godwit.protocols.broker.api import Subscription
from godwit.protocols.broker.messages import Stay
from godwit.protocols.broker.publication import Publication
from godwit.protocols.broker.session.memory import wants
from godwit.protocols.broker.session.state import Session

STAYS_MAX = 16
"""So many sites are remembered. What was had in one before them, and comes that late, may come again."""

ANYWHERE = ""
"""Stands for no site: the session may be in the same one yet."""


def left(stays: tuple[Stay, ...], site: str, lines: Mapping[str, int]) -> tuple[Stay, ...]:
    """It leaves a site whose streams have come so far."""
    others = [one for one in stays if one.site != site]
    return (*others, Stay(site, dict(lines)))[-STAYS_MAX:]


def grown(stays: tuple[Stay, ...], site: str, lines: Mapping[str, int]) -> tuple[Stay, ...]:
    """All that was for it there up to these has been passed on to it as well."""
    last = max((at for at, one in enumerate(stays) if one.site == site), default=None)
    if last is None:
        return stays
    stay = msgspec.structs.replace(stays[last], lines={**stays[last].lines, **lines})
    return (*stays[:last], stay, *stays[last + 1 :])


def withdrawn(stays: tuple[Stay, ...], lines: Mapping[str, int]) -> tuple[Stay, ...]:
    """It wants nothing of these streams any longer. Should it want something again, it has had all up to here."""
    if stays and stays[-1].site == ANYWHERE and not stays[-1].but:
        lines, stays = {**stays[-1].lines, **lines}, stays[:-1]
    return (*stays, Stay(ANYWHERE, dict(lines)))[-STAYS_MAX:]


def unite_stays(session: Session, stays: Iterable[Stay], wanted: Iterable[Subscription]) -> None:
    """Another session of the client goes into it, that wanted this; to be called before its wishes do. What only one of
    the two wanted, only that one has had."""
    ours, theirs = set(session.subscriptions), {one.key for one in wanted}
    own = [msgspec.structs.replace(one, but=one.but | (theirs - ours)) for one in session.carried.stays]
    other = [msgspec.structs.replace(one, but=one.but | (ours - theirs)) for one in stays]
    session.carried.stays = (*own, *other)[-STAYS_MAX:]


def has_had(session: Session, name: tuple[str, int], publication: Publication) -> bool:
    """Whether the session had this where it was before."""
    line, number = name
    return any(
        number <= one.lines.get(line, 0) and wanted_by_others(session, publication, one.but)
        for one in session.carried.stays
    )


def wanted_by_others(session: Session, publication: Publication, but: Iterable[str]) -> bool:
    """Whether the session wants it, by a subscription that is none of these. Whoever asks knows that it does."""
    if not but:
        return True
    return any(key not in but and wants(sub, publication) for key, sub in session.subscriptions.items())

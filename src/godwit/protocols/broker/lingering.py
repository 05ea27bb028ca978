"""What a broker wants, told to the others, with what has gone kept up for a while where it may soon be wanted again."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from godwit.filters.filters import Filter, FilterSet
from godwit.protocols.broker.sessions import Session, Sub
from godwit.protocols.broker.wants import Wants
from godwit.protocols.host import Host

LINGER_S = 10.0
"""How long what a copy or a shadow wanted is stated after it has gone. Clients that hop make and end both all the time:
others would be told of each, to work it into their tables, and brokers would wait for it before they turn. Meanwhile
somebody may send what nobody wants here, which costs less."""


class Lingering:
    """As `Wants`, for subscriptions. `on_change` is called when what lingered may have changed the statement."""

    def __init__(self, host: Host, on_change: Callable[[], None]) -> None:
        self._host = host
        self._on_change = on_change
        self._wants = Wants()
        self._gone: deque[tuple[float, str, FilterSet | None]] = deque()

    def add(self, sub: Sub) -> None:
        self._wants.add(sub.wanted.topics, sub.condition)

    def remove(self, sub: Sub) -> bool:
        """Whether it has gone at once."""
        if not _may_return(sub.session):
            self._wants.remove(sub.wanted.topics, sub.condition)
            return True
        self._gone.append((self._host.now() + LINGER_S, sub.wanted.topics, sub.condition))
        if len(self._gone) == 1:
            self._host.after(LINGER_S, self._let_go)
        return False

    def review(self) -> bool:
        """True where `filters` says something else now."""
        return self._wants.review()

    def filters(self) -> tuple[Filter, ...]:
        return self._wants.filters()

    def _let_go(self) -> None:
        now_s = self._host.now()
        while self._gone and self._gone[0][0] <= now_s:
            _, topics, condition = self._gone.popleft()
            self._wants.remove(topics, condition)
        if self._gone:
            self._host.after(self._gone[0][0] - now_s, self._let_go)
        self._on_change()


def _may_return(session: Session) -> bool:
    """Its client is at another broker, and known to move."""
    return session.copy is not None or session.moved_to is not None

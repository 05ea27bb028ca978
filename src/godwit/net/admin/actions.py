"""What operators may do to a broker. Each action is written to the audit log before it is done."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

from godwit.net.admin.audit import AuditLog
from godwit.net.admin.rows import AuditRow, Wish
from godwit.net.admin.trail import RECORD_S_MAX, Trail
from godwit.net.admin.watch import Watch
from godwit.net.peers.balance import drain
from godwit.net.server import Parts

BY_OPERATOR = "an operator has ended this connection"
DRAIN_S = 30.0
RESTART_AFTER_S = 0.3
"""Whoever asked must have the answer before."""


class ActionError(Exception):
    """It cannot be done; the text says why."""


class Actions:
    """Of one broker."""

    def __init__(self, parts: Parts, audit: AuditLog, watch: Watch, trail: Trail) -> None:
        self.parts = parts
        self.audit = audit
        self.watch = watch
        self.trail = trail
        self._draining: asyncio.Task[None] | None = None
        self.known: dict[str, Callable[[Wish], str | Awaitable[str]]] = {
            "disconnect": self._disconnect,
            "end": self._end,
            "purge": self._purge,
            "cordon": partial(self._cordon, closed=True),
            "uncordon": partial(self._cordon, closed=False),
            "drain": self._drain,
            "leave": self._leave,
            "restart": self._restart,
            "reload": self._reload,
            "record": self._record,
        }

    @property
    def draining(self) -> bool:
        return self._draining is not None and not self._draining.done()

    async def do(self, action: str, wish: Wish, user: str, address: str) -> str:
        """What came of it, in words; `ActionError` where nothing did."""
        row = partial(
            AuditRow, time=self.parts.broker.clock(), user=user, address=address, action=action, target=wish.client
        )
        try:
            self.audit.add(row(result="asked for"))
        except OSError as error:
            raise ActionError(f"the audit log cannot be written: {error.strerror}") from None
        try:
            answer = self.known[action](wish)
            result = answer if isinstance(answer, str) else await answer
        except ActionError as error:
            self.audit.add(row(result=f"not done: {error}"))
            raise
        self.audit.add(row(result=result))
        return result

    def stop(self) -> None:
        if self._draining is not None:
            self._draining.cancel()

    def _disconnect(self, wish: Wish) -> str:
        if not self.parts.broker.disconnect(wish.client, BY_OPERATOR):
            raise ActionError(f"{wish.client!r} is not connected at this broker")
        self.parts.front.flush()
        return "disconnected; its session stays"

    def _end(self, wish: Wish) -> str:
        session = self.parts.broker.sessions.get(wish.client)
        waiting = 0 if session is None else len(session.queue.waiting) + len(session.queue.flying)
        if not self.parts.broker.end_session(wish.client, BY_OPERATOR):
            raise ActionError(f"no session of {wish.client!r} is at this broker")
        self.parts.front.flush()
        return f"its session has ended; {waiting:,} deliveries were dropped with it"

    def _purge(self, wish: Wish) -> str:
        dropped = self.parts.broker.purge(wish.client)
        if dropped is None:
            raise ActionError(f"no session of {wish.client!r} is at this broker")
        return f"{dropped:,} deliveries that waited were dropped"

    def _cordon(self, wish: Wish, *, closed: bool) -> str:
        if self._draining is not None:
            self._draining.cancel()
        self.parts.balance.cordon(closed)
        return "new clients are sent elsewhere" if closed else "new clients are let in"

    def _drain(self, wish: Wish) -> str:
        if self.draining:
            raise ActionError("it is draining already")
        seconds = min(wish.seconds or self.parts.config.balance.drain_s or DRAIN_S, 3600.0)
        self._draining = asyncio.create_task(drain(self.parts.balance, self.parts.front, seconds))
        return f"its clients are sent to other brokers, within {seconds:g} s; uncordon lets them in again"

    def _leave(self, wish: Wish) -> str:
        ring = self.parts.ring
        if ring is None:
            raise ActionError("this broker is in no ring; stop it, and the others go on without it")
        if not ring.is_member:
            raise ActionError(f"this broker has no cell: {ring.membership.problem}")
        if not ring.replicas.nearest():
            raise ActionError("this broker knows nobody who could have its cell; stop it, and the ring ends with it")
        self.parts.host.run(ring.leave)
        return "what it owns becomes its neighbors'; drain it, and stop it when `top` shows no cell and no session"

    def _restart(self, wish: Wish) -> str:
        self.parts.asks.restart = True
        asyncio.get_running_loop().call_later(RESTART_AFTER_S, self.parts.asks.stop)
        return "it stops in order and starts again"

    def _reload(self, wish: Wish) -> str:
        if problem := self.parts.asks.reload():
            raise ActionError(problem)
        return "users and grants are read again"

    def _record(self, wish: Wish) -> str:
        seconds = min(wish.seconds, RECORD_S_MAX)
        self.trail.record(seconds)
        if seconds:
            self.watch.look(seconds)
        return f"publications and deliveries are recorded for {seconds:g} s" if seconds else "nothing is recorded"

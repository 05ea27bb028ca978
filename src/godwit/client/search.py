"""The search for a broker: who failed why, when that is told, and when it is of no use to go on."""

from __future__ import annotations

import logging

from godwit.client.errors import UnreachableError, is_final, why
from godwit.net.address import Address

log = logging.getLogger("godwit.client")

AGAIN_S = 30.0
"""So often the same failures are told again."""


class Search:
    """From the moment there is no broker until there is one."""

    def __init__(self, connect_s: float, *, first: bool) -> None:
        self._connect_s = connect_s
        self._first = first
        """There never was a broker: what is wrong is likely to be what we were told."""
        self._why: dict[Address, str] = {}
        self._final: set[Address] = set()
        self._round: set[Address] = set()
        self._told = ""
        self._told_s = 0.0

    def failed(self, broker: Address, error: Exception) -> str:
        """One try in vain; why, in words."""
        self._why[broker] = why(error, self._connect_s)
        self._round.add(broker)
        (self._final.add if is_final(error) else self._final.discard)(broker)
        return self._why[broker]

    def is_round(self, brokers: list[Address]) -> bool:
        """Whether all were tried in vain since this was true last. `UnreachableError` where that will not change."""
        if not self._round.issuperset(brokers):
            return False
        self._round.clear()
        if self._first and self._final.issuperset(brokers):
            raise UnreachableError(self.words(brokers))
        return True

    def words(self, brokers: list[Address]) -> str:
        return "; ".join(f"{broker}: {self._why.get(broker, 'no answer yet')}" for broker in brokers)

    def tell(self, brokers: list[Address], now_s: float) -> UnreachableError | None:
        """Say what failed: at once, when it changes, and now and then; what was said."""
        words = self.words(brokers)
        if words == self._told and now_s - self._told_s < AGAIN_S:
            return None
        self._told, self._told_s = words, now_s
        log.warning("%s; trying again", words)
        return UnreachableError(words)

    def found(self, broker: Address) -> None:
        if self._told:
            log.info("connected to %s", broker)

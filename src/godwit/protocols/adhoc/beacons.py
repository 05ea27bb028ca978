"""What a broker says in its beacons: what it wants, whom else it knows, and what it has; bounded where frames are."""

from __future__ import annotations

import msgspec

from godwit.filters.filters import FilterSet
from godwit.protocols.adhoc.carrier import Carrier
from godwit.protocols.adhoc.messages import Beacon, Hint
from godwit.protocols.adhoc.options import Options
from godwit.protocols.adhoc.summary import fitted
from godwit.protocols.adhoc.table import ProximityTable

FIELDS_B = 16
"""What the names of the fields of a beacon take that a bare one does not have."""


class Beacons:
    def __init__(self, options: Options, table: ProximityTable, carrier: Carrier | None) -> None:
        self.options = options
        self.table = table
        self.carrier = carrier
        self._turn = 0

    def next(self, wanted: FilterSet, now_s: float, period_s: float) -> Beacon:
        options = self.options
        period = period_s if options.adaptive is not None or options.tell_period else None
        if options.beacon_max_b is not None:
            return self._fitted(wanted, now_s, period, options.beacon_max_b)
        return Beacon(
            wanted,
            period,
            None if self.carrier is None else self.carrier.digest(now_s),
            self._hints(now_s) if options.hints_max else (),
        )

    def _hints(self, now_s: float) -> tuple[Hint, ...]:
        return self.table.hints(now_s, self.options.hints_max, relayed=self.options.hints_relayed)

    def _fitted(self, wanted: FilterSet, now_s: float, period_s: float | None, size_max_b: int) -> Beacon:
        """Hints get up to half of what the summary leaves, and the digest the rest."""
        left_b = size_max_b - Beacon(wanted, period_s).size_b - FIELDS_B
        hints = self._taking_turns(self._hints(now_s), left_b // 2) if self.options.hints_max else ()
        left_b -= _size_b(hints)
        have = None if self.carrier is None else self.carrier.digest(now_s, left_b)
        return Beacon(wanted, period_s, have, hints)

    def _taking_turns(self, hints: tuple[Hint, ...], size_max_b: int) -> tuple[Hint, ...]:
        """As many as fit, of brokers that want something; the others with the next beacons."""
        room_b = self.options.hint_max_b
        short = [
            Hint(one.broker, one.proximity, one.period_s, fitted(one.wanted, room_b))
            for one in sorted(hints, key=lambda hint: hint.broker)
            if one.wanted.filters
        ]
        start = self._turn % len(short) if short else 0
        kept: list[Hint] = []
        for hint in short[start:] + short[:start]:
            size_max_b -= _size_b(hint)
            if size_max_b < 0:
                break
            kept.append(hint)
        self._turn += len(kept) if len(kept) < len(short) else 0
        return tuple(kept)


def _size_b(part: Hint | tuple[Hint, ...]) -> int:
    return len(msgspec.msgpack.encode(part))

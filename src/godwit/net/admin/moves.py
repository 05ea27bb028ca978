"""Who came to this broker from which other, and how long that took. Bounded, in memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from godwit.net.admin.rows import MoveRow
from godwit.net.mqtt.front import Arrival

MOVES_MAX = 2_000


class MoveLog:
    """Give `note` to the front."""

    def __init__(self, clock: Callable[[], float], most: int = MOVES_MAX) -> None:
        self._clock = clock
        self._kept: deque[MoveRow] = deque(maxlen=most)

    def note(self, arrival: Arrival) -> None:
        if arrival.came:
            session = arrival.session
            self._kept.append(
                MoveRow(
                    time=self._clock(),
                    client=session.client,
                    source=session.standing.came_from,
                    seconds=arrival.waited_s,
                )
            )

    def of(self, client: str, most: int = 20) -> list[MoveRow]:
        """The newest first."""
        return [one for one in reversed(self._kept) if one.client == client][:most]

    def last(self, most: int) -> list[MoveRow]:
        return list(reversed(self._kept))[:most]

    def seconds(self) -> list[float]:
        return sorted(one.seconds for one in self._kept)

"""Is a subscription complete up to the rendezvous point (spec 2.11.6)? Asked before a client leaves.

The question travels behind the subscription. The point answers it, or the first broker on the way that knows something
as wide to be complete; on the way back the answer is noted, until the filter is withdrawn.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from godwit.filters.filters import Filter
from godwit.protocols.host import NodeId
from godwit.protocols.relocation.messages import Mark
from godwit.protocols.routing.covering.messages import Marker

if TYPE_CHECKING:
    from godwit.protocols.relocation.broker import Outgoing, RelocationBroker


class Checks:
    def __init__(self, broker: RelocationBroker) -> None:
        self.broker = broker
        self._complete: dict[Filter, None] = {}
        self._asked: dict[Filter, list[Callable[[], None]]] = {}

    def ask(self, wanted: Filter, then: Callable[[], None]) -> None:
        """Call `then` once what is wanted here is known to be complete."""
        broker = self.broker
        place = broker.point([wanted])
        if place == broker.name or self.knows(wanted):
            then()
            return
        self._asked.setdefault(wanted, []).append(then)
        broker.tell({}, broker.onward(Marker(Mark.CHECK, "", 0, place, broker.name, "", (wanted,))))

    def knows(self, wanted: Filter) -> bool:
        """Whether something as wide is known to be complete, and still wanted here."""
        router = self.broker.router
        self._complete = {one: None for one in self._complete if one in router.wanted.table}
        return any(router.language.covers(one, wanted) for one in self._complete)

    def passing(self, marker: Marker) -> Outgoing:
        if marker.kind == Mark.CHECK and self.knows(marker.filters[0]):
            return self._answer(marker)
        if marker.kind == Mark.CHECKED:
            self._note(marker.filters[0])
        return self.broker.onward(marker)

    def arrived(self, sender: NodeId, marker: Marker) -> None:
        self._note(marker.filters[0])
        self.broker.tell({}, self._answer(marker))

    def answered(self, sender: NodeId, marker: Marker) -> None:
        (wanted,) = marker.filters
        self._note(wanted)
        for then in self._asked.pop(wanted, []):
            then()

    def _answer(self, marker: Marker) -> Outgoing:
        return self.broker.onward(Marker(Mark.CHECKED, "", 0, marker.origin, self.broker.name, "", marker.filters))

    def _note(self, wanted: Filter) -> None:
        """Only the filter that was asked for: another that covers it may have come after the question had passed."""
        self._complete[wanted] = None

"""The clients of one broker without infrastructure: what they want, singly and in one predicate (spec manet-cbr F1)."""

from __future__ import annotations

from collections.abc import Iterator

from godwit.events import Event
from godwit.filters.filters import FilterSet
from godwit.protocols.adhoc.summary import fitted
from godwit.protocols.host import LocalError
from godwit.tables.merging.interest import Interest

NOTHING = FilterSet()


class Statement:
    """One client that wants all this, reduced already; in the place of `Clients`."""

    def __init__(self, client: str, summary_max_b: int) -> None:
        self.client = client
        self.summary_max_b = summary_max_b
        self.wanted = self.summary = NOTHING

    def __len__(self) -> int:
        return int(bool(self.wanted.filters))

    def state(self, wanted: FilterSet) -> None:
        """In place of what was wanted before."""
        if wanted != self.wanted:
            self.wanted, self.summary = wanted, fitted(wanted, self.summary_max_b)

    def wanting(self, event: Event) -> Iterator[str]:
        if self.wanted.matches(event.values()):
            yield self.client


class Clients:
    """The subscription table of the spec: pairs of predicate and client."""

    def __init__(self, summary_max_b: int) -> None:
        self.summary_max_b = summary_max_b
        self._wanted: dict[tuple[str, FilterSet], None] = {}
        self._interest = Interest()
        self._summary: FilterSet | None = NOTHING

    def __len__(self) -> int:
        return len(self._wanted)

    def subscribe(self, wanted: FilterSet, client: str) -> None:
        """Asking twice is asking once."""
        if (client, wanted) not in self._wanted:
            self._wanted[client, wanted] = None
            self._interest.add(wanted, client)
            self._summary = None

    def unsubscribe(self, wanted: FilterSet, client: str) -> None:
        if (client, wanted) not in self._wanted:
            raise LocalError(f"{client} has not subscribed to this: {wanted}")
        del self._wanted[client, wanted]
        self._interest.remove(wanted, client)
        self._summary = None

    def wanting(self, event: Event) -> Iterator[str]:
        """Each client that wants it, once, in order of subscription."""
        values = event.values()
        told: set[str] = set()
        for client, wanted in self._wanted:
            if client not in told and wanted.matches(values):
                told.add(client)
                yield client

    @property
    def summary(self) -> FilterSet:
        """Accepts whatever any client wants; accepts nothing where there are none."""
        if self._summary is None:
            self._summary = fitted(self._interest.filters(), self.summary_max_b)
        return self._summary

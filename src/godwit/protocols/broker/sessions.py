"""Sessions: what the broker keeps of a client, connected or not."""

from __future__ import annotations

from godwit.protocols.broker.outlet import ALL, Grant, Limits, Outlet


class Session:
    """One client's. It outlives connections as long as the client asked for."""

    def __init__(self, client: str, epoch: int) -> None:
        self.client = client
        self.epoch = epoch
        self.outlet: Outlet | None = None
        self.grant: Grant = ALL
        self.limits = Limits()
        self.sequence = 0

    def next_sequence(self) -> int:
        """The number of this client's next publication."""
        self.sequence += 1
        return self.sequence

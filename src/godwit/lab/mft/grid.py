"""Which runs make up the published evaluation (spec mft-pubsub 3.2), whole or in part."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from godwit.lab.mft.runs import SIDES_M, Configuration

PROTOCOLS = ("mft", "hardened", "aodv")
REFERENCE_MPS = 8.0
"""The speed at which the published figures show sizes."""

DRAIN_SHARE = 0.4
"""200 s without publications after 500 s with them."""

SPARSE_M = 110.0
"""C2 in the area of C32: the reason given for keeping the density (E17)."""

TUNED: Mapping[str, Mapping[str, Any]] = {"mft": {}, "hardened": {"patience_s": 2.5}, "aodv": {}}
"""What differs from the defaults of a run. MFT is exactly the published protocol; the hardened one keeps a parent or a
broker whose heartbeat was lost on the air (`godwit lab trees` shows what that spares)."""


class Grid(msgspec.Struct, frozen=True, kw_only=True):
    """Sizes x speeds x seeds x protocols. `quick` runs the largest size at the reference speed only."""

    sizes: tuple[int, ...] = tuple(SIDES_M)
    speeds_mps: tuple[float, ...] = (2.0, 4.0, 6.0, 8.0, 10.0)
    seeds: int = 10
    protocols: tuple[str, ...] = PROTOCOLS
    workload: str = "unicast"
    publish_s: float = 500.0
    quick: bool = False

    @property
    def reference_mps(self) -> float:
        """8 m/s, or of the speeds that were run the one closest to it."""
        return min(self.speeds_mps, key=lambda speed: (abs(speed - REFERENCE_MPS), speed))

    def cells(self) -> list[Configuration]:
        """The grid itself; the largest sizes come first, so that no process is left alone with one at the end."""
        return [
            self._run(protocol, size, speed, seed)
            for size in sorted(self.sizes, reverse=True)
            for speed in self._speeds(size)
            for seed in self._seeds()
            for protocol in self.protocols
        ]

    def sparse(self) -> list[Configuration]:
        return [
            self._run(protocol, 2, self.reference_mps, seed, side_m=SPARSE_M)
            for seed in self._seeds()
            for protocol in self.protocols
            if 2 in self.sizes
        ]

    def floods(self) -> list[Configuration]:
        """AODV searching the whole network at once, as the published wall times suggest."""
        sizes = self.sizes if "aodv" in self.protocols else ()
        return [self._run("aodv", size, self.reference_mps, 1, expanding_ring=False) for size in sizes]

    def all(self) -> list[Configuration]:
        return [*self.cells(), *self.sparse(), *self.floods()]

    def _seeds(self) -> range:
        return range(1, self.seeds + 1)

    def _speeds(self, size: int) -> tuple[float, ...]:
        return (self.reference_mps,) if self.quick and size == max(SIDES_M) else self.speeds_mps

    def _run(self, protocol: str, size: int, speed_mps: float, seed: int, **others: Any) -> Configuration:
        return Configuration(
            size=size,
            speed_mps=speed_mps,
            seed=seed,
            protocol=protocol,
            workload=self.workload,
            publish_s=self.publish_s,
            drain_s=self.publish_s * DRAIN_SHARE,
            **{**TUNED[protocol], **others},
        )


QUICK = Grid(speeds_mps=(2.0, 6.0, 8.0, 10.0), seeds=3, publish_s=60.0, quick=True)
"""About three minutes on two quiet cores."""

"""Which runs make up the published evaluation (spec mft-pubsub 3.2), whole or in part."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from godwit.lab.mft.runs import SIDES_M, Configuration

PROTOCOLS = ("mft", "hardened", "aodv")
REFERENCE_MPS = 8.0
"""The speed at which the published figures show sizes."""

BY_SPEED = 16
"""The size at which the published figures show speeds."""

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
    first_seed: int = 1
    needed: bool = False
    """Only the cells that some claim speaks of: all sizes at the reference speed, and C16 at every speed."""
    quick: bool = False
    period_s: float = 1.0
    acknowledge: str = "every hop"
    retry_s: float = 1.0
    aodv: str = "hello routes"
    range_m: float = 0.0

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
        seed = self.first_seed
        return [self._run("aodv", size, self.reference_mps, seed, expanding_ring=False) for size in sizes]

    def all(self) -> list[Configuration]:
        return [*self.cells(), *self.sparse(), *self.floods()]

    def _seeds(self) -> range:
        return range(self.first_seed, self.first_seed + self.seeds)

    def _speeds(self, size: int) -> tuple[float, ...]:
        alone = (self.quick and size == max(SIDES_M)) or (self.needed and size != BY_SPEED)
        return (self.reference_mps,) if alone else self.speeds_mps

    def _run(self, protocol: str, size: int, speed_mps: float, seed: int, **others: Any) -> Configuration:
        return Configuration(
            size=size,
            speed_mps=speed_mps,
            seed=seed,
            protocol=protocol,
            workload=self.workload,
            publish_s=self.publish_s,
            drain_s=self.publish_s * DRAIN_SHARE,
            **{**TUNED[protocol], **self._read(protocol), **others},
        )

    def _read(self, protocol: str) -> dict[str, Any]:
        """How what the text leaves open is read; the hardened protocol has its own answers to some of it."""
        if protocol == "aodv":
            return {"aodv": self.aodv, "range_m": self.range_m}
        if protocol == "hardened":
            return {"range_m": self.range_m}
        return {
            "period_s": self.period_s,
            "acknowledge": self.acknowledge,
            "retry_s": self.retry_s,
            "range_m": self.range_m,
        }


QUICK = Grid(speeds_mps=(2.0, 6.0, 8.0, 10.0), seeds=3, publish_s=60.0, quick=True)
"""About three minutes on two quiet cores."""

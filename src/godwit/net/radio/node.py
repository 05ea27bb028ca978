"""A broker's part in the air: the radio, its host and the fabric over it, and what it tells of itself."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from godwit.net.config import Config
from godwit.net.host import AsyncHost, boot_of_machine
from godwit.net.ops.report import AirReport, AirRow
from godwit.net.radio.antenna import AntennaError
from godwit.net.radio.radio import Radio, RadioOptions
from godwit.net.server import ServeError, Service
from godwit.protocols.adhoc.messages import FARTHEST
from godwit.protocols.broker.fabric.adhoc import EVENT_OVERHEAD_B, AdhocFabric, field_options
from godwit.protocols.broker.store import Store
from godwit.protocols.host import NodeId

if TYPE_CHECKING:
    from godwit.net.ops.status import Figures


@dataclass(frozen=True)
class Air:
    config: Config
    radio: Radio
    host: AsyncHost
    fabric: AdhocFabric

    @property
    def where(self) -> str:
        return ", ".join(antenna.where for antenna in self.radio.antennas)

    def counts(self) -> Figures:
        radio, fabric = self.radio, self.fabric.counts
        return {
            "air_events": {name: getattr(fabric, name) for name in fabric.__struct_fields__},
            "air_frames_sent": dict(radio.sent),
            "air_frames_received": dict(radio.received),
            "air_bytes": {"out": radio.bytes_sent, "in": radio.bytes_received},
            "air_dropped": dict(radio.dropped),
            "air_failures": dict(self.host.failures),
        }

    def levels(self) -> Figures:
        carrier = self.fabric.core.carrier
        entries = self.fabric.neighbors.values()
        return {
            "air_nodes": {
                "heard": sum(one.is_met for one in entries),
                "told of": sum(not one.is_met for one in entries),
            },
            "air_carried": {"events": len(carrier.kept), "bytes": carrier.bytes} if carrier is not None else {},
            "air_waiting_bytes": self.radio.waiting_b,
        }

    def report(self) -> AirReport:
        carrier = self.fabric.core.carrier
        return AirReport(
            where=self.where,
            sealed=bool(self.config.air_key()),
            nodes=[self._row(name) for name in sorted(self.fabric.neighbors)],
            carried=0 if carrier is None else len(carrier.kept),
        )

    def _row(self, name: NodeId) -> AirRow:
        entry, table = self.fabric.neighbors[name], self.fabric.core.table
        proximity = table.proximity(name, self.host.now())
        return AirRow(
            name=name,
            heard=entry.is_met,
            proximity=(FARTHEST if proximity is None else proximity) / FARTHEST,
            filters=len(entry.wanted.filters),
        )


def in_the_air(config: Config, name: NodeId, store: Store) -> AdhocFabric:
    """A fabric on a radio of its own, whose sockets the service opens."""
    told = config.adhoc
    options = RadioOptions(
        interfaces=told.interfaces,
        group=told.group,
        port=told.port,
        frame_b_max=told.frame_bytes_max,
        message_b_max=told.event_bytes_max + EVENT_OVERHEAD_B,
        bytes_per_s=told.bytes_per_s,
    )
    radio = Radio(name, config.air_key(), options)
    host = AsyncHost(name, radio)
    beacons = field_options(
        period_s=told.beacon_s,
        credit=told.credits,
        carry_s=told.carry_s,
        carry_events=told.carry_events,
        carry_bytes=told.carry_bytes,
        beacon_max_b=radio.room_b,
    )
    fabric = AdhocFabric(host, store, beacons, time.time, radio, boot_of_machine())
    host.core = fabric
    radio.on_message = host.deliver
    return fabric


def air_of(config: Config, fabric: AdhocFabric) -> Air:
    """Of a fabric that was made here."""
    host = fabric.host
    assert isinstance(host, AsyncHost)
    assert isinstance(host.carrier, Radio)
    return Air(config, host.carrier, host, fabric)


# The radio of a running broker: opened before clients come, closed after they have gone.


class RadioService(Service):
    def __init__(self, air: Air) -> None:
        self.air = air

    async def start(self) -> None:
        try:
            self.air.radio.start()
        except AntennaError as error:
            raise ServeError(f"adhoc.interfaces: {error}") from None

    async def stop(self) -> None:
        self.air.host.stop()
        self.air.radio.stop()

    def addresses(self) -> list[tuple[str, str]]:
        sealed = "sealed with a key" if self.air.config.air_key() else "without a key: anybody in range may speak"
        return [("air", f"{self.air.where}, {sealed}")]

    def troubles(self) -> list[str]:
        return self.air.radio.troubles()

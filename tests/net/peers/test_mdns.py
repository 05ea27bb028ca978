"""Brokers find one another on the local network, and only those of their cluster."""

from __future__ import annotations

import asyncio
import socket

import pytest
from tests.net.stations import Station, played, until

from godwit.net.peers.frames import Peer
from godwit.net.peers.mdns import Discovery, _label

LOOPBACK = ["127.0.0.1"]


def multicast_works() -> bool:
    """Some containers have no multicast on loopback; there is nothing to test there."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        try:
            group = socket.inet_aton("224.0.0.251") + socket.inet_aton("127.0.0.1")
            sock.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, group)
        except OSError:
            return False
    return True


needs_multicast = pytest.mark.skipif(not multicast_works(), reason="no multicast on loopback here")


@needs_multicast
def test_brokers_of_one_cluster_link_without_being_told_of_each_other() -> None:
    async def scene() -> None:
        stations = [Station("north"), Station("south")]
        found: list[Peer] = []
        searches = [Discovery(station.name, "c", station.dialler.learn, interfaces=LOOPBACK) for station in stations]
        searches.append(Discovery("elsewhere", "another cluster", found.append, interfaces=LOOPBACK))
        for station, search in zip(stations, searches, strict=False):
            address = await station.listen()
            await search.start("127.0.0.1", int(address.rpartition(":")[2]))
        await searches[2].start("127.0.0.1", 1)
        await until(lambda: stations[0].peers == {"south"} and stations[1].peers == {"north"})
        await asyncio.sleep(0.2)
        assert found == []
        assert not any(address[-2:] == ":1" for station in stations for address in station.dialler.book)
        for search in searches:
            await search.stop()
        for station in stations:
            await station.stop()

    played(scene)


def test_any_name_makes_a_label_of_dns() -> None:
    assert _label("van.7") == "van-7"
    assert len(_label("ü" * 100).encode()) <= 63

"""What clients of a ring are told, whatever they speak."""

from __future__ import annotations

from pathlib import Path

import aiomqtt
import msgspec
from tests.net.servers import client, parts, port, scene, serving
from tests.net.sn.clients import SnClient

REFUSED_3, REFUSED_5, CONGESTION = 0x80, 0x83, 1


@scene
async def test_whoever_subscribes_where_owners_do_not_answer_is_told_by_a_reason_code(tmp_path: Path) -> None:
    outside = {"fabric": "dht", "ring__place": "38.72,-9.14", "peers__connect": ["127.0.0.1:9"], "handoff_wait_s": 0.2}
    async with serving(tmp_path, "a", sn__listen="127.0.0.1:0", **outside) as a:
        ring = parts(a).ring
        assert ring is not None
        ring.options = msgspec.structs.replace(ring.options, covered_s=0.2)
        async with client(a, "old") as old:
            assert [code.value for code in await old.subscribe("air/#", qos=1)] == [REFUSED_3]  # type: ignore[union-attr]
        five = aiomqtt.Client("127.0.0.1", port(a), identifier="new", protocol=aiomqtt.ProtocolVersion.V5, timeout=60)
        async with five as new:
            assert [code.value for code in await new.subscribe("air/#", qos=1)] == [REFUSED_5]  # type: ignore[union-attr]
        sensor = await SnClient.at("127.0.0.1", port(a, "sn"))
        assert await sensor.connect("sensor") == 0
        assert await sensor.subscribe("air/#") == -CONGESTION
        sensor.close()
        assert not any(session.subscriptions for session in parts(a).broker.sessions.values())

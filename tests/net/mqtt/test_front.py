"""What the front tells of a broker that is not well."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest
from tests.net.mqtt.serving import lone_broker

from godwit.net.mqtt.front import Front


def test_a_broker_that_fails_to_publish_says_so() -> None:
    async def scene() -> None:
        broker = lone_broker()
        front = Front(broker)
        front.begin()
        assert front.troubles() == []
        broker.publish = cast(Any, lambda session, offered: 1 / 0)  # type: ignore[method-assign]
        with pytest.raises(ZeroDivisionError):
            front.publish(cast(Any, None), ())
        assert front.troubles() == ["publishing failed: ZeroDivisionError: division by zero"]
        front.end()

    asyncio.run(scene())

"""The log of a broker knows its clients: who came, who was refused or taken over, who may not subscribe, and why."""

from __future__ import annotations

import logging
from pathlib import Path

import aiomqtt
import pytest
from tests.net.servers import port, serving
from tests.net.stations import played, until

from godwit.client.client import connect
from godwit.client.errors import ClientError
from godwit.net.access import hashed


def test_what_happens_to_clients_is_a_line_each(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    users = tmp_path / "users.toml"
    users.write_text(f'[users.ann]\npassword = "{hashed("right")}"\nsubscribe = ["air/#"]\n')

    async def scene() -> None:
        async with serving(tmp_path, "a", access__users=users) as a:
            at = f"127.0.0.1:{port(a)}"
            with pytest.raises(ClientError, match="password"):
                await connect(at, client="van", user="ann", password="guessed-wrong").__aenter__()
            async with connect(at, client="van", user="ann", password="right", taken_over_s=3600) as first:
                with pytest.raises(ClientError):
                    await first.subscribe(topics="water/#")
                async with connect(at, client="van", user="ann", password="right"):
                    await until(lambda: first.taken_over)
            # Clients of 3.1.1 hear only that it is refused.
            old = aiomqtt.Client("127.0.0.1", port(a), identifier="old", username="ann", password="right")
            async with old:
                await old.subscribe("$filter/pm25%20%3E/air/#")

    with caplog.at_level(logging.INFO, "godwit.mqtt"):
        played(scene)
    lines = [record.getMessage() for record in caplog.records]
    for beginning in (
        "refused 'van' from 127.0.0.1: ",
        "connected 'ann/van' from 127.0.0.1, anew, MQTT 5",
        "subscription of 'ann/van' to 'water/#' refused: ",
        "connected 'ann/van' from 127.0.0.1, to its session, MQTT 5",
        "taken over: 'ann/van' from 127.0.0.1: the client has connected again",
        "connected 'ann/old' from 127.0.0.1, anew, MQTT 3.1.1",
        "subscription of 'ann/old' to '$filter/pm25%20%3E/air/#' refused: filter",
    ):
        assert any(line.startswith(beginning) for line in lines), (beginning, lines)
    assert "guessed-wrong" not in caplog.text
    assert [record.client for record in caplog.records if record.getMessage().startswith("taken over")] == ["ann/van"]  # type: ignore[attr-defined]

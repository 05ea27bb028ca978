"""Settings by environment win over the file, and flags win over them."""

from __future__ import annotations

from pathlib import Path

import pytest

from godwit.net.config import ConfigError, load
from godwit.net.ops.journal import Form
from godwit.net.store.sqlite import Sync


def test_variables_set_keys_of_every_kind() -> None:
    config = load(
        None,
        {},
        {
            "GODWIT_NAME": "north",
            "GODWIT_SYNC": "power",
            "GODWIT_HANDOFF_WAIT_S": "2.5",
            "GODWIT_LISTEN__MQTT": "127.0.0.1:1, [::1]:2",
            "GODWIT_PEERS__MDNS": "true",
            "GODWIT_PEERS__LISTEN": "127.0.0.1:7001",
            "GODWIT_BACKLOG__MESSAGES_MAX": "7",
            "GODWIT_LOG__FORMAT": "json",
            "GODWIT_ARCHIVE__FOLDER": "/tmp/archive",
            "GODWIT_FABRIC": "tree",
        },
    )
    assert (config.name, config.sync, config.handoff_wait_s) == ("north", Sync.POWER, 2.5)
    assert config.listen.mqtt == ("127.0.0.1:1", "[::1]:2")
    assert (config.peers.mdns, config.backlog.messages_max, config.log.format) == (True, 7, Form.JSON)
    assert config.archive is not None
    assert config.archive.folder == Path("/tmp/archive")


def test_the_environment_wins_over_the_file_and_flags_over_it(tmp_path: Path) -> None:
    path = tmp_path / "godwit.toml"
    path.write_text('name = "file"\nsync = "power"\nhandoff_wait_s = 1\n')
    config = load(path, {"name": "flag"}, {"GODWIT_NAME": "environment", "GODWIT_SYNC": "process"})
    assert (config.name, config.sync, config.handoff_wait_s) == ("flag", Sync.PROCESS, 1.0)


def test_what_others_put_there_is_left_alone() -> None:
    others = {
        "GODWIT_PASSWORD": "x",
        "GODWIT_PORT": "tcp://10.0.0.1:1883",
        "GODWIT_SERVICE_HOST": "10.0.0.1",
        "HOME": "/",
    }
    assert load(None, {}, others).name == ""


@pytest.mark.parametrize(
    ("variable", "text", "complaint"),
    [
        ("GODWIT_LISTEN__MQTTT", "x", "GODWIT_LISTEN__MQTTT: there is no key 'listen.mqttt'"),
        ("GODWIT_HANDOFF_WAIT_S", "soon", "GODWIT_HANDOFF_WAIT_S: "),
        ("GODWIT_SYNC", "perhaps", "GODWIT_SYNC: Invalid enum value 'perhaps'"),
        ("GODWIT_LISTEN__MQTT", "nowhere:port", "listen.mqtt: address 'nowhere:port'"),
    ],
)
def test_a_setting_that_cannot_be_is_told_by_its_name(variable: str, text: str, complaint: str) -> None:
    with pytest.raises(ConfigError) as raised:
        load(None, {}, {variable: text})
    assert str(raised.value).startswith(complaint)

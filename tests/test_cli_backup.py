"""`godwit backup` and `godwit restore`, as they are typed, with a broker that runs."""

from __future__ import annotations

from pathlib import Path

import mqtt5
from tests.brokers import FREE, Process, running
from tests.net.mqtt.serving import Raw
from typer.testing import CliRunner, Result

from godwit.cli import app


def called(*arguments: object) -> Result:
    return CliRunner().invoke(app, list(map(str, arguments)))


def port(process: Process) -> int:
    return int(process.at("mqtt").rpartition(":")[2])


def test_a_copy_of_a_running_broker_becomes_a_broker_with_what_was_kept(tmp_path: Path) -> None:
    copy = tmp_path / "north.copy"
    process = Process(tmp_path, "north", *FREE)
    with running(process), Raw(port(process)) as client:
        client.connect("keeper")
        client.send(mqtt5.PublishPacket("kept", b"word", retain=True, qos=mqtt5.QoS.AT_LEAST_ONCE, packet_id=1).write())
        assert isinstance(client.packet(), mqtt5.PubAckPacket)
        made = called("backup", tmp_path / "north", copy)
        assert made.exit_code == 0, made.output
        assert f"{copy.stat().st_size:,} bytes" in made.output
        again = called("restore", copy, tmp_path / "north")
        assert again.exit_code == 2
    restored = called("restore", copy, tmp_path / "again" / "north")
    assert restored.exit_code == 0, restored.output
    assert "'north'" in restored.output
    process = Process(tmp_path / "again", "north", *FREE)
    with running(process), Raw(port(process)) as client:
        client.connect("reader")
        client.send(mqtt5.SubscribePacket(1, [mqtt5.TopicFilter("kept")]).write())
        assert isinstance(client.packet(), mqtt5.SubAckPacket)
        heard = client.packet()
        assert isinstance(heard, mqtt5.PublishPacket)
        assert (heard.payload, heard.retain) == (b"word", True)


def test_what_is_no_broker_and_no_copy_is_said_in_one_line(tmp_path: Path) -> None:
    nothing = called("backup", tmp_path / "nothing", tmp_path / "copy")
    assert nothing.exit_code == 2
    (tmp_path / "junk").write_bytes(b"no database")
    junk = called("restore", tmp_path / "junk", tmp_path / "there")
    assert junk.exit_code == 2
    for told in (nothing, junk):
        assert len(told.output.strip().splitlines()) == 1

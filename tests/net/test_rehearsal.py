"""`godwit serve --check` tries what would be needed, and leaves nothing behind."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest

from godwit.net.config import ConfigError, load
from godwit.net.server import ServeError, check


def told(tmp_path: Path, **flags: Any) -> None:
    keys = {key.replace("__", "."): value for key, value in flags.items()}
    check(load(None, {"listen.mqtt": ["127.0.0.1:0"], "data": tmp_path / "data", **keys}, {}))


@pytest.mark.parametrize("key", ["listen.mqtt", "listen.status", "peers.listen"])
def test_a_port_that_is_taken_is_told(tmp_path: Path, key: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        where = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(ServeError, match=f"{key}: {where}: something else listens there already"):
            told(tmp_path, **{key.replace(".", "__"): [where] if key == "listen.mqtt" else where})


def test_an_address_of_another_machine_is_told(tmp_path: Path) -> None:
    with pytest.raises(ServeError, match="this machine has no such address"):
        told(tmp_path, listen__mqtt=["192.0.2.1:1883"])


def test_an_interface_that_is_not_there_is_told(tmp_path: Path) -> None:
    air = {"fabric": ["adhoc"], "adhoc__insecure": True}
    told(tmp_path, **air, adhoc__interfaces=["lo"])
    with pytest.raises(ConfigError, match=r"adhoc.interfaces: 'wlan77' is not here; there are .*lo"):
        told(tmp_path, **air, adhoc__interfaces=["wlan77"])


def test_a_name_that_cannot_be_looked_up_is_told(tmp_path: Path) -> None:
    told(tmp_path, peers__connect=["127.0.0.1:7001"])
    with pytest.raises(ConfigError, match=r"peers.connect: .* the name cannot be resolved"):
        told(tmp_path, peers__connect=[f"{'x' * 64}.invalid:7001"], peers__insecure=True)


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match=r"data: .*cannot write"):
        told(tmp_path, data=tmp_path / "file" / "below")


def test_nothing_is_left_behind(tmp_path: Path) -> None:
    told(tmp_path)
    assert list(tmp_path.iterdir()) == []

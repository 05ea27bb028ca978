"""What docs/serving.md shows is what a broker takes."""

from __future__ import annotations

import re
from pathlib import Path

from tests.pages import blocks, page

from godwit.net.access import Access, hashed
from godwit.net.config import Config, load

BROKER, RING, USERS, *_ = blocks(page("docs/serving.md"), "toml")


def test_the_configuration_can_be_loaded(tmp_path: Path) -> None:
    for name in ("north.pem", "north.key", "fleet-ca.pem", "users.toml"):
        (tmp_path / name).write_text("")
    (tmp_path / "cluster.secret").write_text("something long enough")
    path = tmp_path / "broker.toml"
    path.write_text(BROKER)
    config = load(path, {})
    assert isinstance(config, Config)
    assert config.name == "north"
    assert config.limits.packets_per_s == 1000.0


def test_the_configuration_of_a_broker_of_a_ring_can_be_loaded(tmp_path: Path) -> None:
    path = tmp_path / "broker.toml"
    path.write_text(RING)
    config = load(path, {}, {})
    assert config.fabrics == ("dht",)
    assert config.ring.point() == (-9.14, 38.72)
    assert config.ring.located == ("taxi/#",)


def test_the_users_file_can_be_loaded(tmp_path: Path) -> None:
    path = tmp_path / "users.toml"
    path.write_text(re.sub(r"\$argon2id[^\"]*", hashed("x"), USERS))
    assert Access(path).path == path

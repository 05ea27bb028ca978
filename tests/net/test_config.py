"""What a broker is told: files and flags, defaults that are safe, and errors that say what would be right."""

from __future__ import annotations

from pathlib import Path

import pytest

from godwit.net import config as module
from godwit.net.config import Config, ConfigError, load
from godwit.net.mqtt.options import Options
from godwit.net.store.sqlite import Sync


def loaded(folder: Path, text: str, **flags: object) -> Config:
    path = folder / "godwit.toml"
    path.write_text(text)
    return load(path, flags, {})


def test_with_nothing_said_it_is_a_broker_for_this_machine_only() -> None:
    config = load(None, {}, {"XDG_STATE_HOME": "/state"})
    assert config.listen.mqtt == ("127.0.0.1:1883",)
    assert config.listen.mqtts == config.listen.ws == config.listen.wss == ()
    assert config.data == Path("/state/godwit/broker")
    assert config.access.users is None
    assert config.peers.listen == ""
    assert not config.peers.mdns


def test_each_name_has_a_directory_of_its_own_and_systemd_may_give_another() -> None:
    assert load(None, {"name": "north"}, {"XDG_STATE_HOME": "/state"}).data == Path("/state/godwit/north")
    assert load(None, {"name": "north"}, {"STATE_DIRECTORY": "/var/lib/g"}).data == Path("/var/lib/g")
    assert load(None, {}, {}).data == Path.home() / ".local/state/godwit/broker"


def test_a_file_says_everything_and_flags_win(tmp_path: Path) -> None:
    (tmp_path / "users.toml").touch()
    (tmp_path / "secret").write_text("correct horse battery staple\n")
    text = """
        name = "north"
        data = "store"
        sync = "power"
        handoff_wait_s = 3
        [listen]
        mqtt = ["0.0.0.0:1883", "[::1]:1884"]
        ws = ["127.0.0.1:8080"]
        [peers]
        listen = "0.0.0.0:7883"
        connect = ["south.example"]
        secret_file = "secret"
        [access]
        users = "users.toml"
        [limits]
        packets_per_s = 100
        [archive]
        folder = "/archive"
    """
    config = loaded(
        tmp_path, text, **{"peers.connect": ["west:1", "east:2"], "name": "other", "archive.folder": Path("a")}
    )
    assert config.name == "other"
    assert config.data == tmp_path / "store"
    assert config.sync is Sync.POWER
    assert config.listen.ws == ("127.0.0.1:8080",)
    assert config.peers.connect == ("west:1", "east:2")
    assert config.secret() == b"correct horse battery staple"
    assert config.access.users == tmp_path / "users.toml"
    assert config.limits.packets_per_s == 100
    assert config.archive is not None
    assert config.archive.folder == Path("a")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("name = 'north", r"godwit\.toml: not TOML: "),
        ("nmae = 'north'", r"godwit\.toml: has unknown field `nmae`"),
        ("[listen]\nmqtt = '127.0.0.1:1883'", r"godwit\.toml: listen\.mqtt: Expected `array`, got `str`"),
        ("[listen]\nmqtt = []", r"listen: nowhere for clients to connect; right would be mqtt = "),
        ("[listen]\nmqtt = ['localhost:http']", r"listen\.mqtt: address 'localhost:http': .*right would be host:port"),
        ("[listen]\nmqtt = ['mqtt://localhost:1']", r"listen\.mqtt: .*right would be localhost:1, without a scheme"),
        ("[listen]\nmqtts = ['localhost']", r"listen\.mqtts and listen\.wss need a table \[tls\]"),
        ("[tls]\nkey = 'k'", r"tls: lacks required field `certificate`"),
        ("[tls]\ncertificate = 'none.pem'\nkey = 'k'", r"tls\.certificate: .*none\.pem: No such file or directory"),
        ("[access]\nusers = 'none.toml'", r"access\.users: .*none\.toml: No such file or directory"),
        ("[access]\nusers = 7", r"access\.users: expected the path of a file or directory, got 7"),
        ("handoff_wait_s = -1", r"handoff_wait_s: Expected `float` >= 0"),
        ("handoff_wait_s = nan", r"handoff_wait_s: Expected `float` >= 0"),
        ("sync = 'never'", r"sync: 'never'; right would be process or power"),
        ("handoff = 'magic'", r"handoff: 'magic'; right would be durable, reactive or proactive"),
        ("[balance]\nredirect = 'on'", r"balance\.redirect: 'on'; right would be off or balance"),
        ("[copies]\nmass = 1.5", r"copies\.mass: Expected `float` <= 1"),
        ("[copies]\nneighbors = 'none.csv'", r"copies\.neighbors: .*none\.csv: No such file or directory"),
        ("[copies]\nplaces = 'none.csv'", r"copies\.places: .*none\.csv: No such file or directory"),
        ("[copies]\nnear_m = 0", r"copies\.near_m"),
        ("[listen]\nadvertise_ws = 'north:80'", r"listen\.advertise_ws: 'north:80'; right would be ws://"),
        ("[listen]\nadvertise_wss = 'ws://north/mqtt'", r"listen\.advertise_wss: .*right would be wss://"),
        ("[backlog]\nage_max_s = 0", r"backlog\.age_max_s: Expected `float` > 0"),
        ("[listen]\nadvertise = 'a:b'", r"listen\.advertise: address 'a:b'"),
        ("name = 'a/b'", r"name: 'a/b'; right would be 1 to 255 letters, digits, dots or dashes"),
        ("name = ' a'", r"name: ' a'; right would be"),
        (
            "[peers]\nlisten = '0.0.0.0:1'",
            r"peers\.listen: 0\.0\.0\.0:1 is not on this machine alone, .* or say peers\.insecure",
        ),
        (
            "[peers]\nconnect = ['far.example:1']",
            r"peers\.connect: far\.example:1 is not on this machine alone, .* or say peers\.insecure",
        ),
        ("[peers]\nlisten = '127.0.0.1:1'\nsecret = 'short'", r"peers\.secret: 5 bytes; right would be 8 or more"),
        ("[peers]\nconnect = ['a:b:c']", r"peers\.connect: address 'a:b:c'"),
        ("[peers]\nmdns = true", r"peers\.mdns needs peers\.listen"),
        ("[peers]\nidle_s = 1", r"peers\.idle_s: 1; right would be several times heartbeat_s"),
        ("[limits]\ninflight_max = 0", r"limits\.inflight_max: Expected `int` >= 1"),
        (
            "[limits]\npacket_bytes_max = 9_000_000",
            r"limits\.output_bytes_max: 8388608; right would be packet_bytes_max, 9000000, or more",
        ),
    ],
)
def test_what_cannot_be_is_named_with_file_and_key(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint) as caught:
        loaded(tmp_path, text)
    assert str(tmp_path / "godwit.toml") in str(caught.value)


def test_both_kinds_of_secret_are_one_too_many(tmp_path: Path) -> None:
    (tmp_path / "s").write_text("long enough")
    with pytest.raises(ConfigError, match="both given"):
        loaded(tmp_path, "[peers]\nsecret = 'also long enough'\nsecret_file = 's'")
    (tmp_path / "s").write_text("\n")
    with pytest.raises(ConfigError, match=r"peers\.secret: 0 bytes"):
        loaded(tmp_path, "[peers]\nsecret_file = 's'")


def test_brokers_of_one_machine_need_no_secret(tmp_path: Path) -> None:
    for host in ("127.0.0.1", "[::1]", "localhost"):
        assert load(None, {"peers.listen": f"{host}:7001"}, {}).peers.listen


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.toml: No such file or directory"):
        load(tmp_path / "none.toml", {}, {})
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match=r"binary\.toml: not a text file"):
        load(tmp_path / "binary.toml", {}, {})


def test_a_wrong_flag_is_named_by_its_key() -> None:
    with pytest.raises(ConfigError, match=r"^sync: 'x'; right would be process or power"):
        load(None, {"sync": "x"}, {})


def test_sessions_follow_their_clients_unless_told_otherwise() -> None:
    assert load(None, {}, {}).handoff == "proactive"
    assert load(None, {"handoff": "durable"}, {}).handoff == "durable"


def test_every_limit_is_one_that_the_front_has() -> None:
    limits = module.ConnectionLimits()
    assert set(limits.__struct_fields__) <= set(Options.__struct_fields__)
    defaults = Options()
    assert all(getattr(limits, name) == getattr(defaults, name) for name in limits.__struct_fields__)


def test_the_status_names_clients_so_it_is_for_this_machine_unless_said_otherwise() -> None:
    assert load(None, {"listen.status": "127.0.0.1:9883"}, {}).listen.status
    with pytest.raises(ConfigError, match=r"listen\.status: 0\.0\.0\.0:9883 can be reached.*status_public = true"):
        load(None, {"listen.status": "0.0.0.0:9883"}, {})
    assert load(None, {"listen.status": "0.0.0.0:9883", "listen.status_public": True}, {}).listen.status_public


def sites(**more: str) -> str:
    keys = {"site": '"plant"', "listen": '"127.0.0.1:0"', **more}
    return 'name = "one"\n[sites]\n' + "".join(f"{key} = {value}\n" for key, value in keys.items() if value)


def test_a_gateway_names_its_site_and_whom_it_has_uplinks_to(tmp_path: Path) -> None:
    text = sites(gateways='["one", "two"]') + (
        '[sites.uplinks.hq]\nconnect = ["hq.example"]\nbytes_per_s = 32000\n'
        '[sites.bridges.old]\nconnect = "mqtt://old.example"\nsend = [{ topics = "a/#", prefix = "b/" }]\n'
    )
    told = loaded(tmp_path, text).sites
    assert (told.site, told.gateways) == ("plant", ("one", "two"))
    assert told.uplinks["hq"].bytes_per_s == 32_000
    assert told.bridges["old"].send[0].prefix == "b/"


BRIDGE = "[sites.bridges.old]\n"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (sites(site=""), "sites.site: none is named"),
        (sites(site='"a/b"'), "sites: 'a/b'; the name of a site"),
        (sites(gateways='["two"]'), "sites.gateways: 'one' is not among them"),
        (sites() + "[sites.uplinks.plant]\n", "that is this site itself: a cycle plant - plant"),
        (
            sites(graph='[["plant", "hq"], ["hq", "ship"], ["ship", "plant"]]') + "[sites.uplinks.hq]\n",
            "sites.graph: a cycle, ship - hq - plant - ship; leave out one of these uplinks",
        ),
        (sites(graph='[["hq", "ship"]]') + "[sites.uplinks.hq]\n", "the graph has no uplink between plant and hq"),
        (sites(listen="") + "[sites.uplinks.hq]\n", "sites.uplinks.hq: nobody dials"),
        (sites(listen='"0.0.0.0:7884"'), "sites.listen: 0.0.0.0:7884 can be reached from other machines"),
        (sites(secret='"short"'), "sites.secret: 5 bytes"),
        (sites() + "[sites.uplinks.hq]\nconnect = ['hq.example:x']\n", "sites.uplinks.hq.connect: "),
        (sites() + "[sites.uplinks.hq]\nspeed = 3\n", "unknown field `speed`"),
        (sites() + 'fabric = "adhoc"\n', "unknown field `fabric`"),
        ('fabric = "adhoc"\nadhoc.insecure = true\n' + sites(), "sites: a gateway must be in a tree or a ring"),
        (BRIDGE + 'connect = "old.example"\n', "right would be mqtt://broker.example:1883"),
        (BRIDGE + 'connect = "mqtt://x"\n', "sites.bridges.old: nothing crosses"),
        (BRIDGE + 'connect = "mqtt://x"\nsend = [{ topics = "a/#b" }]\n', "sites.bridges.old.send[0].topics: 'a/#b'"),
        (
            BRIDGE + 'connect = "mqtt://x"\nsend = [{ topics = "a", strip = "b" }]\n',
            "sites.bridges.old.send[0].strip: 'b'; 'a' does not begin with it",
        ),
        (
            BRIDGE + 'connect = "mqtt://x"\nreceive = [{ topics = "a", condition = "c >" }]\n',
            "sites.bridges.old.receive[0].condition: ",
        ),
        (
            BRIDGE + 'connect = "mqtt://x"\nversion = 3\nsend = [{ topics = "a/#" }]\nreceive = [{ topics = "+/b" }]\n',
            "what is sent to 'a/#' would come back by '+/b'",
        ),
    ],
)
def test_a_mistake_in_sites_is_told_with_what_would_be_right(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(ConfigError) as error:
        loaded(tmp_path, text)
    assert complaint in str(error.value)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('[ring]\nlocate = ["taxi/#"]', "ring: has unknown field `locate`; right would be ring.located"),
        ('place = "1,2"', "has unknown field `place`; right would be ring.place"),
        ("[listn]\nmqtt = []", "has unknown field `listn`; right would be listen"),
        ("connect = []", "has unknown field `connect`; right would be peers.connect"),
        ("[zebra]\nstripes = 1", "has unknown field `zebra`"),
    ],
)
def test_a_key_that_there_is_not_is_told_beside_the_one_that_was_meant(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(ConfigError) as raised:
        loaded(tmp_path, text)
    assert str(raised.value).endswith(told)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('fabric = "dht"', "a broker of a ring stands somewhere"),
        ('fabric = "dht"\nring.place = "Lisbon"', "is no latitude and longitude"),
        ('fabric = "dht"\nring.place = "95,10"', "is no latitude and longitude"),
        ('fabric = ["dht", "tree"]\nring.place = "1,2"', '"dht" stands alone, without "tree"'),
        ('fabric = ["dht", "adhoc"]\nring.place = "1,2"', '"dht" stands alone, without "adhoc"'),
        ('ring.place = "1,2"', 'ring.place: only brokers of a ring have one; right would be fabric = "dht"'),
        ('fabric = "tree"\nring.located = ["taxi/#"]', "ring.located: only brokers of a ring"),
        ("ring.found = true", "ring.found: only brokers of a ring"),
        ('fabric = "dht"\nring.place = "1,2"\nring.located = ["a/#/b"]', "ring.located"),
    ],
)
def test_a_broker_of_a_ring_must_say_where_it_stands(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        loaded(tmp_path, text)


def test_a_place_is_given_as_latitude_and_longitude(tmp_path: Path) -> None:
    config = loaded(tmp_path, 'fabric = "dht"', **{"ring.place": "38.72,-9.14", "ring.located": ["taxi/#"]})
    assert config.ring.point() == (-9.14, 38.72)
    assert config.ring.located == ("taxi/#",)
    assert not config.ring.found
    assert loaded(tmp_path, 'fabric = "dht"\nring.found = true', **{"ring.place": "38.72,-9.14"}).ring.found

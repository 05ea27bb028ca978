"""What a broker is told: one TOML file, and flags that win over it. Everything is checked before anything starts.

    name = "north"                        # made up once and kept, where there is none
    data = "/var/lib/godwit/north"

    [listen]
    mqtt = ["127.0.0.1:1883"]
    mqtts = ["0.0.0.0:8883"]

    [tls]
    certificate = "north.pem"
    key = "north.key"

    [peers]
    listen = "0.0.0.0:7883"
    connect = ["south.example:7883"]      # one is enough: it tells of the others
    secret_file = "cluster.secret"

Relative paths in the file start from the file's directory.
"""

from __future__ import annotations

import ipaddress
import os
import tomllib
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from enum import StrEnum
from math import inf, nan
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, get_args, get_type_hints
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta

from godwit.filters.areas import is_place
from godwit.filters.errors import FilterError
from godwit.net.address import Address, AddressError, is_loopback
from godwit.net.environment import SettingError, settings_of
from godwit.net.ops.journal import Form, Level
from godwit.net.peers.dialler import PORT as PEERS_PORT
from godwit.net.peers.handshake import NAME_MAX
from godwit.net.store.sqlite import Sync
from godwit.protocols.broker.api import Capacity
from godwit.protocols.broker.handoff.copies import COPIES_BYTES_MAX, Handoff
from godwit.protocols.broker.handoff.prediction import HABITS
from godwit.protocols.broker.topics import meaning, problem_of_filter, problem_of_name
from godwit.protocols.neighbors.nearness import NEAR_M

STATUS_ANY, STATUS_DEFAULT = "any", "127.0.0.1:9883"
HTTP_DEFAULT = "127.0.0.1:9885"

Positive = Annotated[float, Meta(gt=0)]
NotNegative = Annotated[float, Meta(ge=0)]
Share = Annotated[float, Meta(ge=0, le=1)]
Count = Annotated[int, Meta(ge=1)]
SECRET_B_MIN = 8
AIR_NAME_B_MAX = 64
AIR_KEY_B_MIN = 16
"""Whoever records frames can try keys at home, as many as it likes."""


class ConfigError(ValueError):
    """Something that cannot be: the text names the file or flag, the key and what would be right."""


class Strict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table in which every key means something."""


class Listen(Strict, frozen=True):
    """Where clients and operators knock; `host:port` each."""

    mqtt: tuple[str, ...] = ("127.0.0.1:1883",)
    mqtts: tuple[str, ...] = ()
    ws: tuple[str, ...] = ()
    wss: tuple[str, ...] = ()
    status: str = STATUS_ANY
    """Metrics, health and status over HTTP; empty: none. Where nothing is said, at 127.0.0.1:9883, or at another
    port where that is taken."""
    status_public: bool = False
    """The status may be asked from other machines: it names clients and neighbors to whoever asks."""
    http: str = STATUS_ANY
    """For those who log in: what operators see and do, over HTTP; over HTTPS with [tls], but for loopback. Empty:
    nowhere. Where nothing is said, at 127.0.0.1:9885, or at another port where that is taken."""
    console: str = ""
    """A web page for this broker and those that it has heard of; empty: none. It needs the extra `console`."""
    advertise_http: str = ""
    """Where operators reach that, as a URL, if that is not where it listens."""
    advertise: str = ""
    """Where clients reach this broker over `mqtt`, if that is not where it listens: other brokers send them there."""
    advertise_tls: str = ""
    """The same for `mqtts`."""
    advertise_ws: str = ""
    """The same for `ws`, as a URL."""
    advertise_wss: str = ""
    """The same for `wss`, as a URL."""
    origins: tuple[str, ...] = ()
    """Web pages that may connect, as `https://fleet.example`, beside those of the broker's own address; `*`: all."""


class Tls(Strict, frozen=True):
    """For clients: what the broker shows, and whose certificates it takes from them."""

    certificate: Path
    key: Path
    client_authority: Path | None = None
    """Certificates of clients are asked for, and must be signed by this one."""
    client_required: bool = False
    authority: Path | None = None
    """Who has signed brokers' certificates, where machines do not know it: a console beside this broker asks others."""


class PeersTls(Strict, frozen=True):
    """Between brokers both sides show a certificate of one authority."""

    certificate: Path
    key: Path
    authority: Path
    names: tuple[str, ...] = ()
    """What brokers' certificates are called, as `*.brokers.example`; without it any certificate of the authority is a
    broker's that may be a server's."""


class Peers(Strict, frozen=True):
    listen: str = ""
    advertise: str = ""
    """Where others can dial this broker, if that is not where it listens."""
    connect: tuple[str, ...] = ()
    mdns: bool = False
    cluster: str = "godwit"
    secret: str = ""
    secret_file: Path | None = None
    tls: PeersTls | None = None
    insecure: bool = False
    """Links to other machines though there is neither a secret nor TLS: whoever reaches the wire reads and says
    everything."""
    heartbeat_s: Positive = 2.0
    idle_s: Positive = 7.0
    queue_bytes_max: Count = 64 * 1024 * 1024


class AccessFile(Strict, frozen=True):
    users: Path | None = None
    """See `godwit.net.access`. Without it, anybody on this machine may do anything and nobody else may connect."""
    remember: bool = True
    """Passwords that were right are recognised by a quicker keyed hash, also after a restart."""


class ConnectionLimits(Strict, frozen=True):
    """What one connection may cost; the fields are those of `godwit.net.mqtt.options`."""

    packet_bytes_max: Annotated[int, Meta(ge=1_024, le=268_435_460)] = 1024 * 1024
    inflight_max: Annotated[int, Meta(ge=1, le=65_535)] = 1_024
    topic_alias_max: Annotated[int, Meta(ge=0, le=65_535)] = 64
    keep_alive_max_s: Annotated[int, Meta(ge=1, le=65_535)] = 65_535
    session_expiry_max_s: NotNegative = inf
    client_id_bytes_max: Annotated[int, Meta(ge=23, le=65_535)] = 512
    connect_wait_s: Positive = 10.0
    filters_per_packet_max: Annotated[int, Meta(ge=1, le=65_535)] = 256
    packets_per_s: Positive = inf
    bytes_per_s: Positive = inf
    output_bytes_max: Count = 8 * 1024 * 1024


class Backlog(Strict, frozen=True):
    """What may wait for one client that is away or slow; what is beyond is dropped, the oldest first, counted and
    told."""

    messages_max: Count = 100_000
    bytes_max: Count = 64 * 1024 * 1024
    memory_bytes_max: Annotated[int, Meta(ge=0)] = 1024 * 1024
    """What of that is in memory; the rest is on the disk only, until its turn comes."""
    age_max_s: Positive = 7 * 24 * 3600.0


class CapacityTable(Strict, frozen=True):
    """What all clients together may cost; new ones beyond it are refused, counted and told why."""

    sessions_max: Count = Capacity().sessions_max
    retained_max: Annotated[int, Meta(ge=0)] = Capacity().retained_max
    retained_bytes_max: Annotated[int, Meta(ge=0)] = Capacity().retained_bytes_max


class Copies(Strict, frozen=True):
    """Pro-active handoff: who gets copies of sessions that rest here, and what this broker holds for others."""

    bytes_max: Annotated[int, Meta(ge=0)] = COPIES_BYTES_MAX
    """What all copies of other brokers' sessions may take here."""
    foresight: bool = HABITS.foresight
    """A client's next broker is forecast by where it came from and by nearness; else by use alone."""
    mass: Annotated[float, Meta(gt=0, le=1)] = HABITS.mass
    """Copies go to the likeliest brokers that this share of clients goes on to."""
    neighbors_max: Count = HABITS.degree_max
    """Though never to more than so many."""
    edge_timeout_s: Positive = HABITS.edge_timeout_s
    """A neighbor that nobody went to, or came from, for so long is forgotten."""
    half_life_s: Positive = HABITS.half_life_s
    """After so long a move counts half."""
    neighbors: Path | None = None
    """What to begin with while nothing has been learned: see `godwit neighbors`."""
    places: Path | None = None
    """Where brokers stand, with foresight: broker, lat and lon. Without it nobody is near."""
    near_m: Positive = NEAR_M
    """Over which nearness falls to a third; about half the way from a broker to the next is right."""


class Redirect(StrEnum):
    OFF = "off"
    BALANCE = "balance"


class Balance(Strict, frozen=True):
    """Which broker a client is told to use."""

    redirect: Redirect = Redirect.OFF
    """With `balance`, clients that are new here are sent to brokers that have less to do."""
    clients_max: Annotated[int, Meta(ge=0)] = 0
    """So many clients may be connected; 0: any number. Those whose session is here come in all the same."""
    drain_s: NotNegative = 0.0
    """How long a broker that stops may take to send its clients elsewhere first."""


class Archive(Strict, frozen=True):
    folder: Path
    events: bool = True
    traces: bool = False
    file_bytes: Count = 64 * 1024 * 1024
    file_s: Positive = 3600.0
    batch_s: Positive = 0.25
    """How often what was published is written, and so how soon those who follow the archive see it."""
    listen: str = ""
    """Where others may follow the archive, by HTTP."""
    replay_per_s: Positive = 2_000.0
    """Rows a second for all clients together that subscribe with `since`."""


class Telemetry(Strict, frozen=True):
    """Traces of publications across brokers, for a collector of OpenTelemetry."""

    endpoint: str = ""
    """Where spans are sent, OTLP over HTTP: `http://127.0.0.1:4318/v1/traces`. Nothing is recorded without it."""
    ratio: Share = 0.01
    """Which share of the publications is told; all brokers choose the same ones, if they have the same ratio."""


class Log(Strict, frozen=True):
    """What is written to stderr."""

    format: Form = Form.TEXT
    level: Level = Level.INFO


class Fabric(StrEnum):
    """What carries events from broker to broker (docs/broker.md, docs/adhoc.md, docs/ring.md)."""

    TREE = "tree"
    ADHOC = "adhoc"
    DHT = "dht"


class Adhoc(Strict, frozen=True):
    """Without infrastructure: one hop of UDP broadcast or multicast, and everything else from there (docs/adhoc.md)."""

    interfaces: tuple[str, ...] = ()
    """By name, as `wlan0`; together they are the radio. None: whichever the machine would take for the group."""
    group: str = "239.255.71.68"
    """A multicast group, or a broadcast address as 255.255.255.255."""
    port: Annotated[int, Meta(ge=1, le=65_535)] = 7_885
    key: str = ""
    key_file: Path | None = None
    insecure: bool = False
    """Without a key anybody in range can forge and repeat what is said: for experiments only."""
    beacon_s: Annotated[float, Meta(ge=0.05, le=360)] = 2.0
    credits: Annotated[int, Meta(ge=0, le=255)] = 2
    """How many hops an event may go though nobody there knows who wants it."""
    carry_s: Positive = 600.0
    """How long events are kept for nodes that may still be met."""
    carry_events: Count = 4_096
    carry_bytes: Count = 4 * 1024 * 1024
    event_bytes_max: Annotated[int, Meta(ge=256, le=256 * 1024)] = 64 * 1024
    """A larger publication is refused."""
    frame_bytes_max: Annotated[int, Meta(ge=512, le=65_000)] = 1_400
    """What fits into one frame of the radio, without the headers of IP and UDP."""
    bytes_per_s: Annotated[float, Meta(ge=2_000)] = 125_000.0
    """What this node may put on the air."""


class UplinkTable(Strict, frozen=True):
    """To one other site (docs/sites.md)."""

    connect: tuple[str, ...] = ()
    """Where its gateways listen; empty where they dial this one."""
    queue_bytes_max: Count = 256 * 1024 * 1024
    """What may wait for it while it is away; beyond it the oldest is dropped and counted."""
    queue_age_max_s: Positive = 7 * 24 * 3600.0
    bytes_per_s: Positive = inf
    """What this broker may send there."""
    compress: bool = True
    """With zstd, where the other side can."""


class BridgeRoute(Strict, frozen=True):
    """What crosses to another MQTT broker, or from it, and under which topics."""

    topics: str
    """A topic filter where it comes from."""
    condition: str = ""
    """A filter on the content, applied on this side."""
    prefix: str = ""
    """Put before topics where it goes to."""
    strip: str = ""
    """Taken from the front of topics first."""


class BridgeTable(Strict, frozen=True):
    """Any MQTT broker as an uplink."""

    connect: str
    version: Literal[3, 5] = 5
    """3 is MQTT 3.1.1."""
    client_id: str = ""
    user: str = ""
    password_file: Path | None = None
    authority: Path | None = None
    """With TLS, which `mqtts://` asks for: whose certificate the other must show; the machine's list unless told."""
    send: tuple[BridgeRoute, ...] = ()
    receive: tuple[BridgeRoute, ...] = ()
    keep_alive_s: Annotated[int, Meta(ge=5, le=65_535)] = 30
    inflight_max: Annotated[int, Meta(ge=1, le=1_000)] = 20


class Sites(Strict, frozen=True):
    """This broker is a gateway of its site."""

    site: str = ""
    """The name of the site, the same at all its gateways."""
    gateways: tuple[str, ...] = ()
    """All gateways of the site by name, the one that acts first; none where there is but this one."""
    listen: str = ""
    """Where gateways of other sites may connect."""
    secret: str = ""
    secret_file: Path | None = None
    tls: PeersTls | None = None
    takeover_s: Positive = 10.0
    """How long a gateway waits before it acts in place of one that is away."""
    heartbeat_s: Positive = 5.0
    idle_s: Positive = 30.0
    graph: tuple[tuple[str, str], ...] = ()
    """All uplinks between all sites, as pairs; it may be left out, and is checked where it is not."""
    uplinks: dict[str, UplinkTable] = {}
    """By site."""
    bridges: dict[str, BridgeTable] = {}
    """By a name of your own."""

    def key(self) -> bytes:
        """What all gateways know."""
        return self.secret_file.read_bytes().strip() if self.secret_file is not None else self.secret.encode()


class Sn(Strict, frozen=True):
    """Sensors that speak MQTT-SN over UDP (docs/sensors.md)."""

    listen: str = ""
    """`host:port`; empty: nowhere."""
    topics: dict[str, str] = {}
    """Topics that all clients know by number, as `1 = "air/temperature"`."""
    expiry_s: NotNegative = 86_400.0
    """How long the session of a client that did not ask for a clean one is kept while it is away."""
    profiles: dict[str, NotNegative] = {}
    """The same for clients whose identifiers begin so, as `"sink-" = 604800`."""
    retry_s: Positive = 10.0
    """How long a client may take to acknowledge something before it is said again."""


class Ring(Strict, frozen=True):
    """Each broker owns a part of the globe, and matches what is published for it (docs/ring.md)."""

    place: str = ""
    """Latitude and longitude of this broker in degrees, as "38.72,-9.14"; no two brokers stand at one place."""
    located: tuple[str, ...] = ()
    """Topic filters whose publications are matched where they happened, by their `lat` and `lon`; the same at all
    brokers of a ring."""
    found: bool = False
    """Begin a ring, though other brokers are configured: for the first start of the first one. Take it away after that,
    lest a lost disk begin a second ring. Who has no others configured begins one anyhow."""

    def point(self) -> tuple[float, float]:
        """Longitude, then latitude; `ConfigError` where `place` is none."""
        lat, _, lon = self.place.partition(",")
        try:
            found = float(lat), float(lon)
        except ValueError:
            found = (nan, nan)
        if not is_place(*found):
            raise ConfigError(f"ring.place: {self.place!r} is no latitude and longitude; right would be 38.72,-9.14")
        return found[1], found[0]


class Config(Strict, frozen=True):
    name: str = ""
    data: Path | None = None
    """Where the broker remembers; a directory of the user's own where nothing is said."""
    sync: Sync = Sync.PROCESS
    handoff: Handoff = "proactive"
    """How sessions follow their clients (docs/roaming.md): `durable`, each broker keeps its own; `reactive`, fetched
    when the client appears; `proactive`, with copies where it is likely to."""
    handoff_wait_s: NotNegative = 10.0
    """How long a client waits for its session from a broker that does not answer, before it gets a new one."""
    listen: Listen = Listen()
    tls: Tls | None = None
    peers: Peers = Peers()
    access: AccessFile = AccessFile()
    limits: ConnectionLimits = ConnectionLimits()
    backlog: Backlog = Backlog()
    capacity: CapacityTable = CapacityTable()
    copies: Copies = Copies()
    balance: Balance = Balance()
    archive: Archive | None = None
    fabric: Fabric | tuple[Fabric, ...] = Fabric.TREE
    """Both: this broker is a bridge between them."""
    adhoc: Adhoc = Adhoc()
    sites: Sites = Sites()
    ring: Ring = Ring()
    sn: Sn = Sn()
    log: Log = Log()
    telemetry: Telemetry = Telemetry()

    @property
    def fabrics(self) -> tuple[Fabric, ...]:
        return (self.fabric,) if isinstance(self.fabric, Fabric) else self.fabric

    @property
    def folder(self) -> Path:
        """`data`, which `load` has filled in."""
        assert self.data is not None
        return self.data

    def secret(self) -> bytes:
        """The cluster's secret; it is checked, so it can be read."""
        if self.peers.secret_file is not None:
            return self.peers.secret_file.read_bytes().strip()
        return self.peers.secret.encode()

    def air_key(self) -> bytes:
        """What all nodes of the air know; empty where anybody may speak."""
        return self.adhoc.key_file.read_bytes().strip() if self.adhoc.key_file is not None else self.adhoc.key.encode()


def load(path: Path | None, flags: Mapping[str, Any], environment: Mapping[str, str] = os.environ) -> Config:
    """Read, let the environment win over the file and flags over both, and check. Flags are named like keys, with dots:
    `{"peers.listen": "0.0.0.0:7883"}`."""
    raw = _read(path) if path is not None else {}
    where = f"{path}: " if path is not None else ""
    config = _converted(raw, where)
    if path is not None:
        config = _rooted(config, path.absolute().parent)
    try:
        config = _with_flags(config, settings_of(environment, Config, _decoded))
    except SettingError as error:
        raise ConfigError(str(error)) from None
    config = _with_flags(config, flags)
    try:
        config = _resolved(config, environment)
        _check(config)
    except ConfigError as error:
        raise ConfigError(f"{where}{error}") from None
    return config


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text())
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: not a text file") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: not TOML: {error}") from None


def _converted(raw: Mapping[str, Any], where: str) -> Config:
    try:
        return msgspec.convert(raw, Config, dec_hook=_decoded)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{where}{_readable(str(error))}") from None


def _decoded(kind: type, value: Any) -> Any:
    if kind is Path and isinstance(value, str) and value:
        return Path(value)
    raise ConfigError(f"expected the path of a file or directory, got {value!r}")


def _readable(complaint: str) -> str:
    """What msgspec says, with the key in front instead of behind."""
    said, _, where = complaint.partition(" - at `$")
    said = said.replace("Object contains", "has").replace("Object missing", "lacks")
    key = where.rstrip("`").lstrip(".")
    if choices := _choices(key) if said.startswith("Invalid enum value") else "":
        said = f"{said.removeprefix('Invalid enum value ')}; right would be {choices}"
    if said.startswith("has unknown field") and (meant := _meant(key, said.split("`")[1])):
        said = f"{said}; right would be {meant}"
    return f"{key}: {said}" if key else said


def _meant(key: str, name: str) -> str:
    """The key that somebody may have meant: one of this name in another table, or one of this table that is written
    alike."""
    tables = {one.name: _table(one.type) for one in msgspec.structs.fields(Config)}
    here = Config if not key else tables.get(key)
    keys = here.__struct_fields__ if here is not None else ()
    alike = [".".join(filter(None, (key, one))) for one in get_close_matches(name, keys, 1)]
    elsewhere = [f"{one}.{name}" for one, kind in tables.items() if kind is not None and name in kind.__struct_fields__]
    return " or ".join(elsewhere[:3] or alike)


def _table(kind: Any) -> type[msgspec.Struct] | None:
    kinds = get_args(kind) if isinstance(kind, UnionType) else (kind,)
    return next((one for one in kinds if isinstance(one, type) and issubclass(one, msgspec.Struct)), None)


def _choices(key: str) -> str:
    """What may stand under a key that takes one of a few words."""
    kind: Any = Config
    for name in key.partition("[")[0].split("."):
        kind = get_type_hints(kind)[name]
    kinds = get_args(kind) if isinstance(kind, UnionType) else (kind,)
    enums = [one for one in kinds if isinstance(one, type) and issubclass(one, StrEnum)]
    words = [str(word) for word in (enums[0] if enums else get_args(kind))]
    return ", ".join(words[:-1]) + f" or {words[-1]}" if words else ""


def _rooted(config: Any, folder: Path) -> Any:
    """Paths of a file start from its directory."""
    changed: dict[str, Any] = {}
    for name in config.__struct_fields__:
        value = getattr(config, name)
        if isinstance(value, Path):
            changed[name] = folder / value.expanduser()
        elif isinstance(value, msgspec.Struct):
            changed[name] = _rooted(value, folder)
        elif isinstance(value, dict):
            changed[name] = {
                key: _rooted(one, folder) if isinstance(one, msgspec.Struct) else one for key, one in value.items()
            }
    return msgspec.structs.replace(config, **changed)


def _with_flags(config: Config, flags: Mapping[str, Any]) -> Config:
    """The configuration with these keys changed, checked like those of the file."""
    raw = msgspec.to_builtins(config, enc_hook=str)
    for key, value in flags.items():
        *tables, name = key.split(".")
        inner = raw
        for table in tables:
            inner[table] = inner.get(table) or {}
            inner = inner[table]
        inner[name] = str(value) if isinstance(value, Path) else value
    return _converted(raw, "")


def _resolved(config: Config, environment: Mapping[str, str]) -> Config:
    """Fill in what depends on the machine."""
    if config.data is not None:
        return config
    state = environment.get("STATE_DIRECTORY", "").partition(":")[0]
    if state:
        return msgspec.structs.replace(config, data=Path(state))
    base = environment.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    return msgspec.structs.replace(config, data=Path(base) / "godwit" / (config.name or "broker"))


def _check(config: Config) -> None:
    _check_name(config.name)
    listen = config.listen
    for key in ("mqtt", "mqtts", "ws", "wss"):
        for text in getattr(listen, key):
            address(text, f"listen.{key}")
    if not (listen.mqtt or listen.mqtts or listen.ws or listen.wss):
        raise ConfigError('listen: nowhere for clients to connect; right would be mqtt = ["127.0.0.1:1883"]')
    for key in ("status", "http", "console", "advertise", "advertise_tls"):
        if (text := getattr(listen, key)) and text != STATUS_ANY:
            address(text, f"listen.{key}")
    told = listen.status if listen.status != STATUS_ANY else ""
    if told and not listen.status_public and not is_loopback(address(told, "listen.status").host):
        raise ConfigError(
            f"listen.status: {listen.status} can be reached from other machines, and names clients to whoever asks;"
            " right would be 127.0.0.1, or status_public = true beside it"
        )
    for scheme in ("ws", "wss"):
        _check_url(f"listen.advertise_{scheme}", getattr(listen, f"advertise_{scheme}"), scheme)
    if listen.advertise_http and not listen.advertise_http.startswith(("http://", "https://")):
        raise ConfigError(
            f"listen.advertise_http: {listen.advertise_http!r}; right would be https://north.example:9885"
        )
    if config.limits.packet_bytes_max > config.limits.output_bytes_max:
        raise ConfigError(
            f"limits.output_bytes_max: {config.limits.output_bytes_max}; right would be packet_bytes_max,"
            f" {config.limits.packet_bytes_max}, or more: what may wait for a client must hold one packet"
        )
    if config.archive is not None and config.archive.listen:
        address(config.archive.listen, "archive.listen")
    if config.telemetry.endpoint and not config.telemetry.endpoint.startswith(("http://", "https://")):
        raise ConfigError(
            f"telemetry.endpoint: {config.telemetry.endpoint!r}; right would be http://127.0.0.1:4318/v1/traces"
        )
    if config.tls is None and (listen.mqtts or listen.wss):
        raise ConfigError("listen.mqtts and listen.wss need a table [tls] with `certificate` and `key`")
    if config.tls is not None:
        _check_files("tls", config.tls, ("certificate", "key", "client_authority", "authority"))
        if config.tls.client_required and config.tls.client_authority is None:
            raise ConfigError("tls.client_required needs tls.client_authority, whose certificates are taken")
    if config.access.users is not None:
        _check_file("access.users", config.access.users)
    if config.copies.neighbors is not None:
        _check_file("copies.neighbors", config.copies.neighbors)
    if config.copies.places is not None and not config.copies.places.is_dir():
        _check_file("copies.places", config.copies.places)
    _check_peers(config.peers)
    if not config.fabrics:
        raise ConfigError('fabric: none is named; right would be "tree", "dht" or "adhoc", or "tree" with "adhoc"')
    if Fabric.DHT in config.fabrics:
        _check_ring(config)
    elif config.ring != Ring():
        said = next(name for name in Ring.__struct_fields__ if getattr(config.ring, name) != getattr(Ring(), name))
        raise ConfigError(f'ring.{said}: only brokers of a ring have one; right would be fabric = "dht" (--fabric dht)')
    if Fabric.ADHOC in config.fabrics:
        _check_adhoc(config)
    _check_sites(config)
    _check_sn(config.sn)


SN_PORT = 10_000


def _check_sn(sn: Sn) -> None:
    if sn.listen:
        address(sn.listen, "sn.listen", SN_PORT)
    for number, topic in sn.topics.items():
        if not number.isdecimal() or not 1 <= int(number) <= 0xFFFE:
            raise ConfigError(f"sn.topics: {number!r} is no number of a topic; right would be 1 to 65534")
        if problem := problem_of_name(topic):
            raise ConfigError(f"sn.topics.{number}: {problem}")


SITES_PORT = 7_884


def _check_sites(config: Config) -> None:
    sites = config.sites
    for name, bridge in sites.bridges.items():
        _check_bridge(f"sites.bridges.{name}", bridge)
    if not sites.site:
        if sites.uplinks or sites.listen or sites.gateways:
            raise ConfigError('sites.site: none is named; right would be site = "plant", the name of this site')
        return
    for name in (sites.site, *sites.uplinks):
        if not name or len(name) > NAME_MAX or not name.isprintable() or name != name.strip() or "/" in name:
            raise ConfigError(f"sites: {name!r}; the name of a site has letters, digits, dots or dashes")
    if not {Fabric.TREE, Fabric.DHT} & set(config.fabrics):
        raise ConfigError('sites: a gateway must be in a tree or a ring; right would be fabric = ["tree", "adhoc"]')
    if not config.name:
        raise ConfigError('sites: a gateway needs a name that stays; right would be name = "plant-1"')
    if sites.gateways and config.name not in sites.gateways:
        raise ConfigError(f"sites.gateways: {config.name!r} is not among them, and has a table [sites]")
    if sites.site in sites.uplinks:
        raise ConfigError(f"sites.uplinks.{sites.site}: that is this site itself: a cycle {sites.site} - {sites.site}")
    _check_graph(sites)
    for name, uplink in sites.uplinks.items():
        for text in uplink.connect:
            address(text, f"sites.uplinks.{name}.connect", SITES_PORT)
        if not uplink.connect and not sites.listen:
            raise ConfigError(
                f"sites.uplinks.{name}: nobody dials; give its `connect`, or `listen` in [sites] for it to dial here"
            )
    _check_sites_secret(sites)


def _check_sites_secret(sites: Sites) -> None:
    if sites.secret and sites.secret_file is not None:
        raise ConfigError("sites.secret and sites.secret_file are both given; one of them is right")
    if sites.secret_file is not None:
        _check_file("sites.secret_file", sites.secret_file)
    if sites.tls is not None:
        _check_files("sites.tls", sites.tls, ("certificate", "key", "authority"))
    given = sites.key()
    if 0 < len(given) < SECRET_B_MIN:
        raise ConfigError(f"sites.secret: {len(given)} bytes; right would be {SECRET_B_MIN} or more, drawn by chance")
    if sites.idle_s <= sites.heartbeat_s:
        raise ConfigError(f"sites.idle_s: {sites.idle_s:g}; right would be several times heartbeat_s")
    if sites.listen:
        where = address(sites.listen, "sites.listen", SITES_PORT)
        if not given and sites.tls is None and not is_loopback(where.host):
            raise ConfigError(
                f"sites.listen: {where} can be reached from other machines, where anybody could read and publish"
                " everything; give sites.secret_file or [sites.tls]"
            )


def _check_graph(sites: Sites) -> None:
    """A tree of sites: from each to each other one there is one way."""
    own = tuple((sites.site, other) for other in sites.uplinks)
    if sites.graph:
        drawn = {frozenset(pair) for pair in sites.graph}
        for site, other in own:
            if frozenset((site, other)) not in drawn:
                raise ConfigError(f"sites.uplinks.{other}: the graph has no uplink between {site} and {other}")
    if cycle := cycle_in((*sites.graph, *(pair for pair in own if not sites.graph))):
        raise ConfigError(f"sites.graph: a cycle, {' - '.join(cycle)}; leave out one of these uplinks")


def cycle_in(pairs: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """A way from a site back to itself, both ends included; empty where there is none."""
    ways: dict[str, set[str]] = {}
    for one, other in pairs:
        if other in ways.get(one, ()):
            continue
        if one == other or (path := _path(ways, one, other)):
            return (one, other) if one == other else (*path, one)
        ways.setdefault(one, set()).add(other)
        ways.setdefault(other, set()).add(one)
    return ()


def _path(ways: Mapping[str, set[str]], start: str, end: str) -> tuple[str, ...]:
    paths: list[tuple[str, ...]] = [(start,)] if start in ways else []
    seen = {start}
    while paths:
        path = paths.pop(0)
        if path[-1] == end:
            return path
        for onward in sorted(ways[path[-1]] - seen):
            seen.add(onward)
            paths.append((*path, onward))
    return ()


def _check_bridge(key: str, bridge: BridgeTable) -> None:
    found = urlsplit(bridge.connect)
    if found.scheme not in ("mqtt", "mqtts") or not found.hostname:
        raise ConfigError(f"{key}.connect: {bridge.connect!r}; right would be mqtt://broker.example:1883")
    for path_key in ("password_file", "authority"):
        if (path := getattr(bridge, path_key)) is not None:
            _check_file(f"{key}.{path_key}", path)
    if not bridge.send and not bridge.receive:
        raise ConfigError(f'{key}: nothing crosses; right would be send = [{{ topics = "plant/#" }}]')
    for name in ("send", "receive"):
        for number, route in enumerate(getattr(bridge, name)):
            _check_route(f"{key}.{name}[{number}]", route)
    for sent, came in ((sent, came) for sent in bridge.send for came in bridge.receive if bridge.version == 3):
        there = f"{sent.prefix}{sent.topics[len(sent.strip) :]}"
        if meaning(there).overlaps(meaning(came.topics)):
            raise ConfigError(
                f"{key}: what is sent to {there!r} would come back by {came.topics!r}; give one of them a prefix of its"
                " own, or say version = 5, where the other broker keeps it from us"
            )


def _check_route(key: str, route: BridgeRoute) -> None:
    if problem := problem_of_filter(route.topics):
        raise ConfigError(f"{key}.topics: {route.topics!r}: {problem}")
    for name in ("prefix", "strip"):
        if any(one in getattr(route, name) for one in "+#\0"):
            raise ConfigError(f"{key}.{name}: {getattr(route, name)!r}; it is the front of a topic, without + and #")
    if route.strip and not route.topics.startswith(route.strip):
        raise ConfigError(f"{key}.strip: {route.strip!r}; {route.topics!r} does not begin with it")
    if route.condition:
        from godwit.filters.text import parse  # takes a third of a second to load, which most brokers need not spend

        try:
            parse(route.condition)
        except FilterError as error:
            raise ConfigError(f"{key}.condition: {error}") from None


def _check_ring(config: Config) -> None:
    if others := [f'"{one}"' for one in config.fabrics if one is not Fabric.DHT]:
        raise ConfigError(f'fabric: "dht" stands alone, without {", ".join(others)}; a bridge is a tree with adhoc')
    if not config.ring.place:
        raise ConfigError("ring.place: a broker of a ring stands somewhere; right would be --place 38.72,-9.14")
    config.ring.point()
    for topics in config.ring.located:
        if problem := problem_of_filter(topics):
            raise ConfigError(f"ring.located: {topics!r}: {problem}")


def _check_adhoc(config: Config) -> None:
    adhoc, peers = config.adhoc, config.peers
    if Fabric.TREE not in config.fabrics and (peers.listen or peers.connect):
        raise ConfigError('peers: nobody is linked in the air; right would be fabric = ["tree", "adhoc"], a bridge')
    if len(config.name.encode()) > AIR_NAME_B_MAX:
        raise ConfigError(f"name: {config.name!r}; every frame on the air carries it: {AIR_NAME_B_MAX} bytes at most")
    try:
        group = ipaddress.ip_address(adhoc.group)
    except ValueError:
        group = None
    if not isinstance(group, ipaddress.IPv4Address):
        raise ConfigError(
            f"adhoc.group: {adhoc.group!r}; right would be 239.255.71.68, or 255.255.255.255 to broadcast"
        )
    if adhoc.key and adhoc.key_file is not None:
        raise ConfigError("adhoc.key and adhoc.key_file are both given; one of them is right")
    if adhoc.key_file is not None:
        _check_file("adhoc.key_file", adhoc.key_file)
    given = config.air_key()
    if not given and not adhoc.insecure:
        raise ConfigError(
            "adhoc: without a key anybody in range could forge and repeat everything; give adhoc.key_file, the same at"
            " every node, or say adhoc.insecure"
        )
    if 0 < len(given) < AIR_KEY_B_MIN:
        raise ConfigError(f"adhoc.key: {len(given)} bytes; right would be {AIR_KEY_B_MIN} or more, drawn by chance")


def _check_name(name: str) -> None:
    if len(name) > NAME_MAX or not name.isprintable() or name != name.strip() or "/" in name:
        raise ConfigError(f"name: {name!r}; right would be 1 to {NAME_MAX} letters, digits, dots or dashes")


def _check_peers(peers: Peers) -> None:
    for text in peers.connect:
        address(text, "peers.connect", PEERS_PORT)
    if peers.advertise:
        address(peers.advertise, "peers.advertise", PEERS_PORT)
    if peers.tls is not None:
        _check_files("peers.tls", peers.tls, ("certificate", "key", "authority"))
    if peers.secret and peers.secret_file is not None:
        raise ConfigError("peers.secret and peers.secret_file are both given; one of them is right")
    if peers.secret_file is not None:
        _check_file("peers.secret_file", peers.secret_file)
    given = peers.secret_file.read_bytes().strip() if peers.secret_file else peers.secret.encode()
    if 0 < len(given) < SECRET_B_MIN or (peers.secret_file is not None and not given):
        raise ConfigError(f"peers.secret: {len(given)} bytes; right would be {SECRET_B_MIN} or more, drawn by chance")
    if peers.idle_s <= peers.heartbeat_s:
        raise ConfigError(f"peers.idle_s: {peers.idle_s:g}; right would be several times heartbeat_s")
    if peers.mdns and not peers.listen:
        raise ConfigError("peers.mdns needs peers.listen: there is nothing to announce")
    if not given and peers.tls is None and not peers.insecure:
        for key, texts in (("listen", (peers.listen,)), ("connect", peers.connect)):
            for text in filter(None, texts):
                where = address(text, f"peers.{key}", PEERS_PORT)
                if not is_loopback(where.host):
                    raise ConfigError(
                        f"peers.{key}: {where} is not on this machine alone, so that anybody could read and publish"
                        " everything; give peers.secret_file or [peers.tls], or say peers.insecure"
                    )


def address(text: str, key: str, port: int | None = None) -> Address:
    """The address under this key, or an error that names the key."""
    try:
        found = Address.parse(text, port=port)
    except AddressError as error:
        raise ConfigError(f"{key}: {error}") from None
    if "://" in text:
        raise ConfigError(f"{key}: {text!r}: right would be {found}, without a scheme")
    return found


def _check_url(key: str, text: str, scheme: str) -> None:
    try:
        found = urlsplit(text)
        good = found.scheme == scheme and bool(found.hostname) and (found.port or 1) > 0
    except ValueError:
        good = False
    if text and (not good or any(one.isspace() for one in text)):
        raise ConfigError(f"{key}: {text!r}; right would be {scheme}://north.example/mqtt")


def _check_files(table: str, holder: msgspec.Struct, keys: tuple[str, ...]) -> None:
    for key in keys:
        path = getattr(holder, key)
        if path is not None:
            _check_file(f"{table}.{key}", path)


def _check_file(key: str, path: Path) -> None:
    try:
        with path.open("rb"):
            pass
    except OSError as error:
        raise ConfigError(f"{key}: {path}: {error.strerror}") from None

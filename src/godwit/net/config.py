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
from collections.abc import Mapping
from enum import StrEnum
from math import inf
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, get_args, get_type_hints
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta

from godwit.net.address import Address, AddressError
from godwit.net.environment import SettingError, settings_of
from godwit.net.ops.journal import Form, Level
from godwit.net.peers.dialler import PORT as PEERS_PORT
from godwit.net.peers.handshake import NAME_MAX
from godwit.net.store.sqlite import Sync
from godwit.protocols.broker.api import Capacity
from godwit.protocols.broker.handoff.copies import COPIES_BYTES_MAX, Handoff
from godwit.protocols.broker.handoff.prediction import HABITS
from godwit.protocols.neighbors.nearness import NEAR_M

STATUS_ANY, STATUS_DEFAULT = "any", "127.0.0.1:9883"

Positive = Annotated[float, Meta(gt=0)]
NotNegative = Annotated[float, Meta(ge=0)]
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


class PeersTls(Strict, frozen=True):
    """Between brokers both sides show a certificate of one authority."""

    certificate: Path
    key: Path
    authority: Path


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


class Log(Strict, frozen=True):
    """What is written to stderr."""

    format: Form = Form.TEXT
    level: Level = Level.INFO


class Fabric(StrEnum):
    """What carries events from broker to broker (docs/broker.md, docs/adhoc.md)."""

    TREE = "tree"
    ADHOC = "adhoc"


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
    log: Log = Log()

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
    return f"{key}: {said}" if key else said


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
    changed = {}
    for name in config.__struct_fields__:
        value = getattr(config, name)
        if isinstance(value, Path):
            changed[name] = folder / value.expanduser()
        elif isinstance(value, msgspec.Struct):
            changed[name] = _rooted(value, folder)
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
    for key in ("status", "advertise", "advertise_tls"):
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
    if config.limits.packet_bytes_max > config.limits.output_bytes_max:
        raise ConfigError(
            f"limits.output_bytes_max: {config.limits.output_bytes_max}; right would be packet_bytes_max,"
            f" {config.limits.packet_bytes_max}, or more: what may wait for a client must hold one packet"
        )
    if config.archive is not None and config.archive.listen:
        address(config.archive.listen, "archive.listen")
    if config.tls is None and (listen.mqtts or listen.wss):
        raise ConfigError("listen.mqtts and listen.wss need a table [tls] with `certificate` and `key`")
    if config.tls is not None:
        _check_files("tls", config.tls, ("certificate", "key", "client_authority"))
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
        raise ConfigError('fabric: none is named; right would be "tree", "adhoc", or both')
    if Fabric.ADHOC in config.fabrics:
        _check_adhoc(config)


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
    if peers.listen:
        where = address(peers.listen, "peers.listen", PEERS_PORT)
        if not given and peers.tls is None and not is_loopback(where.host):
            raise ConfigError(
                f"peers.listen: {where} can be reached from other machines, where anybody could read and publish"
                " everything; give peers.secret_file or [peers.tls]"
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


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


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

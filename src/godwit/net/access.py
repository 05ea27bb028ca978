"""Who may connect, and what each may do: a users file in TOML, read again while the broker runs.

    [anonymous]
    from = "loopback"                     # or "anywhere", or "nowhere"; loopback is what a broker without a file does
    publish = false

    [users.van-7]
    password = "$argon2id$..."            # made by `godwit password`
    publish = ["fleet/van-7/#"]
    subscribe = ["fleet/#", "air/# WHERE pm25 > 150"]

    [users.gateway]
    certificate = "gateway.example"       # the common name of a client certificate, instead of a password
    clients = ["gateway-1", "gateway-2"]  # the client ids it may use

A grant is a list of topic filters, each with a condition where `WHERE` follows. Without a list everything is granted,
with `false` nothing. A client may subscribe to what a grant covers, and publish what one matches.
"""

from __future__ import annotations

import ipaddress
import secrets
from collections import Counter
from enum import StrEnum
from functools import partial
from pathlib import Path

import argon2
import msgspec

from godwit.filters.errors import FilterError
from godwit.filters.filters import FilterSet, alternatives, conjunction
from godwit.net.logins import Logins, Remembered
from godwit.protocols.broker import topics
from godwit.protocols.broker.api import Grant, Limits, Reason, RefusedError

WHERE = " WHERE "


class SecurityError(ValueError):
    """The users file says something that cannot be; the text names where, and what would be right."""


class Credentials(msgspec.Struct, frozen=True, kw_only=True):
    """Who a client says it is, and what can be seen of it."""

    client: str
    user: str | None = None
    password: bytes | None = None
    certificate: str | None = None
    """The common name in the certificate that TLS has verified."""
    peer: str = ""
    """Its network address."""


class From(StrEnum):
    LOOPBACK = "loopback"
    ANYWHERE = "anywhere"
    NOWHERE = "nowhere"


Granted = bool | list[str]


class AnonymousEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"origin": "from"}):
    origin: From = From.LOOPBACK
    publish: Granted = True
    subscribe: Granted = True
    limits: Limits | None = None


class UserEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    password: str | None = None
    certificate: str | None = None
    publish: Granted = True
    subscribe: Granted = True
    clients: list[str] | None = None
    limits: Limits | None = None


class UsersFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    anonymous: AnonymousEntry = AnonymousEntry()
    users: dict[str, UserEntry] = {}


def session_name(user: str, client: str) -> str:
    """What the brokers call the session of this user under this client id: nobody has another user's session.

    Without a user it is the client id, as far as no user's could be the same.
    """
    if user:
        return f"{user}/{client}"
    return f"/{client}" if "/" in client else client


def user_of(session: str) -> str:
    """Whose session it is, by its name; empty: nobody's in particular."""
    user, slash, _ = session.partition("/")
    return user if slash else ""


class Admitted(msgspec.Struct, frozen=True):
    user: str
    """Empty: anonymous."""
    grant: Grant
    limits: Limits


class Access:
    """Decides. `reload` takes a changed file as a whole, or leaves everything as it was and raises.

    `limits` are for those whose entry says nothing of them.
    """

    def __init__(
        self,
        users: Path | None = None,
        limits: Limits = Limits(),  # noqa: B008
        remembered: Remembered | None = None,
    ) -> None:
        self.path = users
        self.limits = limits
        self.logins = Logins(partial(_is_right, argon2.PasswordHasher()), remembered)
        self._nobodys = ""
        self._users: dict[str, tuple[UserEntry, Grant]] = {}
        self._by_certificate: dict[str, str] = {}
        self.reload()

    def reload(self) -> None:
        file = UsersFile() if self.path is None else _read(self.path)
        where = str(self.path)
        granted = {
            name: (entry, _grant(f"{where}: users.{name}", entry.publish, entry.subscribe))
            for name, entry in file.users.items()
        }
        anonymous = _grant(f"{where}: anonymous", file.anonymous.publish, file.anonymous.subscribe)
        certificates = {entry.certificate: name for name, entry in file.users.items() if entry.certificate}
        for name, entry in file.users.items():
            if not name or "/" in name:
                raise SecurityError(f"{where}: users.{name!r}: a user name is not empty and has no slash")
            self._check(f"{where}: users.{name}", entry)
        self._users, self._by_certificate = granted, certificates
        self._anonymous, self._anonymous_grant = file.anonymous, anonymous
        self._nobodys = _like(file)
        self.logins.remembered.keep_only(set(file.users))

    def rights(self, session: str) -> Admitted | None:
        """What the owner of a session may do now; None where there is no such user any more."""
        user = user_of(session)
        if not user:
            return Admitted("", self._anonymous_grant, self._anonymous.limits or self.limits)
        found = self._users.get(user)
        if found is None:
            return None
        entry, grant = found
        client = session.partition("/")[2]
        if entry.clients is not None and client not in entry.clients:
            return None
        return Admitted(user, grant, entry.limits or self.limits)

    def rights_of(self, session: str) -> tuple[Grant, Limits] | None:
        admitted = self.rights(session)
        return (admitted.grant, admitted.limits) if admitted is not None else None

    async def admit(self, who: Credentials) -> Admitted:
        """Raises `RefusedError`. A password takes its time, and other clients do not wait for it. Without a users file
        nobody has a name, whatever a client says: some always say one."""
        if self.path is None or (who.user is None and who.certificate is None):
            return self._admit_anonymous(who)
        if who.certificate is not None and who.user is None:
            name = self._by_certificate.get(who.certificate)
            if name is None:
                raise RefusedError(Reason.NOT_AUTHORIZED, f"no user has the certificate {who.certificate!r}")
        else:
            name = await self._by_password(who)
        entry, grant = self._users[name]
        if entry.clients is not None and who.client not in entry.clients:
            raise RefusedError(Reason.CLIENT_ID_NOT_VALID, f"user {name!r} may not use the client id {who.client!r}")
        return Admitted(name, grant, entry.limits or self.limits)

    def _admit_anonymous(self, who: Credentials) -> Admitted:
        origin = self._anonymous.origin
        if origin is From.NOWHERE or (origin is From.LOOPBACK and not _is_loopback(who.peer)):
            raise RefusedError(Reason.NOT_AUTHORIZED, "give a user name and a password")
        return Admitted("", self._anonymous_grant, self._anonymous.limits or self.limits)

    async def _by_password(self, who: Credentials) -> str:
        name, password = who.user or "", who.password or b""
        found = self._users.get(name)
        known = found[0].password if found else None
        # An unknown user costs the same time as a wrong password, so that nobody can find out who is known.
        right = await self.logins.is_right(who.peer, name, known or self._nobodys, password)
        if not right or known is None or self._users.get(name) is not found:
            raise RefusedError(Reason.BAD_USER_NAME_OR_PASSWORD, "wrong user name or password")
        return name

    def _check(self, where: str, entry: UserEntry) -> None:
        if entry.password is None and entry.certificate is None:
            raise SecurityError(f"{where} has neither `password` nor `certificate`, so nobody could be it")
        if entry.password is not None:
            try:
                argon2.extract_parameters(entry.password)
            except argon2.exceptions.InvalidHashError:
                raise SecurityError(f"{where}.password is no argon2 hash; `godwit password` makes one") from None


COSTS = {
    "high": argon2.PasswordHasher(),
    "low": argon2.PasswordHasher(time_cost=1, memory_cost=8 * 1024, parallelism=1),
}
"""`high` for passwords that people make up, about 0.2 s and 64 MiB each; `low`, about 5 ms, for those that are drawn at
random, which nobody can guess however fast."""


def hashed(password: str, cost: str = "high") -> str:
    """What goes into the users file; `cost` is a key of `COSTS`."""
    return COSTS[cost].hash(password)


def _like(file: UsersFile) -> str:
    """A hash of nothing, as costly as most of the file's: who is unknown must not be told apart by the time."""
    kinds = Counter(
        entry.password.rpartition("$")[0].rpartition("$")[0] for entry in file.users.values() if entry.password
    )
    most = kinds.most_common(1)[0][0] if kinds else ""
    cheap = most == COSTS["low"].hash("").rpartition("$")[0].rpartition("$")[0]
    return hashed(secrets.token_hex(16), "low" if cheap else "high")


def _is_right(hasher: argon2.PasswordHasher, known: str, password: bytes) -> bool:
    try:
        return hasher.verify(known, password)
    except argon2.exceptions.VerificationError:
        return False


def _is_loopback(peer: str) -> bool:
    try:
        return ipaddress.ip_address(peer.partition("%")[0]).is_loopback
    except ValueError:
        return False


def _read(path: Path) -> UsersFile:
    try:
        return msgspec.toml.decode(path.read_bytes(), type=UsersFile)
    except OSError as error:
        raise SecurityError(f"{path}: cannot be read: {error.strerror}") from None
    except (msgspec.DecodeError, msgspec.ValidationError, UnicodeDecodeError) as error:
        raise SecurityError(f"{path}: {error}") from None


def _grant(where: str, publish: Granted, subscribe: Granted) -> Grant:
    return Grant(_granted(f"{where}.publish", publish), _granted(f"{where}.subscribe", subscribe))


def _granted(where: str, granted: Granted) -> FilterSet | None:
    if isinstance(granted, bool):
        return None if granted else FilterSet()
    return alternatives(one for text in granted for one in _filters(where, text))


def _filters(where: str, text: str) -> FilterSet:
    topic_filter, _, condition = text.partition(WHERE)
    problem = topics.problem_of_filter(topic_filter.strip())
    if problem:
        raise SecurityError(f"{where}: {problem}")
    meaning = topics.meaning(topic_filter.strip())
    if not condition:
        return FilterSet((meaning,))
    from godwit.filters.text import parse  # takes a third of a second to load, which most brokers need not spend

    try:
        wanted = parse(condition)
    except FilterError as error:
        raise SecurityError(f"{where}: {text!r}: {error}") from None
    both = (conjunction((*meaning.attributes, *one.attributes)) for one in wanted)
    return alternatives(one for one in both if one is not None)

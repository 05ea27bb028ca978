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

    [tokens.fleet]                        # whoever shows a token that one of these keys has signed
    keys = ["fleet.pem"]                  # made by `godwit token keys`
    audience = "godwit"
    publish = ["fleet/{user}/#"]          # {user}: whom the token names

    [users.ann]
    password = "$argon2id$..."
    role = "operator"                     # may look into brokers and act on them; "viewer" may only look

A grant is a list of topic filters, each with a condition where `WHERE` follows. Without a list everything is granted,
with `false` nothing. A client may subscribe to what a grant covers, and publish what one matches.
"""

from __future__ import annotations

import ipaddress
import time
from base64 import b64encode
from collections.abc import Callable
from enum import StrEnum
from functools import partial
from pathlib import Path

import argon2
import msgspec

from godwit.filters.errors import FilterError
from godwit.filters.filters import Filter, FilterSet, alternatives, conjunction
from godwit.net.logins import Logins, Remembered
from godwit.net.tokens import LEEWAY_S, Signer, TokenError, UnsignedError, looks_signed
from godwit.protocols.broker import topics
from godwit.protocols.broker.api import Grant, Limits, Reason, RefusedError

WHERE = " WHERE "
HOLDER = "{user}"
"""Stands in grants for whom a token names."""


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


class Role(StrEnum):
    """What somebody may do with the broker itself, beside publishing and subscribing."""

    NONE = "none"
    VIEWER = "viewer"
    OPERATOR = "operator"


Granted = bool | list[str]


class AnonymousEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"origin": "from"}):
    origin: From = From.LOOPBACK
    publish: Granted = True
    subscribe: Granted = True
    limits: Limits | None = None
    role: Role = Role.NONE


class UserEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    password: str | None = None
    certificate: str | None = None
    publish: Granted = True
    subscribe: Granted = True
    clients: list[str] | None = None
    limits: Limits | None = None
    role: Role = Role.NONE


class TokensEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Users that are not listed: a key has signed who they are."""

    keys: list[str]
    """Files with public keys; several while one takes the place of another."""
    audience: str
    issuer: str = ""
    publish: Granted = True
    subscribe: Granted = True
    clients: list[str] | None = None
    revoked: list[str] = []
    """Whose tokens count no longer, though they have not expired."""
    limits: Limits | None = None


class UsersFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    anonymous: AnonymousEntry = AnonymousEntry()
    users: dict[str, UserEntry] = {}
    tokens: dict[str, TokensEntry] = {}


UNGUARDED = UsersFile(AnonymousEntry(role=Role.OPERATOR))
"""Without a file: whoever is on this machine may do anything, and nobody else gets in."""


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
    role: Role = Role.NONE
    lasts_s: float | None = None
    """How long what it showed holds; it must come again with something newer."""


class Tokens:
    """One table of tokens: who signs, and what those may do whom a token names. They are users called `table:name`."""

    def __init__(self, where: str, table: str, entry: TokensEntry, folder: Path) -> None:
        self.entry = entry
        self.table = table
        self.revoked = frozenset(entry.revoked)
        self._where = where
        try:
            self.signer = Signer([folder / name for name in entry.keys], entry.audience, entry.issuer)
        except TokenError as error:
            raise SecurityError(f"{where}.keys: {error}") from None
        if not entry.keys or not entry.audience:
            raise SecurityError(f"{where} needs `keys` and an `audience`")
        self.grant("anybody")

    def grant(self, name: str) -> Grant:
        """For this name; what it may be called was checked, so it means nothing but itself in a topic or condition."""
        publish, subscribe = (
            granted if isinstance(granted, bool) else [text.replace(HOLDER, name) for text in granted]
            for granted in (self.entry.publish, self.entry.subscribe)
        )
        return _grant(self._where, publish, subscribe)

    def admits(self, name: str, client: str) -> bool:
        """Whether this name may use this client id."""
        clients = self.entry.clients
        return clients is None or client in [text.replace(HOLDER, name) for text in clients]


class Access:
    """Decides. `reload` takes a changed file as a whole, or leaves everything as it was and raises.

    `limits` are for those whose entry says nothing of them.
    """

    def __init__(
        self,
        users: Path | None = None,
        limits: Limits = Limits(),  # noqa: B008
        remembered: Remembered | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.path = users
        self.limits = limits
        self.clock = clock
        self.logins = Logins(partial(_is_right, argon2.PasswordHasher()), remembered)
        self._kinds: tuple[str, ...] = ()
        """Algorithm and cost of each user's hash."""
        self._users: dict[str, tuple[UserEntry, Grant]] = {}
        self._by_certificate: dict[str, str] = {}
        self._tokens: dict[str, Tokens] = {}
        self.reload()

    def reload(self) -> None:
        file = UNGUARDED if self.path is None else _read(self.path)
        where = str(self.path)
        granted = {
            name: (entry, _grant(f"{where}: users.{name}", entry.publish, entry.subscribe))
            for name, entry in file.users.items()
        }
        anonymous = _grant(f"{where}: anonymous", file.anonymous.publish, file.anonymous.subscribe)
        certificates = {entry.certificate: name for name, entry in file.users.items() if entry.certificate}
        folder = self.path.absolute().parent if self.path is not None else Path()
        tokens = {
            table: Tokens(f"{where}: tokens.{table}", table, entry, folder) for table, entry in file.tokens.items()
        }
        for name, entry in file.users.items():
            if not name or "/" in name:
                raise SecurityError(f"{where}: users.{name!r}: a user name is not empty and has no slash")
            if name.partition(":")[0] in tokens and ":" in name:
                raise SecurityError(f"{where}: users.{name!r}: so is called who shows a token of that table")
            self._check(f"{where}: users.{name}", entry)
        for table in tokens:
            if not table or "/" in table or ":" in table:
                raise SecurityError(f"{where}: tokens.{table!r}: its name is not empty and has no slash and no colon")
        self._users, self._by_certificate, self._tokens = granted, certificates, tokens
        self._anonymous, self._anonymous_grant = file.anonymous, anonymous
        self._kinds = _kinds(file)
        self.logins.remembered.keep_only(set(file.users))

    def publishable(self) -> tuple[Filter, ...]:
        """All that anybody may publish here: what a site offers to others."""
        grants = [self._anonymous_grant] if self._anonymous.origin is not From.NOWHERE else []
        grants += [grant for _, grant in self._users.values()]
        if any(grant.publish is None for grant in grants):
            return (Filter(),)
        return alternatives(one for grant in grants for one in grant.publish or ()).filters

    def rights(self, session: str) -> Admitted | None:
        """What the owner of a session may do now; None where there is no such user any more."""
        user = user_of(session)
        if not user:
            return self._anybody()
        client = session.partition("/")[2]
        table, _, name = user.partition(":")
        if name and table in self._tokens:
            return self._bearer(self._tokens[table], name, client)
        found = self._users.get(user)
        if found is None:
            return None
        entry, grant = found
        if entry.clients is not None and client not in entry.clients:
            return None
        return Admitted(user, grant, entry.limits or self.limits, entry.role)

    def grant_of(self, user: str) -> Grant | None:
        """Of a user, empty for anonymous clients; None where there is no such user."""
        if not user:
            return self._anonymous_grant
        table, _, name = user.partition(":")
        if name and table in self._tokens:
            tokens = self._tokens[table]
            return tokens.grant(name) if name not in tokens.revoked else None
        found = self._users.get(user)
        return found[1] if found is not None else None

    def _bearer(self, tokens: Tokens, name: str, client: str) -> Admitted | None:
        if name in tokens.revoked or not tokens.admits(name, client):
            return None
        return Admitted(f"{tokens.table}:{name}", tokens.grant(name), tokens.entry.limits or self.limits)

    def rights_of(self, session: str) -> tuple[Grant, Limits] | None:
        admitted = self.rights(session)
        return (admitted.grant, admitted.limits) if admitted is not None else None

    async def admit(self, who: Credentials) -> Admitted:
        """Raises `RefusedError`. A password takes its time, and other clients do not wait for it. Without a users file
        nobody has a name, whatever a client says: some always say one."""
        if self._tokens and who.user not in self._users and looks_signed(who.password):
            return self._by_token(who)
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
        return Admitted(name, grant, entry.limits or self.limits, entry.role)

    def _anybody(self) -> Admitted:
        anonymous = self._anonymous
        return Admitted("", self._anonymous_grant, anonymous.limits or self.limits, anonymous.role)

    def entries(self) -> UsersFile:
        """Who is known and may do what; for operators, without what passwords hash to."""
        users = {name: msgspec.structs.replace(entry, password=None) for name, (entry, _) in self._users.items()}
        return UsersFile(self._anonymous, users, {table: one.entry for table, one in self._tokens.items()})

    def _admit_anonymous(self, who: Credentials) -> Admitted:
        origin = self._anonymous.origin
        if origin is From.NOWHERE or (origin is From.LOOPBACK and not _is_loopback(who.peer)):
            raise RefusedError(Reason.NOT_AUTHORIZED, "give a user name and a password")
        return self._anybody()

    def _by_token(self, who: Credentials) -> Admitted:
        """A signature is checked in a fifth of a millisecond: nobody needs to wait for that."""
        for tokens in self._tokens.values():
            try:
                name, until_s = tokens.signer.bearer(who.password or b"")
            except UnsignedError:
                continue
            except TokenError as error:
                raise RefusedError(Reason.BAD_USER_NAME_OR_PASSWORD, str(error)) from None
            if who.user and who.user != name:
                text = f"the token is for {name!r}; right would be that user name, or none"
                raise RefusedError(Reason.BAD_USER_NAME_OR_PASSWORD, text)
            if name in tokens.revoked:
                raise RefusedError(Reason.NOT_AUTHORIZED, "the token was revoked")
            admitted = self._bearer(tokens, name, who.client)
            if admitted is None:
                text = f"the token of {name!r} may not use the client id {who.client!r}"
                raise RefusedError(Reason.CLIENT_ID_NOT_VALID, text)
            return msgspec.structs.replace(admitted, lasts_s=max(until_s + LEEWAY_S - self.clock(), 0.0))
        raise RefusedError(Reason.BAD_USER_NAME_OR_PASSWORD, "the token is not signed by a key that this broker knows")

    async def _by_password(self, who: Credentials) -> str:
        name, password = who.user or "", who.password or b""
        found = self._users.get(name)
        known = found[0].password if found else None
        # An unknown user costs the same time as a wrong password, so that nobody can find out who is known.
        right = await self.logins.is_right(who.peer, name, known or self._nobodys(name), password)
        if not right or known is None or self._users.get(name) is not found:
            raise RefusedError(Reason.BAD_USER_NAME_OR_PASSWORD, "wrong user name or password")
        return name

    def _nobodys(self, name: str) -> str:
        """A hash that no password has, as costly as some user's, always the same one's for a name: where users differ,
        those who are unknown do so too. It need not be computed, since nothing has to fit it."""
        drawn = self.logins.remembered.quick(name, "", b"")
        kind = self._kinds[int.from_bytes(drawn[:8]) % len(self._kinds)]
        salt, digest = (b64encode(part).decode().rstrip("=") for part in (drawn[8:24], drawn[24:56]))
        return f"{kind}${salt}${digest}"

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


def _kinds(file: UsersFile) -> tuple[str, ...]:
    """Algorithm and cost of all hashes in the file; of a new one where there is none."""
    found = sorted(
        entry.password.rpartition("$")[0].rpartition("$")[0] for entry in file.users.values() if entry.password
    )
    costly = COSTS["high"]
    return tuple(found) or (f"$argon2id$v=19$m={costly.memory_cost},t={costly.time_cost},p={costly.parallelism}",)


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

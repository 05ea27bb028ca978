"""Tokens let in whom they name, for as long as they say, where a key of ours has signed that: and nobody else."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import re
import time
from pathlib import Path
from typing import Any

import jwt
import mqtt5
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from tests.net.mqtt.serving import Raw, served

from godwit.filters.filters import FilterSet
from godwit.net.access import Access, Admitted, Credentials, SecurityError, hashed
from godwit.net.mqtt.connection import MAXIMUM_CONNECT_TIME
from godwit.net.tokens import LEEWAY_S, TOKEN_BYTES_MAX, TokenError, make_keys, signed
from godwit.protocols.broker import topics
from godwit.protocols.broker.api import Reason, RefusedError

PRIVATE = (Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
PUBLIC = (Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
USERS = """
[tokens.fleet]
keys = ["fleet.pem"]
audience = "godwit"
issuer = "office"
publish = ["fleet/{user}/#"]
subscribe = ["fleet/{user}/# WHERE van = '{user}'"]
revoked = ["van-3"]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    make_keys(tmp_path / "fleet.key", tmp_path / "fleet.pem")
    (tmp_path / "users.toml").write_text(USERS)
    return tmp_path


def claims(**other: object) -> dict[str, Any]:
    said = {"sub": "van-7", "aud": "godwit", "iss": "office", "exp": int(time.time()) + 600, **other}
    return {name: value for name, value in said.items() if value is not None}


def token(folder: Path, algorithm: str = "EdDSA", **other: object) -> bytes:
    return jwt.encode(claims(**other), (folder / "fleet.key").read_text(), algorithm).encode()


def admitted(folder: Path, password: bytes, user: str | None = "van-7", client: str = "c") -> Admitted:
    who = Credentials(client=client, user=user, password=password, peer="192.0.2.7")
    return asyncio.run(Access(folder / "users.toml").admit(who))


def refusal(folder: Path, password: bytes, user: str | None = "van-7") -> RefusedError:
    with pytest.raises(RefusedError) as caught:
        admitted(folder, password, user)
    return caught.value


def test_a_good_token_lets_in_whom_it_names_with_grants_of_its_own(folder: Path) -> None:
    found = admitted(folder, token(folder))
    assert found.user == "fleet:van-7"
    assert found.lasts_s == pytest.approx(600 + LEEWAY_S, abs=30)
    assert found.grant.publish is not None
    assert found.grant.publish.covers(FilterSet((topics.meaning("fleet/van-7/where"),)))
    assert not found.grant.publish.covers(FilterSet((topics.meaning("fleet/van-8/where"),)))
    assert admitted(folder, token(folder), user=None).user == "fleet:van-7"


def test_the_command_signs_tokens_that_are_good(folder: Path) -> None:
    now = time.time()
    made = signed(folder / "fleet.key", "van-9", audience="godwit", issued_s=now, until_s=now + 60, issuer="office")
    assert admitted(folder, made.encode(), "van-9").user == "fleet:van-9"


def unsigned(folder: Path) -> bytes:
    parts = (json.dumps(part).encode() for part in ({"alg": "none", "typ": "JWT"}, claims()))
    return b".".join((*(base64.urlsafe_b64encode(part).rstrip(b"=") for part in parts), b""))


def confused(folder: Path) -> bytes:
    """The public key, which anybody may know, taken for a shared secret."""
    parts = (json.dumps(part).encode() for part in ({"alg": "HS256", "typ": "JWT"}, claims()))
    said = b".".join(base64.urlsafe_b64encode(part).rstrip(b"=") for part in parts)
    mac = hmac.digest((folder / "fleet.pem").read_bytes(), said, hashlib.sha256)
    return said + b"." + base64.urlsafe_b64encode(mac).rstrip(b"=")


def of_a_stranger(folder: Path) -> bytes:
    return jwt.encode(claims(), ed25519.Ed25519PrivateKey.generate(), "EdDSA").encode()


def changed(folder: Path) -> bytes:
    head, body, tail = token(folder).split(b".")
    said = json.loads(base64.urlsafe_b64decode(body + b"=="))
    other = base64.urlsafe_b64encode(json.dumps({**said, "sub": "van-8"}).encode()).rstrip(b"=")
    return b".".join((head, other, tail))


@pytest.mark.parametrize("forge", [unsigned, confused, of_a_stranger, changed])
def test_what_no_key_of_ours_has_signed_counts_for_nothing(folder: Path, forge: Any) -> None:
    for user in ("van-7", "van-8", None):
        error = refusal(folder, forge(folder), user)
        assert error.reason is Reason.BAD_USER_NAME_OR_PASSWORD
        assert "not signed by a key" in error.text


@pytest.mark.parametrize(
    ("other", "text"),
    [
        ({"exp": int(time.time()) - 3600}, "has expired"),
        ({"nbf": int(time.time()) + 3600}, "does not hold yet"),
        ({"aud": "somebody"}, "audience must be 'godwit'"),
        ({"iss": "somebody"}, "issuer must be 'office'"),
        ({"exp": None}, "lacks `exp`"),
        ({"sub": None}, "lacks `sub`"),
        ({"aud": None}, "lacks `aud`"),
        ({"iss": None}, "lacks `iss`"),
        ({"sub": "van-7/#"}, "letters, digits"),
        ({"sub": "+"}, "letters, digits"),
        ({"sub": "x WHERE TRUE"}, "letters, digits"),
        ({"sub": ""}, "letters, digits"),
        ({"exp": "soon"}, "not signed"),
    ],
)
def test_a_token_that_is_signed_and_not_for_here_or_now_is_refused_with_the_reason(
    folder: Path, other: dict[str, object], text: str
) -> None:
    error = refusal(folder, token(folder, "EdDSA", **other), None)
    assert error.reason is Reason.BAD_USER_NAME_OR_PASSWORD
    assert re.search(text, error.text), error.text


def test_a_token_serves_nobody_but_whom_it_names(folder: Path) -> None:
    assert "for 'van-7'" in refusal(folder, token(folder), "van-8").text
    assert refusal(folder, token(folder, sub="van-3"), "van-3").reason is Reason.NOT_AUTHORIZED


def test_a_user_with_a_password_is_not_whom_a_token_of_that_name_names(folder: Path) -> None:
    (folder / "users.toml").write_text(USERS + f'[users.ann]\npassword = "{hashed("x" * 20, "low")}"\n')
    assert refusal(folder, token(folder, sub="ann"), "ann").reason is Reason.BAD_USER_NAME_OR_PASSWORD
    assert admitted(folder, token(folder, sub="ann"), None).user == "fleet:ann"


@pytest.mark.parametrize("junk", [b"eyJ.eyJ.", b"eyJhbGciOiJFZERTQSJ9..", b"eyJ" + b"x" * TOKEN_BYTES_MAX + b".a.b"])
def test_what_only_looks_like_a_token_is_refused(folder: Path, junk: bytes) -> None:
    assert refusal(folder, junk, None).reason is Reason.BAD_USER_NAME_OR_PASSWORD


def test_rights_of_who_is_away_follow_the_file(folder: Path) -> None:
    access = Access(folder / "users.toml")
    assert access.rights("fleet:van-7/c") is not None
    assert access.rights("fleet:van-3/c") is None
    (folder / "users.toml").write_text(USERS.replace('["van-3"]', '["van-3", "van-7"]'))
    access.reload()
    assert access.rights("fleet:van-7/c") is None
    (folder / "users.toml").write_text("")
    access.reload()
    assert access.rights("fleet:van-9/c") is None


@pytest.mark.parametrize(
    ("kind", "algorithm"),
    [
        (lambda: ec.generate_private_key(ec.SECP256R1()), "ES256"),
        (lambda: ec.generate_private_key(ec.SECP384R1()), "ES384"),
        (lambda: rsa.generate_private_key(65_537, 2_048), "RS256"),
    ],
)
def test_keys_of_other_kinds_sign_in_their_one_way(folder: Path, kind: Any, algorithm: str) -> None:
    key = kind()
    (folder / "fleet.pem").write_bytes(key.public_key().public_bytes(*PUBLIC))
    (folder / "fleet.key").write_bytes(key.private_bytes(*PRIVATE))
    assert admitted(folder, token(folder, algorithm)).user == "fleet:van-7"


def test_two_keys_hold_while_one_takes_the_place_of_the_other(folder: Path) -> None:
    old = token(folder)
    (folder / "fleet.key").unlink()
    make_keys(folder / "fleet.key", folder / "next.pem")
    (folder / "users.toml").write_text(USERS.replace('["fleet.pem"]', '["fleet.pem", "next.pem"]'))
    assert admitted(folder, old).user == admitted(folder, token(folder)).user == "fleet:van-7"


@pytest.mark.parametrize(
    ("users", "text"),
    [
        (USERS.replace("fleet.pem", "none.pem"), "none.pem: No such file"),
        (USERS.replace("fleet.pem", "users.toml"), "right would be a public key in PEM"),
        (USERS.replace("fleet.pem", "fleet.key"), "right would be a public key in PEM"),
        (USERS.replace('["fleet.pem"]', "[]"), "needs `keys`"),
        (USERS.replace('audience = "godwit"', ""), "audience"),
        (USERS.replace("fleet/{user}/#", "fleet/#/{user}"), "tokens.fleet"),
        (USERS + '[users."fleet:ann"]\ncertificate = "x"\n', "shows a token of that table"),
    ],
)
def test_a_table_that_cannot_be_is_told(folder: Path, users: str, text: str) -> None:
    (folder / "users.toml").write_text(users)
    with pytest.raises(SecurityError, match=text):
        Access(folder / "users.toml")


def test_keys_are_not_overwritten_and_only_their_user_reads_the_private_one(folder: Path) -> None:
    assert (folder / "fleet.key").stat().st_mode & 0o077 == 0
    with pytest.raises(TokenError, match="is there already"):
        make_keys(folder / "fleet.key", folder / "other.pem")


def test_a_client_is_told_when_what_it_showed_holds_no_longer(folder: Path) -> None:
    """The broker's clock is ahead, so that the token ends in a moment instead of in ten minutes."""
    access = Access(folder / "users.toml", clock=lambda: time.time() + 600 + LEEWAY_S)
    with served(authenticate=access.admit) as server, Raw(server.port) as client:
        client.send(mqtt5.ConnectPacket("c", username="van-7", password=token(folder, exp=time.time() + 601)).write())
        assert isinstance(client.packet(), mqtt5.ConnAckPacket)
        goodbye = client.packet()
        assert isinstance(goodbye, mqtt5.DisconnectPacket)
        assert int(goodbye.reason_code) == MAXIMUM_CONNECT_TIME
        assert "newer" in (goodbye.reason_str or "")

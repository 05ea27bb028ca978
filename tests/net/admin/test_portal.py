"""Who gets in where operators log in, and which web pages do not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.net.admin.asking import answered, asked
from tests.net.servers import parts, port, serving
from tests.net.stations import played

from godwit.net.access import hashed
from godwit.net.admin.portal import is_plain_host
from godwit.net.ops import services

HTTP: dict[str, Any] = {"listen__http": "127.0.0.1:0", "listen__status": "", "extras": services.ALL}


def users(tmp_path: Path) -> Path:
    file = tmp_path / "users.toml"
    secret = hashed("pass", "low")
    file.write_text(
        "".join(f'[users.{name}]\npassword = "{secret}"\nrole = "{role}"\n' for name, role in ROLES.items())
    )
    return file


ROLES = {"ann": "operator", "bob": "viewer", "van": "none"}


def test_a_role_decides_who_may_look_and_who_may_act(tmp_path: Path) -> None:
    async def scene() -> None:
        async with serving(tmp_path, "a", access__users=users(tmp_path), **HTTP) as a:
            found = {}
            for login in ("ann:pass", "bob:pass", "van:pass", "ann:wrong", ""):
                look = (await answered(a, "/v1/clients", login=login))[0]
                act = (await answered(a, "/v1/actions/reload", {}, login=login))[0]
                found[login] = (look, act)
            assert found == {
                "ann:pass": (200, 200),
                "bob:pass": (200, 403),
                "van:pass": (403, 403),
                "ann:wrong": (401, 401),
                "": (403, 403),
            }
            assert await asked(a, "/v1/me", login="bob:pass") == {"broker": "a", "user": "bob", "role": "viewer"}
            told = await asked(a, "/v1/users", login="bob:pass")
            assert [(row["name"], row["role"]) for row in told["users"]][1:] == sorted(ROLES.items())
            assert b"argon2" not in (await answered(a, "/v1/users", login="bob:pass"))[1]
            rows = (await asked(a, "/v1/audit", login="ann:pass"))["rows"]
            assert {row["user"] for row in rows} == {"ann"}

    played(scene)


def test_a_page_of_another_address_gets_nothing(tmp_path: Path) -> None:
    async def scene() -> None:
        async with serving(tmp_path, "a", **HTTP) as a:
            own = f"127.0.0.1:{port(a, 'http')}"
            assert (await answered(a, "/v1/me", headers={"Origin": "http://evil.example"}))[0] == 403
            assert (await answered(a, "/v1/me", headers={"Origin": f"http://{own}"}))[0] == 200
            # A name that somebody made point here.
            assert (await answered(a, "/v1/me", headers={"Host": "evil.example:9885"}))[0] == 403
            # What a form can send without asking first.
            form = {"Content-Type": "text/plain"}
            assert (await answered(a, "/v1/actions/reload", {}, headers=form))[0] == 403
            assert (await answered(a, "/v1/actions/reload", method="OPTIONS"))[0] == 405
            assert (await answered(a, "/v1/actions/reload"))[0] == 405
            assert parts(a).asks.restart is False

    played(scene)


@pytest.mark.parametrize(
    ("host", "plain"),
    [("127.0.0.1:80", True), ("[::1]:80", True), ("localhost:1", True), ("evil.example", False), ("", False)],
)
def test_a_number_or_localhost_is_nobody_elses_name(host: str, plain: bool) -> None:
    assert is_plain_host(host) is plain


def test_others_tell_where_operators_log_in(tmp_path: Path) -> None:
    async def scene() -> None:
        async with serving(tmp_path, "a", **HTTP) as a:
            assert parts(a).balance.address_http == f"http://127.0.0.1:{port(a, 'http')}"

    played(scene)

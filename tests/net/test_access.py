"""Who gets in, and with which rights."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from godwit.filters.filters import FilterSet
from godwit.net.access import Access, Admitted, Credentials, SecurityError, hashed
from godwit.protocols.broker import topics
from godwit.protocols.broker.api import Limits, Reason, RefusedError
from godwit.protocols.broker.publication import Publication

SECRET = hashed("secret")


def access(tmp_path: Path, text: str) -> Access:
    (tmp_path / "users.toml").write_text(text)
    return Access(tmp_path / "users.toml")


def admitted(access: Access, **who: object) -> Admitted:
    return asyncio.run(access.admit(Credentials(client="c", **who)))  # type: ignore[arg-type]


def refusal(access: Access, **who: object) -> Reason:
    with pytest.raises(RefusedError) as caught:
        admitted(access, **who)
    return caught.value.reason


USER = f'[users.van-7]\npassword = "{SECRET}"\n'


def test_without_a_file_only_this_machine_gets_in() -> None:
    assert admitted(Access(), peer="127.0.0.1").grant.publish is None
    assert admitted(Access(), peer="::1").user == ""
    assert refusal(Access(), peer="192.0.2.7") is Reason.NOT_AUTHORIZED


def test_without_a_file_a_user_name_means_nothing() -> None:
    assert admitted(Access(), user="awscrt", password=b"x", peer="127.0.0.1").user == ""
    assert refusal(Access(), user="awscrt", password=b"x", peer="192.0.2.7") is Reason.NOT_AUTHORIZED


def test_a_user_needs_the_right_password(tmp_path: Path) -> None:
    users = access(tmp_path, USER)
    assert admitted(users, user="van-7", password=b"secret", peer="192.0.2.7").user == "van-7"
    assert refusal(users, user="van-7", password=b"wrong") is Reason.BAD_USER_NAME_OR_PASSWORD
    assert refusal(users, user="van-7") is Reason.BAD_USER_NAME_OR_PASSWORD
    assert refusal(users, user="nobody", password=b"secret") is Reason.BAD_USER_NAME_OR_PASSWORD


class Counted:
    """The two hashes of a login, counted, with what the slow one costs."""

    def __init__(self, users: Access) -> None:
        self.quick = 0
        self.slow: list[str] = []
        verify, digest = users.logins._verify, users.logins.remembered.digest

        def verified(known: str, password: bytes) -> bool:
            self.slow.append(known.rsplit("$", 2)[0])
            return verify(known, password)

        def counted(name: str, known: str, password: bytes) -> bytes:
            self.quick += 1
            return digest(name, known, password)

        users.logins._verify = verified
        users.logins.remembered.digest = counted  # type: ignore[method-assign]


LOW = hashed("secret", "low")


@pytest.mark.parametrize("name", ["nobody", "van-7", "by-certificate", ""])
def test_who_is_unknown_costs_what_a_wrong_password_costs(tmp_path: Path, name: str) -> None:
    """Counted and not timed: one hash of each kind, the slow one with the cost that users of the file have."""
    entry = f'[users.van-7]\npassword = "{LOW}"\n[users.by-certificate]\ncertificate = "c"\n'
    users = access(tmp_path, entry)
    counted = Counted(users)
    assert refusal(users, user=name, password=b"wrong", peer="192.0.2.7") is Reason.BAD_USER_NAME_OR_PASSWORD
    assert (counted.quick, counted.slow) == (1, [LOW.rsplit("$", 2)[0]])


def test_where_hashes_differ_in_cost_those_of_unknown_users_do_too_and_stay_as_they_are(tmp_path: Path) -> None:
    cheap = "".join(f'[users.cheap-{n}]\npassword = "{LOW}"\n' for n in range(3))
    users = access(tmp_path, cheap + USER)
    kinds = [users._nobodys(f"name-{n}").rsplit("$", 2)[0] for n in range(400)]
    assert 200 < kinds.count(LOW.rsplit("$", 2)[0]) < 380
    users.reload()
    assert [users._nobodys(f"name-{n}").rsplit("$", 2)[0] for n in range(400)] == kinds


def test_a_password_found_right_once_is_found_wrong_after_it_was_changed(tmp_path: Path) -> None:
    users = access(tmp_path, USER)
    admitted(users, user="van-7", password=b"secret")
    (tmp_path / "users.toml").write_text(USER.replace(SECRET, hashed("other")))
    users.reload()
    assert refusal(users, user="van-7", password=b"secret") is Reason.BAD_USER_NAME_OR_PASSWORD
    assert admitted(users, user="van-7", password=b"other").user == "van-7"


def test_a_certificate_stands_for_its_user(tmp_path: Path) -> None:
    users = access(tmp_path, '[users.gateway]\ncertificate = "gateway.example"\nclients = ["c"]\n')
    assert admitted(users, certificate="gateway.example").user == "gateway"
    assert refusal(users, certificate="stranger.example") is Reason.NOT_AUTHORIZED


def test_a_user_keeps_to_its_client_ids(tmp_path: Path) -> None:
    users = access(tmp_path, '[users.gateway]\ncertificate = "g"\nclients = ["other"]\n')
    assert refusal(users, certificate="g") is Reason.CLIENT_ID_NOT_VALID


def test_anonymous_clients_can_be_let_in_from_anywhere_or_nowhere(tmp_path: Path) -> None:
    assert admitted(access(tmp_path, '[anonymous]\nfrom = "anywhere"\n'), peer="192.0.2.7").user == ""
    assert refusal(access(tmp_path, '[anonymous]\nfrom = "nowhere"\n'), peer="::1") is Reason.NOT_AUTHORIZED


def granted(tmp_path: Path, grants: str) -> Admitted:
    return admitted(access(tmp_path, f"[anonymous]\n{grants}\n"), peer="::1")


def wanted(topic_filter: str) -> FilterSet:
    return FilterSet((topics.meaning(topic_filter),))


def test_limits_are_the_brokers_unless_an_entry_has_its_own(tmp_path: Path) -> None:
    path = tmp_path / "users.toml"
    path.write_text(f"{USER}[users.ann]\npassword = '{SECRET}'\nlimits = {{ queue_max = 9 }}\n")
    users = Access(path, Limits(queue_max=5))
    assert admitted(users, peer="::1").limits.queue_max == 5
    assert admitted(users, user="van-7", password=b"secret").limits.queue_max == 5
    assert admitted(users, user="ann", password=b"secret").limits.queue_max == 9


def test_a_grant_covers_what_lies_below_its_topics(tmp_path: Path) -> None:
    grant = granted(tmp_path, 'subscribe = ["fleet/#", "air/+"]').grant
    assert grant.subscribe is not None
    assert grant.subscribe.covers(wanted("fleet/van-7/+"))
    assert grant.subscribe.covers(wanted("air/beijing"))
    assert not grant.subscribe.covers(wanted("air/#"))
    assert not grant.subscribe.covers(wanted("#"))


def test_a_grant_may_look_at_content(tmp_path: Path) -> None:
    grant = granted(tmp_path, """publish = ["air/# WHERE kind = 'reading' AND pm25 >= 0"]""").grant
    assert grant.publish is not None
    assert grant.publish.matches(Publication("p", 1, "air/x", b'{"kind": "reading", "pm25": 3}').values())
    assert not grant.publish.matches(Publication("p", 1, "air/x", b'{"kind": "reading", "pm25": -3}').values())
    assert not grant.publish.matches(Publication("p", 1, "sea/x", b'{"kind": "reading", "pm25": 3}').values())


def test_false_grants_nothing(tmp_path: Path) -> None:
    grant = granted(tmp_path, "publish = false").grant
    assert grant.publish == FilterSet()
    assert grant.subscribe is None


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[users.a]", "users.a has neither `password` nor `certificate`"),
        ('[users.a]\npassword = "secret"', "users.a.password is no argon2 hash; `godwit password` makes one"),
        ('[anonymous]\nfrom = "here"', "Invalid enum value 'here'"),
        ("[anonymous]\npublish = ['a/#/b']", "anonymous.publish: topic filter 'a/#/b': '#' must be a whole level"),
        ("[anonymous]\npublish = ['a WHERE x >']", "anonymous.publish: 'a WHERE x >': filter"),
        ("[user.a]", "unknown field `user`"),
        ("[users", "users.toml: "),
    ],
)
def test_a_bad_file_is_refused_with_its_reason(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(SecurityError) as caught:
        access(tmp_path, text)
    assert told in str(caught.value)


def test_a_bad_change_leaves_the_old_rights(tmp_path: Path) -> None:
    users = access(tmp_path, USER)
    (tmp_path / "users.toml").write_text("[users.van-7]")
    with pytest.raises(SecurityError):
        users.reload()
    assert admitted(users, user="van-7", password=b"secret").user == "van-7"


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SecurityError, match=r"nothing\.toml: cannot be read: No such file"):
        Access(tmp_path / "nothing.toml")

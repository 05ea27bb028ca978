"""Logins of the console."""

from __future__ import annotations

import time

import pytest

from godwit.console import visitors
from godwit.console.visitors import Visitors
from godwit.net.admin.client import Login


def test_a_cookie_is_good_until_its_visitor_leaves_or_its_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    one = Visitors()
    token = one.enter(Login("ann", "pass"), "operator")
    found = one.find(token)
    assert found is not None
    assert found.login.user == "ann"
    assert one.find("another") is None
    one.leave(token)
    assert one.find(token) is None
    token, now_s = one.enter(Login("ann", "pass"), "operator"), time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now_s + visitors.LASTS_S + 1)
    assert one.find(token) is None


def test_who_is_wrong_waits_longer_each_time_and_nobody_else_does() -> None:
    one = Visitors()
    waits = []
    for _ in range(4):
        one.was_wrong("192.0.2.1")
        waits.append(one.waits_s("192.0.2.1"))
    assert waits == sorted(waits)
    assert waits[-1] > 3
    assert one.waits_s("192.0.2.2") == 0
    one.was_right("192.0.2.1")
    assert one.waits_s("192.0.2.1") == 0


def test_cookies_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(visitors, "VISITORS_MAX", 3)
    one = Visitors()
    tokens = [one.enter(Login(), "viewer") for _ in range(5)]
    assert [one.find(token) is not None for token in tokens] == [False, False, True, True, True]

"""What of the log operators must know."""

from __future__ import annotations

import logging

import pytest

from godwit.net.admin.notices import Notices


def record(text: str, *arguments: object, level: int = logging.INFO, name: str = "godwit.mqtt") -> logging.LogRecord:
    return logging.LogRecord(name, level, "", 0, text, arguments, None)


@pytest.mark.parametrize(
    ("text", "level", "kind"),
    [
        ("refused %r from %s: %s", logging.INFO, "refused"),
        ("subscription of %r to %r refused: %s", logging.WARNING, "refused"),
        ("taken over: %r from %s: %s", logging.INFO, "taken over"),
        ("for client %r waits %s; %s", logging.WARNING, "dropped"),
        ("%s has been silent for %.1f s %s", logging.WARNING, "link"),
        ("something else %s %s %s", logging.ERROR, "trouble"),
        ("connected %r from %s, %s", logging.INFO, None),
    ],
)
def test_kinds_are_told_apart(text: str, level: int, kind: str | None) -> None:
    notices = Notices()
    arguments: tuple[object, ...] = ("x", 1.0, "y") if "%.1f" in text else ("x", "y", "z")
    notices.handle(record(text, *arguments, level=level))
    assert [one.kind for one in notices.since(0)] == ([kind] if kind else [])


def test_a_flood_is_one_notice_with_a_count_and_the_rest_is_bounded() -> None:
    notices = Notices(most=5)
    for _ in range(900):
        notices.handle(record("taken over: %r", "twin"))
    (one,) = notices.since(0)
    assert one.count == 900
    for number in range(20):
        notices.handle(record("refused %r", number))
    assert len(notices.since(0)) == 5
    assert [one.text for one in notices.since(notices.serial - 1)] == ["refused 19"]


def test_what_clients_in_the_same_process_say_is_not_the_brokers() -> None:
    notices = Notices()
    notices.handle(record("no broker answers", level=logging.WARNING, name="godwit.client"))
    assert notices.since(0) == []

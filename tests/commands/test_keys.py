"""What keys do to a list that is longer than the screen."""

from __future__ import annotations

import pytest

from godwit.commands.keys import DOWN, PAGE_DOWN, PAGE_UP, SORT, UP, View, keyboard

LIST = View(("waiting", "name"))


@pytest.mark.parametrize(
    ("keys", "first"),
    [
        ([DOWN, DOWN], 2),
        ([DOWN, UP, UP], 0),
        ([PAGE_DOWN], 10),
        ([PAGE_DOWN] * 9, 15),
        ([PAGE_DOWN, PAGE_UP, PAGE_UP], 0),
        ([PAGE_DOWN, SORT], 0),
        (["", "x"], 0),
    ],
)
def test_a_list_is_scrolled_within_its_ends(keys: list[str], first: int) -> None:
    view = LIST
    for key in keys:
        view = view.pressed(key, rows=25, page=10)
    assert view.first == first


def test_a_short_list_stays() -> None:
    assert LIST.pressed(DOWN, rows=3, page=10).first == 0


def test_orders_go_round_and_the_next_is_told() -> None:
    assert (LIST.by, LIST.help) == ("waiting", "q quit   s sort by name   ↑ ↓ scroll")
    once = LIST.pressed(SORT, 5, 10)
    assert (once.by, once.pressed(SORT, 5, 10).by) == ("name", "waiting")


def test_where_nobody_sits_at_a_terminal_there_are_no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    with open("/dev/null") as nobody:
        monkeypatch.setattr("sys.stdin", nobody)
        with keyboard() as pressed:
            assert pressed is None

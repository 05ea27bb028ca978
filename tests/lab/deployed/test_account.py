"""The account of a run with real brokers: each kind of fault is counted as what it is."""

from __future__ import annotations

from godwit.lab.deployed.account import Heard, Move, Outcome, Story, outcome


def told(heard: list[tuple[float, int]], owed: int = 4, moves: tuple[float, ...] = ()) -> Outcome:
    """What comes of one publisher's events, published a second apart."""
    story = Story(
        [(0, number) for number in range(owed)],
        [Heard(time_s, 0, number) for time_s, number in heard],
        [Move(asked_s, asked_s + 0.1, True) for asked_s in moves],
    )
    return outcome([story], {(0, number): float(number) for number in range(100)})


def test_all_once_and_in_order_is_clean() -> None:
    found = told([(0.5, 0), (1.5, 1), (2.5, 2), (3.5, 3)])
    assert found.is_clean
    assert found.delays_s["mean"] == 0.5


def test_what_is_missing_is_lost_and_what_nobody_asked_for_is_unwanted() -> None:
    found = told([(1.0, 0), (2.0, 9), (3.0, 2)])
    assert (found.lost, found.unwanted, found.duplicated, found.out_of_order) == (2, 1, 0, 1)


def test_a_repetition_is_a_duplicate_and_not_out_of_order() -> None:
    found = told([(1.0, 0), (1.1, 1), (1.2, 0), (1.3, 2), (1.4, 3)])
    assert (found.lost, found.duplicated, found.out_of_order) == (0, 1, 0)


def test_what_comes_late_is_out_of_order_once() -> None:
    found = told([(1.0, 0), (1.1, 2), (1.2, 3), (1.3, 1)])
    assert (found.lost, found.duplicated, found.out_of_order) == (0, 0, 1)


def test_the_first_event_after_each_move_counts_unless_the_next_move_was_sooner() -> None:
    found = told([(1.0, 0), (2.25, 1), (2.5, 2), (6.0, 3)], moves=(2.0, 3.0, 5.5))
    assert list(found.first_s) == [0.25, 0.5]
    assert [round(one, 3) for one in found.let_in_s] == [0.1, 0.1, 0.1]


def test_the_first_event_is_late_only_since_it_was_published() -> None:
    found = told([(1.25, 1), (3.5, 2)], moves=(0.5, 3.0))
    assert list(found.first_s) == [0.75, 0.5]
    assert list(found.first_due_s) == [0.25, 0.5]

"""Times as people write them."""

from __future__ import annotations

import pytest

from godwit.net.moments import moment

NOW = 1_700_000_000.0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("-2h", NOW - 7_200),
        ("-90s", NOW - 90),
        ("-90", NOW - 90),
        (" -1.5 D ", NOW - 129_600),
        ("-3m", NOW - 180),
        ("-3min", NOW - 180),
        ("-1w", NOW - 604_800),
        ("0", 0.0),
        ("1699999999.5", NOW - 0.5),
        ("2023-11-14T22:13:20Z", NOW),
        ("2023-11-14T23:13:20+01:00", NOW),
        ("2023-11-14 22:13", NOW - 20),
        ("2023-11-14", NOW - 80_000),
    ],
)
def test_it_is_a_moment_before_now(text: str, expected: float) -> None:
    assert moment(text, NOW) == expected


@pytest.mark.parametrize("text", ["", "2h", "soon", "-2y", "-h", "--2h", "1e400", "2023-13-01", "-" * 5_000])
def test_what_is_no_time_is_told_what_would_be_right(text: str) -> None:
    with pytest.raises(ValueError, match="is no time; right would be a time as -2h") as raised:
        moment(text, NOW)
    assert len(str(raised.value)) < 200


def test_nobody_can_ask_for_what_is_to_come() -> None:
    with pytest.raises(ValueError, match="is not over yet"):
        moment("2030-01-01", NOW)

"""Charts that people can read numbers from."""

from __future__ import annotations

import re

import pytest

from godwit.pipeline.audit.charts import HEIGHT, Series, bars, lines, ticks


@pytest.mark.parametrize("most", [0.0003, 0.7, 1.0, 3.0, 7.2, 99.0, 100.0, 101.0, 123_456.0])
def test_an_axis_has_a_few_round_numbers_and_holds_the_largest(most: float) -> None:
    found = ticks(most)
    assert found[0] == 0.0
    assert most <= found[-1] * 1.000001
    assert found[-2] < most
    assert 3 <= len(found) <= 8
    assert all(value == pytest.approx(float(f"{value:.3g}")) for value in found)


def test_a_chart_of_nothing_is_a_chart() -> None:
    assert ticks(0.0) == [0.0, 1.0]
    assert "<svg" in bars("none", [], [Series("a", "a", [])], str)
    assert "<svg" in lines("none", [1.0], [Series("a", "a", [None])], str)


def test_a_single_loss_among_thousands_can_be_seen() -> None:
    drawn = bars("t", [0.0, 1.0], [Series("came", "a", [9999.0, 10_000.0]), Series("lost", "b", [1.0, 0.0])], str)
    lost = re.search(r'<rect class="b"[^>]*height="([\d.]+)"', drawn)
    assert lost is not None
    assert 2.0 <= float(lost.group(1)) < HEIGHT / 10


def test_a_line_is_broken_where_there_is_no_value_and_names_are_escaped() -> None:
    drawn = lines("<t>", [0.0, 1.0, 2.0, 3.0], [Series("<s>", "a", [1.0, None, 2.0, 3.0])], str)
    path = re.search(r'd="([^"]+)"', drawn)
    assert path is not None
    assert [step[0] for step in path.group(1).split(" ") if step[0].isalpha()] == ["M", "M", "L"]
    assert "<s>" not in drawn
    assert "&lt;t&gt;" in drawn

"""Figures have error bars where there are several runs, and what was published as crosses."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from godwit.lab.claims import Claim, Margin, Point, along
from godwit.lab.intervals import Interval
from godwit.lab.pages import crossed, curves, line, published


def test_a_line_has_the_means_that_there_are_with_their_intervals() -> None:
    axes: Any = Figure().subplots()
    line(axes, [(1, Interval(2, 0.5, 3)), (2, None), (3, Interval(4, math.inf, 1))], "ours", color="red")
    (drawn,) = axes.containers
    data, _, (bars,) = drawn.lines
    assert np.asarray(data.get_xydata()).tolist() == [[1, 2], [3, 4]]
    assert [segment[:, 1].tolist() for segment in bars.get_segments()] == [[1.5, 2.5], [4, 4]]
    line(axes, [(1, None)], "nothing")
    assert axes.get_legend_handles_labels()[1] == ["ours"]


def test_one_mean_over_another_has_both_intervals_and_goes_by_the_first() -> None:
    axes: Any = Figure().subplots()
    crossed(axes, [(Interval(3, 0.5, 3), Interval(9, math.inf, 1)), (Interval(1, 0.25, 3), Interval(8, 2, 3))], "ours")
    ((data, _, bars),) = (container.lines for container in axes.containers)
    assert np.asarray(data.get_xydata()).tolist() == [[1, 8], [3, 9]]
    across, along_y = ([segment.tolist() for segment in own.get_segments()] for own in bars)
    assert across == [[[0.75, 8], [1.25, 8]], [[2.5, 9], [3.5, 9]]]
    assert along_y == [[[1, 6], [1, 10]], [[3, 9], [3, 9]]]
    crossed(axes, [], "nothing")
    assert axes.get_legend_handles_labels()[1] == ["ours"]


def test_published_points_are_named_once() -> None:
    axes: Any = Figure().subplots()
    published(axes, {8: 2.6, 64: 4.5})
    published(axes, {8: 2.0}, "red")
    assert axes.get_legend_handles_labels()[1] == ["published"]
    assert [np.asarray(mark.get_xydata()).tolist() for mark in axes.lines] == [[[8, 2.6], [64, 4.5]], [[8, 2.0]]]


def test_two_claims_of_one_number_have_a_picture_each() -> None:
    points = [Point(str(x), x > 1, margins=(Margin("a", Interval(x - 1.5, 0.1, 3)),)) for x in (1, 2)]
    found = [along(Claim("C7", text), "neighbors", points, "n") for text in ("in 2D", "in 3D")]
    assert [caption.partition("; ")[0] for caption in curves(found)] == ["C7 along neighbors"] * 2

"""Random worlds of which `make test` runs a few and `pytest -m explore` the rest."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from _pytest.mark import ParameterSet

EXPLORED = True
"""Whether anybody may want more than a few: where nobody does, thousands of tests need not be made and left out."""


def few(count: int, seeds: Sequence[object]) -> list[ParameterSet]:
    """All of these seeds, of which those after the first so many are explored only."""
    marked = [pytest.param(seed, marks=[pytest.mark.explore] * (at >= count)) for at, seed in enumerate(seeds)]
    return marked if EXPLORED else marked[:count]

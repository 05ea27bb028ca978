"""What was seen of a dataset while its rows went by: how many, how many of them bad, and each column's nulls and range.

Nothing is read for it: Spark collects the figures in the pass that writes the rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as sf
from pyspark.sql.types import NumericType

ROWS, BAD, SPARED = "rows", "bad", "spared"


class ColumnFigures(msgspec.Struct, frozen=True):
    """Of the good rows."""

    nulls: int
    least: float | None = None
    most: float | None = None


class Figures(msgspec.Struct, frozen=True):
    """Of a dataset: rows that were looked at, how many were set aside, and its columns."""

    rows: int
    quarantined: int
    columns: dict[str, ColumnFigures] = {}


class Counted:
    """The figures are there once the observed frame has been gone through to its end, and wait for that until then."""

    def __init__(self, apart: int = 0) -> None:
        self._apart = apart
        self._seen: Observation | None = None
        self._found: dict[str, Any] | None = None
        self._columns: tuple[str, ...] = ()

    def observed(
        self,
        judged: DataFrame,
        is_bad: Column,
        columns: Mapping[str, Column] | None = None,
        is_spared: Column | None = None,
    ) -> DataFrame:
        """Rows that are bad are set aside; those spared are told of in quarantine, and stay without the bad value."""
        self._seen, self._columns = Observation(), tuple(columns or ())
        figures = [sf.count("*").alias(ROWS), sf.count_if(is_bad).alias(BAD)]
        figures += [] if is_spared is None else [sf.count_if(~is_bad & is_spared).alias(SPARED)]
        for at, (name, value) in enumerate((columns or {}).items()):
            figures.append(sf.count_if(~is_bad & value.isNull()).alias(f"nulls{at}"))
            if isinstance(judged.schema[name].dataType, NumericType):
                good = sf.when(~is_bad, value).cast("double")
                figures += [sf.min(good).alias(f"least{at}"), sf.max(good).alias(f"most{at}")]
        return judged.observe(self._seen, *figures)

    def summed(self, told: DataFrame, rows: Column, bad: Column) -> DataFrame:
        """Where rows tell how many there were."""
        self._seen = Observation()
        return told.observe(self._seen, sf.sum(rows).alias(ROWS), sf.sum(bad).alias(BAD))

    def counts_nothing(self) -> None:
        """There is no rule that a row could break; how many there are is counted elsewhere."""
        self._found = {}

    def rows(self) -> int:
        """All rows, good and bad."""
        return int(self._figures().get(ROWS) or 0)

    def quarantined(self) -> int:
        """Bad rows, rows with a bad value, and files that were not read."""
        return int(self._figures().get(BAD) or 0) + int(self._figures().get(SPARED) or 0) + self._apart

    def good(self) -> int:
        return self.rows() - int(self._figures().get(BAD) or 0)

    def columns(self) -> dict[str, ColumnFigures]:
        found = self._figures()
        return {
            name: ColumnFigures(int(found.get(f"nulls{at}", 0)), found.get(f"least{at}"), found.get(f"most{at}"))
            for at, name in enumerate(self._columns)
        }

    def figures(self) -> Figures:
        return Figures(self.rows(), self.quarantined(), self.columns())

    def _figures(self) -> dict[str, Any]:
        if self._found is None:
            self._found = {} if self._seen is None else dict(self._seen.get)
        return self._found


def combined(parts: Sequence[Counted]) -> Figures:
    """Several datasets of the same columns as one."""
    columns = dict[str, ColumnFigures]()
    for part in parts:
        for name, own in part.columns().items():
            known = columns.get(name, ColumnFigures(0))
            least = [value for value in (known.least, own.least) if value is not None]
            most = [value for value in (known.most, own.most) if value is not None]
            columns[name] = ColumnFigures(known.nulls + own.nulls, min(least, default=None), max(most, default=None))
    return Figures(sum(part.rows() for part in parts), sum(part.quarantined() for part in parts), columns)

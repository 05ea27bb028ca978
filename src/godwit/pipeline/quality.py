"""The quality of a run's data: a table of what was seen, and conditions under which the run is refused.

--fail-on "quarantined > 0.1%"    --fail-on "nulls(lat) > 0"    --fail-on "rows < 1000"    --fail-on "lateness_s > 3600"
"""

from __future__ import annotations

import operator
import re
import time
from collections.abc import Iterator, Mapping, Sequence

import msgspec
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from godwit.pipeline.errors import PipelineError
from godwit.pipeline.io.counting import Counted, Figures
from godwit.pipeline.io.writing import Output
from godwit.pipeline.schemas import QUALITY

TABLE, TIME = "quality", "time_s"
ROWS, QUARANTINED, NULLS, LEAST, MOST = "rows", "quarantined", "nulls", "least", "most"
LATENESS = "lateness_s"
"""From the time of the newest row to the run."""
OPERATORS = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
    "=": operator.eq,
}
_CONDITION = re.compile(
    r"\s*(rows|quarantined|lateness_s|nulls|least|most)\s*(?:\(\s*([^()]+?)\s*\))?\s*(>=|<=|>|<|=)\s*(-?\d+(?:\.\d+)?)\s*(%?)\s*"
)
_VALUE_IN_REASON = r"^(column '[^']*'): .* (is no [\w<>, ]+)$"

Row = tuple[str, str, float, str | None]


class QualityError(PipelineError):
    """The data is not what was asked for: the message says what was found."""


class Condition(msgspec.Struct, frozen=True):
    """When a run is refused."""

    text: str
    measure: str
    of: str | None
    compare: str
    bound: float
    is_share: bool

    @classmethod
    def parse(cls, text: str) -> Condition:
        found = _CONDITION.fullmatch(text)
        if found is None or (found[1] in (NULLS, LEAST, MOST)) != bool(found[2]):
            raise PipelineError(
                f"--fail-on {text!r}: right would be as in 'quarantined > 0.1%', 'nulls(lat) > 0' or 'rows < 1000'"
            )
        return cls(text, found[1], found[2], found[3], float(found[4]), bool(found[5]))

    def holds(self, rows: Sequence[Row]) -> str | None:
        """What was found where it holds."""
        for dataset, measure, figure, of in rows:
            if (measure, of) != (self.measure, self.of):
                continue
            total = next((row[2] for row in rows if row[:2] == (dataset, ROWS) and row[3] is None), 0.0)
            value = 100 * figure / total if self.is_share and total else figure
            if OPERATORS[self.compare](value, self.bound):
                return f"{dataset}: {self.measure}{f'({self.of})' if self.of else ''} is {value:g}{'%' * self.is_share}"
        return None


def check(fail_on: Sequence[str]) -> None:
    """Raises `PipelineError` naming a condition that is none, before anything is read."""
    for text in fail_on:
        Condition.parse(text)


def refuse_in_a_stream(fail_on: Sequence[str]) -> None:
    """A stream writes rows before it has seen all: a condition that it cannot keep is not taken."""
    if fail_on:
        raise PipelineError(
            f"--fail-on {fail_on[0]!r} is for batches; a stream tells in its summary and in the table quarantine"
            " what it set aside"
        )


def judge(
    out: Output, datasets: Mapping[str, Counted | Figures], quarantine: DataFrame, fail_on: Sequence[str]
) -> None:
    """Write the table `quality` beside the others; where a condition holds, the run is refused and its tables are put
    aside for people to look at. A condition on what this run does not measure is refused too: it would never hold."""
    conditions = [Condition.parse(text) for text in fail_on]
    rows = list(_rows(datasets, quarantine))
    _check_measured(conditions, rows)
    out.write(TABLE, out.spark.createDataFrame(rows, QUALITY), QUALITY, files=1)
    for condition in conditions:
        if told := condition.holds(rows):
            raise QualityError(
                f"--fail-on {condition.text!r}: {told}; the tables are in {out.refuse()}, and {out.path} is as it was"
            )


def _check_measured(conditions: Sequence[Condition], rows: Sequence[Row]) -> None:
    """Of every column that is looked at, nulls are counted, though it may have no least and no most."""
    columns = sorted({of for _, measure, _, of in rows if measure == NULLS and of is not None})
    for one in conditions:
        needed = TIME if one.measure == LATENESS else one.of
        if needed is not None and needed not in columns:
            there = f"it looks at {', '.join(columns)}" if columns else "of it only rows and quarantined are counted"
            raise PipelineError(f"--fail-on {one.text!r}: this run does not look at the column {needed!r}; {there}")


def _rows(datasets: Mapping[str, Counted | Figures], quarantine: DataFrame) -> Iterator[Row]:
    for name, counted in datasets.items():
        figures = counted.figures() if isinstance(counted, Counted) else counted
        yield name, ROWS, float(figures.rows), None
        newest_s = figures.columns[TIME].most if TIME in figures.columns else None
        if newest_s is not None:
            yield name, LATENESS, time.time() - newest_s, None
        for column, own in figures.columns.items():
            yield name, NULLS, float(own.nulls), column
            yield from ((name, m, float(v), column) for m, v in ((LEAST, own.least), (MOST, own.most)) if v is not None)
    kinds = sf.regexp_replace("reason", _VALUE_IN_REASON, "$1 $2").alias("kind")
    told = [(str(row[0]), str(row[1]), float(row[2])) for row in quarantine.groupBy("dataset", kinds).count().collect()]
    for name in sorted({*datasets, *(dataset for dataset, _, _ in told)}):
        yield name, QUARANTINED, sum((count for dataset, _, count in told if dataset == name), 0.0), None
    for name, kind, count in sorted(told):
        yield name, QUARANTINED, count, kind

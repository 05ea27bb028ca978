"""The tables of all jobs in one place, and the page that shows them: `python -m tools.pipeline_schemas`."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import msgspec
from pyspark.sql.types import StructField, StructType

from godwit.pipeline import schemas


class Table(msgspec.Struct, frozen=True):
    """`name` is the folder at `--out`, `folders` the columns whose values are names of folders."""

    job: str
    name: str
    schema: StructType
    tells: str
    folders: tuple[str, ...] = ()


KEY = StructType([StructField("...", schemas.STRING), StructField("subscription", schemas.STRING, nullable=False)])

INPUTS = (
    Table("ingest", "ARCHIVE", schemas.ARCHIVE, "What a broker archives; other logs are brought into it by --select."),
    Table("match", "SUBS", schemas.SUBSCRIPTIONS, "Subscriptions. Events have columns of any names."),
    Table("mobility", "POSITIONS", schemas.POSITIONS, "Where subscribers were."),
    Table("mobility", "ATTACHMENTS", schemas.ATTACHMENTS, "With --kind attachments: who was attached where."),
    Table("mobility", "SITES", schemas.SITES, "Where sites stand."),
    Table("gathering", "READINGS", schemas.READINGS, "And a column for each of --quantities."),
    Table("gathering", "--areas", schemas.AREAS, "Places of interest."),
    Table("audit", "TRACES", schemas.TRACES, "What brokers and clients recorded."),
    Table("audit", "--expected", schemas.EXPECTED, "Who should get what."),
)

OUTPUTS = (
    Table("all", "quarantine", schemas.QUARANTINE, "What could not be used, and why.", ("dataset",)),
    Table("all", "quality", schemas.QUALITY, "What a batch saw."),
    Table("ingest", "events", schemas.INGESTED, "Every event once.", ("day",)),
    Table("match", "deliveries", KEY, "The columns of --key, whole numbers as bigint, and who wants the event."),
    Table("mobility", "sites", schemas.SITES, "Sites, each in the middle of its parts."),
    Table("mobility", "associations", schemas.ASSOCIATIONS, "With --associations: the nearest site of each position."),
    Table("mobility", "visits", schemas.VISITS, "Uninterrupted stays."),
    Table("mobility", "handoffs", schemas.HANDOFFS, "Visits that ended at another site without a gap.", ("day",)),
    Table("mobility", "neighbors", schemas.NEIGHBORS, "The neighbor graph, each edge once at either end."),
    Table("mobility", "distributions", schemas.DISTRIBUTIONS, "Dwell and gap times, by site and (null) over all."),
    Table("mobility", "rates", schemas.RATES, "Means and rates of the Markov models."),
    Table("mobility", "forecasts", schemas.FORECASTS, "How well other days foretell one."),
    Table("gathering", "aggregates", schemas.AGGREGATES, "An area, a quantity and a window.", ("quantity",)),
    Table("gathering", "gaps", schemas.GAPS, "When a sensor told nothing; in batch only.", ("quantity",)),
    Table("gathering", "late", schemas.LATE, "Of a stream: readings that came after their window was written."),
    Table("audit", "outcomes", schemas.OUTCOMES, "Every event and every client that should have got it, or did."),
    Table("audit", "figures", schemas.FIGURES, "Counts and latencies of all, by client, by minute.", ("cut",)),
    Table("audit", "relocations", schemas.RELOCATIONS, "Clients that attached to another broker."),
    Table("audit", "overhead", schemas.OVERHEAD, "Records and bytes by kind and message."),
)

FORBIDDEN = frozenset({"start", "end", "first", "by", "count", "time", "since", "until"})
"""Words of SQL, and second names for a time, that no column of ours has."""


def page() -> str:
    """The reference of all tables, in Markdown."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield "# Tables of the data jobs"
    yield ""
    yield "Made by `python -m tools.pipeline_schemas > docs/pipeline/schemas.md`; a test compares."
    yield ""
    yield (
        "A time is `time_s`, seconds since 1970 in UTC; names of other times end in `_s` too. A required column has a"
        " value in every row: a run that would write one without ends with an error."
    )
    for title, tables in (("Input", INPUTS), ("Output", OUTPUTS)):
        yield ""
        yield f"## {title}"
        for table in tables:
            yield from _table(table)


def _table(table: Table) -> Iterator[str]:
    whose = "every job" if table.job == "all" else f"`{table.job}`"
    yield ""
    yield f"### `{table.name}` of {whose}"
    yield ""
    folders = f" In folders by {', '.join(f'`{name}`' for name in table.folders)}." if table.folders else ""
    yield f"{table.tells}{folders}"
    yield ""
    yield "| column | type | required |"
    yield "|---|---|---|"
    for field in table.schema:
        yield f"| `{field.name}` | {field.dataType.simpleString()} | {'' if field.nullable else 'yes'} |"


if __name__ == "__main__":
    sys.stdout.write(page())

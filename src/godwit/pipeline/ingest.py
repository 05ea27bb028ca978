"""Archives of brokers, and logs of devices, brought together: every event once, by day, in one dataset."""

from __future__ import annotations

import msgspec
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from godwit.pipeline.match import unreadable
from godwit.pipeline.reading import read
from godwit.pipeline.running import Progress, Summary, watched
from godwit.pipeline.schemas import ARCHIVE, INGESTED, QUARANTINE, shaped
from godwit.pipeline.writing import Output


class IngestOptions(msgspec.Struct, frozen=True, kw_only=True):
    archives: tuple[str, ...]
    out: str
    select: str | None = None


def ingested(archived: DataFrame) -> DataFrame:
    """Every event once, with the day of its time in UTC.

    Several brokers may have taken the same event, and (publisher, sequence) names it for ever: of its copies the one
    that was archived first is kept, so that a second run keeps the same.
    """
    rest = [name for name in ARCHIVE.names if name not in ("publisher", "sequence")]
    first = sf.min_by(sf.struct(*rest), sf.struct("time", "broker")).alias("first")
    once = archived.groupBy("publisher", "sequence").agg(first).select("publisher", "sequence", "first.*")
    return shaped(once.withColumn("day", sf.date_format("time", "yyyy-MM-dd")).select(*INGESTED.names), INGESTED)


def run(spark: SparkSession, options: IngestOptions, progress: Progress | None = None) -> Summary:
    """Read all archives, and put one dataset in the place of an older one."""
    with watched(spark, "ingest", progress) as summary:
        out = Output(spark, options.out)
        sources = [read(spark, path, ARCHIVE, "archive", options.select) for path in options.archives]
        good, bad = sources[0].good, sources[0].bad
        for source in sources[1:]:
            good, bad = good.unionByName(source.good), bad.unionByName(source.bad)
        out.write("events", ingested(good), INGESTED, ["day"])
        out.write("quarantine", bad.unionByName(unreadable(good)), QUARANTINE, ["dataset"])
        out.finish()
        summary.rows_in, summary.quarantined = good.count(), out.rows["quarantine"]
        summary.rows_out = {"events": out.rows["events"]}
        summary.notes.append(f"{summary.rows_in - out.rows['events']:,} copies of the same events left out")
    return summary

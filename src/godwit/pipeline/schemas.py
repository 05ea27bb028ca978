"""One `StructType` for each dataset that is read or written. A column that may not be null is required."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DoubleType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

STRING, LONG, DOUBLE, BOOL, TIME = (
    StringType(),
    LongType(),
    DoubleType(),
    BooleanType(),
    TimestampType(),
)


def shaped(frame: DataFrame, schema: StructType) -> DataFrame:
    """The frame with the columns of the schema, in its order and types.

    Spark does not believe that a computed column has no nulls, so required columns are not claimed to have none.
    """
    return frame.to(StructType([StructField(field.name, field.dataType) for field in schema]))


def column(name: str) -> Column:
    """The column of this very name, dots and backticks in it included."""
    return sf.col(quoted(name))


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _table(required: dict[str, DataType], optional: dict[str, DataType] | None = None) -> StructType:
    fields = [StructField(name, kind, nullable=False) for name, kind in required.items()]
    return StructType([*fields, *(StructField(name, kind) for name, kind in (optional or {}).items())])


LATE = StructType([*_table({"sensor": STRING, "time_s": DOUBLE}), *_table({}, {"record": STRING})])
"""Readings that came to a stream after their window was written; `record` is the reading as JSON."""

QUARANTINE = _table({"dataset": STRING, "reason": STRING}, {"file": STRING, "record": STRING})
"""What could not be used, and why; `record` is the row as JSON, or the line as it stood in the file."""

QUALITY = _table({"dataset": STRING, "measure": STRING, "figure": DOUBLE}, {"of": STRING})
"""What a run saw: rows, quarantined, lateness_s; with `of` quarantined by reason, and nulls, least, most by column."""

_OF_EVENTS: dict[str, DataType] = {
    "topic": STRING,
    "qos": ByteType(),
    "retain": BOOL,
    "attributes": STRING,
    "lat": DOUBLE,
    "lon": DOUBLE,
    "payload": BinaryType(),
}

ARCHIVE_FILES = _table({"broker": STRING, "publisher": STRING, "sequence": LONG, "time": TIME}, _OF_EVENTS)
"""The files that a broker archives events to."""

ARCHIVE = _table({"broker": STRING, "publisher": STRING, "sequence": LONG, "time_s": DOUBLE}, _OF_EVENTS)
"""The same in the pipeline, where a time is `time_s`; `attributes` is a JSON object of all that a filter sees."""

INGESTED = StructType([*ARCHIVE, StructField("day", STRING, nullable=False)])
"""Archives brought together: every event once, in folders by `day` (UTC)."""

TRACES = _table(
    {"time_s": DOUBLE, "node": STRING, "kind": STRING},
    {
        "publisher": STRING,
        "sequence": LONG,
        "client": STRING,
        "peer": STRING,
        "message": STRING,
        "size_b": LONG,
        "hops": LONG,
        "note": STRING,
    },
)
"""What brokers and clients recorded, simulated or deployed."""

SUBSCRIPTIONS = _table({"id": STRING, "filter": STRING})

POSITIONS = _table({"subscriber": STRING, "time_s": DOUBLE, "lat": DOUBLE, "lon": DOUBLE})
SITES = _table({"site": STRING, "lat": DOUBLE, "lon": DOUBLE})

ATTACHMENTS = _table({"subscriber": STRING, "time_s": DOUBLE}, {"site": STRING, "attached": BOOL, "until_s": DOUBLE})
"""Who was attached where. A row without a site, or with `attached` false, is a disconnection: from any site, or from
this one. `until_s` is when the attachment ended, where the row itself knows."""

ASSOCIATIONS = _table({"subscriber": STRING, "time_s": DOUBLE, "site": STRING}, {"distance_m": DOUBLE, "log_row": LONG})
"""Who was where; `log_row` grows along the log, and says which of two rows of one second came first."""

VISITS = _table(
    {
        "subscriber": STRING,
        "site": STRING,
        "entered_s": DOUBLE,
        "last_fix_s": DOUBLE,
        "left_s": DOUBLE,
        "fixes": LONG,
        "began": STRING,
        "ended": STRING,
        "ping_pong": BOOL,
    },
    {"next_site": STRING, "next_s": DOUBLE, "previous_site": STRING},
)
"""Uninterrupted stays. `began` is handoff, gap or begin, `ended` is handoff, gap or end, and `ping_pong` says which of
these handoffs were; `next_site` is where the subscriber was seen next."""

HANDOFFS = _table(
    {"subscriber": STRING, "time_s": DOUBLE, "day": STRING, "site": STRING, "next_site": STRING, "ping_pong": BOOL},
    {"previous_site": STRING},
)

NEIGHBORS = _table(
    {
        "broker": STRING,
        "peer": STRING,
        "uses": LONG,
        "last_used_s": DOUBLE,
        "handoffs_out": LONG,
        "ping_pongs_out": LONG,
        "probability": DOUBLE,
    },
    {"before": MapType(STRING, LONG)},
)
"""The neighbor graph, each edge once at either end: `uses` and `last_used_s` are what a broker keeps of it (2.5).

`godwit neighbors import` takes it as it is: from `broker` to `peer`, gone `uses` times both ways and `handoffs_out`
times this way, last at `last_used_s` (seconds since 1970); `probability` is that of the peer being next. `before` says
how many of `handoffs_out` had come from which site, `broker` itself standing for none; null where there are none."""

DISTRIBUTIONS = _table(
    {"measure": STRING, "samples": LONG, "mean_s": DOUBLE},
    {"site": STRING, **{f"p{share}_s": DOUBLE for share in (5, 25, 50, 75, 95, 99)}},
)
"""Dwell and gap times, of each site and (`site` null) of all."""

RATES = _table(
    {"connects": LONG, "disconnects": LONG, "handoffs": LONG, "neighbors": LONG},
    {
        "site": STRING,
        "connect_mean_s": DOUBLE,
        "disconnect_mean_s": DOUBLE,
        "handoff_mean_s": DOUBLE,
        "to_disconnect": DOUBLE,
        "to_same_broker": DOUBLE,
        "beta_per_s": DOUBLE,
        "delta_random_per_s": DOUBLE,
        "delta_neighboring_per_s": DOUBLE,
        "alpha_random_per_s": DOUBLE,
        "alpha_neighboring_per_s": DOUBLE,
    },
)
"""Means and rates of the Markov models (3.3 to 3.5), of each site and (`site` null) of all."""

FORECASTS = _table(
    {
        "day": STRING,
        "model": STRING,
        "handoffs": LONG,
        "learned": LONG,
        "known": DOUBLE,
        "likeliest": DOUBLE,
        "among_three": DOUBLE,
        "neighbors": DOUBLE,
    }
)
"""How well the other days foretell one: shares of its handoffs whose target was known, likeliest, among three.

`handoffs` is how many were foretold, `learned` from how many of the other days, ping-pong left out of both."""

READINGS = _table({"sensor": STRING, "time_s": DOUBLE}, {"lat": DOUBLE, "lon": DOUBLE})
"""What sensors measured, one column more for each quantity; a null is a missing value, never a zero."""

MEASURES = _table(
    {"sensor": STRING, "time_s": DOUBLE, "quantity": STRING}, {"value": DOUBLE, "lat": DOUBLE, "lon": DOUBLE}
)
"""The same with one row for each quantity."""

AREAS = _table({"area": STRING, "filter": STRING})
"""Places of interest, each a filter on `lat` and `lon` or on anything else that a reading has."""

AGGREGATES = _table(
    {
        "area": STRING,
        "quantity": STRING,
        "from_s": DOUBLE,
        "until_s": DOUBLE,
        "readings": LONG,
        "missing": LONG,
        "sensors": LONG,
    },
    {"mean": DOUBLE, "least": DOUBLE, "most": DOUBLE},
)
"""What an area looked like in a window of time, `until_s` not included; `mean` is null where no value is."""

GAPS = _table(
    {"sensor": STRING, "quantity": STRING, "from_s": DOUBLE, "until_s": DOUBLE, "missing": LONG, "reason": STRING}
)
"""When a sensor told nothing: it sent no value, or was silent. `missing` counts the values that should have come."""

EXPECTED = _table({"publisher": STRING, "sequence": LONG, "client": STRING})
"""Who should get what."""

OUTCOMES = _table(
    {"publisher": STRING, "sequence": LONG, "client": STRING, "is_expected": BOOL, "copies": LONG},
    {"published_s": DOUBLE, "delivered_s": DOUBLE, "latency_s": DOUBLE, "hops": LONG, "was_dropped": BOOL},
)
"""Every event and every client that should have got it, or did."""

FIGURES = _table(
    {
        "cut": STRING,
        "expected": LONG,
        "delivered": LONG,
        "lost": LONG,
        "dropped": LONG,
        "duplicates": LONG,
        "unexpected": LONG,
        "out_of_order": LONG,
    },
    {"name": STRING, **{f"latency_p{share}_s": DOUBLE for share in (50, 95, 99)}, "latency_max_s": DOUBLE},
)
"""What became of the events: of all, of each client, of each minute of publication (`cut` and `name`)."""

RELOCATIONS = _table({"client": STRING, "time_s": DOUBLE, "broker": STRING}, {"previous": STRING, "latency_s": DOUBLE})
"""Clients that attached to another broker, and how long until the first event reached them there."""

OVERHEAD = _table({"kind": STRING, "message": STRING, "records": LONG, "bytes": LONG})

INTERVALS = _table({"measure": STRING, "runs": LONG, "mean": DOUBLE}, {"low": DOUBLE, "high": DOUBLE})
"""After the columns of a cell of an experiment: the mean of a measure over its runs, and how far to trust it."""

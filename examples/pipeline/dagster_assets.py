"""The pipeline as assets of Dagster: what cabs did each day, and the graph that brokers begin with.

    dagster dev -f examples/pipeline/dagster_assets.py

FLEET is the folder that `fleet.py` makes, or one of yours; tables go to the folder `moves` in it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import dagster as dg
import pyarrow.parquet as pq

FLEET = Path(os.environ.get("FLEET", "data"))
SELECT = "cab AS subscriber, t AS time_s, lat, lon"


def godwit(*words: str) -> None:
    """A job in a process of its own, as a person would run it; what it says goes to the run's log."""
    subprocess.run([sys.executable, "-m", "godwit", "pipeline", *words], check=True)


@dg.asset
def moves() -> dg.MaterializeResult[None]:
    """Visits, handoffs and the neighbor graph of the positions there are."""
    out = FLEET / "moves"
    godwit("mobility", str(FLEET / "positions"), str(FLEET / "sites.csv"), "--out", str(out), "--select", SELECT)
    handoffs = sum(pq.read_metadata(file).num_rows for file in (out / "handoffs").rglob("*.parquet"))
    return dg.MaterializeResult(metadata={"handoffs": handoffs, "folder": str(out)})


@dg.asset(deps=[moves])
def neighbors() -> dg.MaterializeResult[None]:
    """The graph alone, which `godwit neighbors import` takes."""
    edges = pq.read_table(FLEET / "moves" / "neighbors").num_rows
    return dg.MaterializeResult(metadata={"edges": edges})


defs = dg.Definitions(
    assets=[moves, neighbors],
    schedules=[dg.ScheduleDefinition(name="nightly", target=[moves, neighbors], cron_schedule="0 3 * * *")],
)

"""The pipeline as a DAG of Airflow: learn every night, then publish to Iceberg.

FLEET is the folder that `fleet.py` makes, or one of yours; put this file, or a link to it, into the folder of DAGs.
"""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import datetime, timedelta
from pathlib import Path

from airflow.sdk import dag, task

FLEET = Path(os.environ.get("FLEET", "data"))
TARGET = os.environ.get("FLEET_TABLES", "delta:lake")
SELECT = "cab AS subscriber, t AS time_s, lat, lon"


def godwit(*words: str) -> None:
    """A job in a process of its own. To run it again is safe: a run that was killed left the older result."""
    subprocess.run([sys.executable, "-m", "godwit", "pipeline", *words], check=True)


@dag(
    dag_id="godwit_fleet",
    schedule="0 3 * * *",
    start_date=datetime(2026, 1, 1),
    catchup=False,
    default_args={"retries": 2, "retry_delay": timedelta(minutes=5)},
    tags=["godwit"],
)
def fleet() -> None:
    @task
    def learn() -> str:
        out = str(FLEET / "moves")
        godwit("mobility", str(FLEET / "positions"), str(FLEET / "sites.csv"), "--out", out, "--select", SELECT)
        return out

    @task
    def publish(out: str) -> None:
        godwit("publish", out, TARGET)

    publish(learn())


made = fleet()

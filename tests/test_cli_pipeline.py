"""`godwit pipeline`: what can be typed for each job, and what is said before any Spark is started."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from godwit.cli import app

JOBS = ("audit", "gathering", "ingest", "match", "mobility", "sweep")


def test_all_jobs_are_listed() -> None:
    told = CliRunner().invoke(app, ["pipeline", "--help"]).output
    assert [job for job in JOBS if f"  {job} " in told] == list(JOBS)


@pytest.mark.parametrize("job", JOBS)
def test_each_job_explains_itself(job: str) -> None:
    answer = CliRunner().invoke(app, ["pipeline", job, "--help"])
    assert answer.exit_code == 0
    assert all(word in answer.output for word in ("--out", "--master", "--conf", "Example", "Exit status:"))


def test_a_setting_that_is_none_of_sparks_is_refused() -> None:
    pytest.importorskip("pyspark")
    answer = CliRunner().invoke(app, ["pipeline", "audit", "traces", "--out", "o", "--conf", "memory"])
    assert answer.exit_code == 2
    assert "--conf 'memory': must be a setting of Spark, as in spark.executor.memory=4g" in answer.stderr


def test_cells_need_to_know_where_sensors_stand() -> None:
    pytest.importorskip("pyspark")
    answer = CliRunner().invoke(app, ["pipeline", "gathering", "r", "--out", "o", "--quantities", "pm25", "--cells"])
    assert answer.exit_code == 2
    assert "--cells needs --sensors" in answer.stderr


def test_only_brokers_can_be_asked_for_a_part() -> None:
    pytest.importorskip("pyspark")
    answer = CliRunner().invoke(app, ["pipeline", "ingest", "archive", "--out", "o", "--filter", "pm25 > 150"])
    assert answer.exit_code == 2
    assert "--filter and --topic are for sources such as godwit://host:port" in answer.stderr


def test_what_is_to_be_shipped_reaches_the_session() -> None:
    pytest.importorskip("pyspark")
    words = ["match", "events", "wishes", "--out", "o", "--ship", "all", "--master", "sc://127.0.0.1:1"]
    answer = CliRunner().invoke(app, ["pipeline", *words])
    assert answer.exit_code == 2
    assert "--ship is for sessions of this machine" in answer.stderr

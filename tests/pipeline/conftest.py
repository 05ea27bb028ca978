"""One Spark session for all tests of the pipeline: to start one takes longer than most tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

pytest.importorskip("pyspark")

from pyspark.sql import SparkSession

from godwit.pipeline.session import QUIET, Options, start


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    # Small frames, and many of them: what is compiled for them is hardly ever used twice.
    quick = {
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.extraJavaOptions": f"{QUIET} -XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    }
    # A task may fail three times, as on a cluster.
    running = start(Options(master="local[2,4]", name="tests", memory="1g", settings=quick))
    yield running
    running.stop()

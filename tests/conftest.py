"""How the whole suite is run.

HYPOTHESIS_PROFILE says how hard hypothesis tries: `dev` (the default), `ci` (what `make test` runs) or `deep`. `ci`
draws the same examples every time, so that a red run means a change and not the luck of the day.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Timing says more about the neighbors on a shared machine than about the code.
settings.register_profile("dev", deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("dev"), derandomize=True, database=None, max_examples=100)
settings.register_profile("deep", settings.get_profile("dev"), max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))

# A shell that starts the suite in the background has it ignore Ctrl-C, and all that it starts: tests send Ctrl-C.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# For every Spark that tests start, also by commands in processes of their own. With SPARK_CONF_DIR no Java could take
# Spark's classes from an archive (`godwit.pipeline.classes`).
SETTINGS = Path(__file__).with_name("spark") / "spark-defaults.conf"
os.environ["PYSPARK_SUBMIT_ARGS"] = f"--properties-file '{SETTINGS}' pyspark-shell"


FIRST_HALF = ("audit", "gathering", "io", "match", "mobility")
"""Rooms of `tests/pipeline` that take as long together as all else that needs Spark."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whatever needs Spark is in two groups, of a session each, so that two workers end together.

    Tests of a module that share what it has made once (a broker, wheels, results of runs) are a group too: each worker
    that gets one of them would make it again. The larger groups are handed out first; tests that belong to none come
    after them, one by one.
    """
    rooms = tuple(Path(__file__).parent / "pipeline" / name for name in FIRST_HALF)
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            is_first = any(item.path.is_relative_to(room) for room in rooms)
            item.add_marker(pytest.mark.xdist_group("spark 1" if is_first else "spark 2"))
        elif shares(item) and item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(item.nodeid.partition("::")[0]))


def shares(item: pytest.Item) -> bool:
    """Whether it uses something that is made once for its module."""
    known = item._fixtureinfo.name2fixturedefs if isinstance(item, pytest.Function) else {}
    return any(found[-1].scope == "module" for found in known.values())


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One Spark session for all tests of a worker: to start one takes longer than most of them."""
    pytest.importorskip("pyspark")
    from godwit.pipeline.session import QUIET, Options, start

    quick = {"spark.sql.shuffle.partitions": "2", "spark.driver.extraJavaOptions": f"{QUIET} -XX:+UseSerialGC"}
    # GODWIT_TESTS_SPARK=sc://127.0.0.1:PORT has a Spark Connect server do the work; `test_driver` starts one.
    if remote := os.environ.get("GODWIT_TESTS_SPARK"):
        connected = start(Options(master=remote, settings={"spark.sql.shuffle.partitions": "2"}))
        yield connected
        connected.stop()
        return
    # A task may fail three times, as on a cluster.
    running = start(Options(master="local[2,4]", name="tests", memory="1g", settings=quick))
    yield running
    running.stop()

"""How the whole suite is run.

HYPOTHESIS_PROFILE says how hard hypothesis tries: `dev` (the default), `ci` (what `make test` runs) or `deep`. `ci`
draws the same examples every time, so that a red run means a change and not the luck of the day.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings
from tests import seeds
from tools import direct_files, groups, zygote
from typer import testing
from typer.main import get_command

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from xdist.remote import Producer

pytest_plugins = ("tools.bounds",)

# Timing says more about the neighbors on a shared machine than about the code.
settings.register_profile("dev", deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("dev"), derandomize=True, database=None, max_examples=25)
settings.register_profile("deep", settings.get_profile("dev"), max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))

# A shell that starts the suite in the background has it ignore Ctrl-C, and all that it starts: tests send Ctrl-C.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Tests start hundreds of Pythons. Where none may leave bytecode, each compiles all of godwit again, and each worker all
# tests with their assertions.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Commands and their options are found out once, and not each time that a test gives a command.
testing._get_command = cache(get_command)  # type: ignore[attr-defined]

# Brokers and commands in processes of their own are forks of one that has loaded them, but for tests of the start.
zygote.use()

# For every Spark that tests start, also by commands in processes of their own. With SPARK_CONF_DIR no Java could take
# Spark's classes from an archive (`godwit.pipeline.classes`).
ROOT = Path(__file__).resolve().parents[1]
SETTINGS = ROOT / "tests" / "spark" / "spark-defaults.conf"
os.environ["PYSPARK_SUBMIT_ARGS"] = f"--properties-file '{SETTINGS}' pyspark-shell"
direct_files.use()

SPARK = {
    "spark-drivers": ["docs", "pipeline/streaming/test_queries.py", "pipeline/test_session_cluster.py"],
    "spark": [""],
}
"""Where tests are that share a session, the first that fits: what starts drivers, clusters and brokers of its own and
waits for them, and all else. Spark computes where other tests wait: with as many sessions as a small machine has cores,
and workers for other tests beside them, neither is idle."""
FIRST = (*SPARK, "tests/test_distributions.py", "console", "hosts", "checked")
"""Groups that take longest: whoever begins with them is not waited for at the end."""
LONG_S = 7_200
"""What a test may take with thousands of examples or hundreds of worlds."""
WAITING = ("client", "commands", "console", "docs", "net")
"""Rooms whose tests wait for brokers and networks. They come before those that compute, beside Spark."""


def pytest_configure(config: pytest.Config) -> None:
    seeds.EXPLORED = config.option.markexpr != "not explore"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Whatever needs Spark is in a few groups, of a session each; none of them takes as long as a worker has."""
    here = Path(__file__).parent
    for item in items:
        if os.environ.get("HYPOTHESIS_PROFILE") == "deep" or item.get_closest_marker("explore"):
            item.add_marker(pytest.mark.bound(LONG_S))
        if "spark" in getattr(item, "fixturenames", ()):
            there = item.path.relative_to(here)
            fitting = (name for name, places in SPARK.items() if any(there.is_relative_to(place) for place in places))
            groups.join(item, next(fitting))
        elif groups.shares(item):
            groups.join(item, item.nodeid.partition("::")[0])
    if groups.are_asked_for(config):
        items.sort(key=lambda item: item.path.relative_to(here).parts[0] not in WAITING)
        items[:] = groups.ordered(items, FIRST)
        groups.name_after_groups(items)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> groups.Scheduling | None:
    return groups.Scheduling(config, log) if config.getoption("dist") == "loadgroup" else None


@pytest.hookimpl(trylast=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    groups.name_plainly(session.items)
    # Half a million objects that stay until the end need not be looked through again with every collection.
    gc.collect()
    gc.freeze()


@pytest.fixture
def started_truly() -> Iterator[None]:
    """For tests of what happens when a process starts: each loads everything itself."""
    with zygote.started_truly():
        yield


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One Spark session for all tests of a worker: to start one takes longer than most of them."""
    pytest.importorskip("pyspark")
    from godwit.pipeline.session import QUIET, Options, start

    options = f"{QUIET} -XX:+UseSerialGC -Xmn400m"
    quick = {"spark.sql.shuffle.partitions": "2", "spark.driver.extraJavaOptions": options}
    # GODWIT_TESTS_SPARK=sc://127.0.0.1:PORT has a Spark Connect server do the work; `test_driver` starts one.
    if remote := os.environ.get("GODWIT_TESTS_SPARK"):
        connected = start(Options(master=remote, settings={"spark.sql.shuffle.partitions": "2"}))
        yield connected
        connected.stop()
        return
    if Path.cwd() == ROOT:
        quick["spark.python.daemon.module"] = "tools.daemon"
    # A task may fail three times, as on a cluster.
    running = start(Options(master="local[2,4]", name="tests", memory="1g", settings=quick))
    # Java looks for a short name in all its jars, each time that a column is named.
    names = running.sparkContext._jvm
    for name in ("functions", "PythonUtils", "PythonSQLUtils"):
        setattr(names, name, getattr(names, name))
    yield running
    running.stop()

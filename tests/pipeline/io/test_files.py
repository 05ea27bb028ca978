"""Files of this machine by Python do what Hadoop's own do, which is the oracle here."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from godwit.pipeline.errors import PipelineError
from godwit.pipeline.io.files import Files, LocalFiles, beside, place, within
from godwit.pipeline.io.hadoop import HadoopFiles


def told(files: LocalFiles | HadoopFiles, folder: str) -> list[Any]:
    """What a series of questions and changes answers."""
    a, b, deep = within(folder, "a"), within(folder, "b b"), within(folder, "deep/er/c")
    answers: list[Any] = [files.exists(folder), files.names(folder), files.read(a), files.walk(folder)]
    files.write(deep, "one")
    files.write(deep, "two: \u00e9")
    answers += [files.write_new(a, "first"), files.write_new(a, "second"), files.read(a), files.read(deep)]
    files.rename(within(folder, "deep"), b)
    answers += [files.names(folder), files.names(b), files.exists(deep), files.read(within(b, "er/c"))]
    answers.append([(Path(name).name, size) for name, _, size in files.walk(folder)])
    files.make_folder(within(folder, "x/y"))
    files.delete(b)
    files.delete(within(folder, "nothing"))
    answers.append(files.names(folder))
    files.delete(a)
    return [*answers, files.names(folder)]


def test_python_and_hadoop_answer_alike(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "python").mkdir()
    (tmp_path / "hadoop").mkdir()
    assert told(LocalFiles(), str(tmp_path / "python")) == told(HadoopFiles(spark), str(tmp_path / "hadoop"))


@pytest.mark.parametrize("form", ["{}", "file:{}", "file://{}"])
def test_a_path_of_this_machine_is_found_in_every_way_that_it_is_written(
    form: str, spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "a b").write_text("there")
    path = form.format(tmp_path / "a b")
    assert Files(spark).local(path) == tmp_path / "a b" == place(path) == HadoopFiles(spark).local(path)
    assert Files(spark).read(path) == "there"


def test_what_is_elsewhere_is_hadoop_s(spark: SparkSession) -> None:
    assert Files(spark).local("hdfs://there:8020/events") is None
    assert beside("/data/events", "lock") == "/data/.events.lock"


def test_a_folder_that_may_not_be_renamed_says_so(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match=f"cannot be renamed to .*: {os.strerror(2)}"):
        LocalFiles().rename(str(tmp_path / "nothing"), str(tmp_path / "there"))

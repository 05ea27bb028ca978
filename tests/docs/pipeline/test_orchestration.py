"""The notebook and the schedulers' examples, run over a small fleet."""

from __future__ import annotations

import gzip
import importlib.util
import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow.csv
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark")

from pyspark.sql import SparkSession
from tests.seeds import few
from typer.testing import CliRunner

from godwit.cli import app
from godwit.commands.pipeline import session

DATA = Path(__file__).resolve().parents[2] / "data"
EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "pipeline"


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    subprocess.run([sys.executable, str(EXAMPLES / "fleet.py"), str(tmp_path), "6"], check=True)
    monkeypatch.setenv("FLEET", str(tmp_path))
    return tmp_path


@pytest.fixture
def own_settings(spark: SparkSession) -> Iterator[None]:
    """What a test tells the session of all tests, it tells nobody else: a notebook asks for more partitions."""
    before = spark.conf.getAll
    yield
    for name, value in spark.conf.getAll.items():
        if name not in before:
            spark.conf.unset(name)
        elif before[name] != value and spark.conf.isModifiable(name):
            spark.conf.set(name, before[name])


def loaded(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class InOneSession:
    """As much of `subprocess` as the examples use: what they start runs here, in the Spark session of all tests."""

    def __init__(self, spark: SparkSession, patch: pytest.MonkeyPatch) -> None:
        self.jobs, self._real = list[str](), subprocess.run
        patch.setattr(session, "started", lambda name, asked: spark)
        patch.setattr(SparkSession, "stop", lambda self: None)

    def run(self, command: list[str], *, check: bool = False, **others: Any) -> None:
        if command[:4] != [sys.executable, "-m", "godwit", "pipeline"]:
            # A library's thread may start something of its own meanwhile.
            self._real(command, check=check, **others)
            return
        assert check, "a job that fails must fail the task"
        self.jobs.append(command[4])
        done = CliRunner().invoke(app, command[3:])
        assert done.exit_code == 0, done.output


def taxis(folder: Path) -> None:
    """The recording of this suite, under the names of the whole week's."""
    shutil.copy(DATA / "taxis.parquet", folder / "sf_taxi_gps_week.parquet")
    rows = pyarrow.csv.read_csv(DATA / "sites.csv").to_pylist()
    cells = [f"{256 * number},{row['lat']},{row['lon']}" for number, row in enumerate(rows)]
    with gzip.open(folder / "sf_lte_cells.csv.gz", "wt") as file:
        file.write("\n".join(["cell,lat,lon", *cells]))


@pytest.mark.usefixtures("own_settings")
@pytest.mark.parametrize("what", few(1, ["recorded taxis", "a generated fleet"]))
def test_the_cells_of_the_notebook_run_and_draw_a_map_and_plots(
    fleet: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    pytest.importorskip("matplotlib").use("Agg")
    import matplotlib.pyplot as plt

    if what == "recorded taxis":
        taxis(fleet)
        monkeypatch.setenv("TAXIS", str(fleet))
    plt.close("all")
    cells = json.loads((EXAMPLES / "fleet.ipynb").read_text())["cells"]
    known: dict[str, Any] = {}
    for number, cell in enumerate(cells):
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), f"cell {number}", "exec"), known)
    figures = [plt.figure(number) for number in plt.get_fignums()]
    assert [len(figure.axes) for figure in figures] == [1, 2, 2]
    [area] = figures[0].axes
    assert len(area.lines) == len(known["edges"]) > 0
    handoffs = f"{pq.read_table(fleet / 'notebook' / 'handoffs').num_rows:,} handoffs"
    assert handoffs in area.get_title()
    assert figures[2].axes[0].get_title() == handoffs
    plt.close("all")


def test_dagster_materializes_the_assets(fleet: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    dagster = pytest.importorskip("dagster")
    module = loaded("dagster_assets")
    here = InOneSession(spark, monkeypatch)
    monkeypatch.setattr(module, "subprocess", here)
    done = dagster.materialize([module.moves, module.neighbors])
    assert done.success
    assert here.jobs == ["mobility"]
    [told] = done.asset_materializations_for_node("neighbors")
    assert told.metadata["edges"].value == pq.read_table(fleet / "moves" / "neighbors").num_rows


class Sdk(ModuleType):
    """As much of `airflow.sdk` as the example uses. Airflow itself brings some hundred packages, too many for a
    development environment; `docs/pipeline/orchestration.md` says when the file was last loaded by it."""

    def __init__(self) -> None:
        super().__init__("airflow.sdk")
        self.told: dict[str, Any] = {}
        self.ran: list[str] = []

    def dag(self, **told: Any) -> Callable[[Callable[[], None]], Callable[[], None]]:
        self.told = told
        return lambda function: function

    def task(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def run(*given: Any) -> Any:
            self.ran.append(function.__name__)
            return function(*given)

        return run


def test_the_tasks_of_the_airflow_dag_learn_and_then_publish(
    fleet: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("deltalake")
    sdk = Sdk()
    monkeypatch.setitem(sys.modules, "airflow", ModuleType("airflow"))
    monkeypatch.setitem(sys.modules, "airflow.sdk", sdk)
    monkeypatch.setenv("FLEET_TABLES", f"delta:{fleet / 'lake'}")
    # Its tasks run as it is loaded.
    here = InOneSession(spark, monkeypatch)
    monkeypatch.setattr(subprocess, "run", here.run)
    loaded("airflow_dag")
    assert (sdk.ran, here.jobs) == (["learn", "publish"], ["mobility", "publish"])
    assert {"dag_id", "schedule", "start_date", "catchup"} <= set(sdk.told)
    from deltalake import DeltaTable

    rows = DeltaTable(str(fleet / "lake" / "handoffs")).to_pyarrow_table().num_rows
    assert rows == pq.read_table(fleet / "moves" / "handoffs").num_rows > 0

"""The notebook and the schedulers' examples, run over a small fleet."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark")

from pyspark.sql import SparkSession

EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "pipeline"


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    subprocess.run([sys.executable, str(EXAMPLES / "fleet.py"), str(tmp_path), "6"], check=True)
    monkeypatch.setenv("FLEET", str(tmp_path))
    return tmp_path


def loaded(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_cells_of_the_notebook_run_and_draw_a_map_and_plots(fleet: Path, spark: SparkSession) -> None:
    pytest.importorskip("matplotlib").use("Agg")
    import matplotlib.pyplot as plt

    plt.close("all")
    cells = json.loads((EXAMPLES / "fleet.ipynb").read_text())["cells"]
    known: dict[str, Any] = {}
    for number, cell in enumerate(cells):
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), f"cell {number}", "exec"), known)
    figures = [plt.figure(number) for number in plt.get_fignums()]
    assert [len(figure.axes) for figure in figures] == [1, 2]
    [area] = figures[0].axes
    assert len(area.lines) == len(known["edges"]) > 0
    assert f"{pq.read_table(fleet / 'notebook' / 'handoffs').num_rows:,} handoffs" in area.get_title()
    plt.close("all")


def test_dagster_materializes_the_assets(fleet: Path) -> None:
    dagster = pytest.importorskip("dagster")
    module = loaded("dagster_assets")
    done = dagster.materialize([module.moves, module.neighbors])
    assert done.success
    [told] = done.asset_materializations_for_node("neighbors")
    assert told.metadata["edges"].value == pq.read_table(fleet / "moves" / "neighbors").num_rows


def test_airflow_finds_the_dag_with_its_two_tasks(fleet: Path) -> None:
    pytest.importorskip("airflow")
    made = loaded("airflow_dag").made
    assert [task.task_id for task in made.topological_sort()] == ["learn", "publish"]

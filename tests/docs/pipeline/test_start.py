"""The first page for data engineers is run as it stands, with other ports."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("pyiceberg")

from godwit.net.processes import free_ports

ROOT = Path(__file__).resolve().parents[3]
WAIT_S = 600


def steps(page: str) -> str:
    return "set -eu\n" + "\n".join(re.findall(r"^```sh\n(.*?)^```", page, re.MULTILINE | re.DOTALL))


def test_the_steps_lead_from_parquet_to_iceberg_and_a_stream(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples" / "pipeline", tmp_path / "examples" / "pipeline")
    (tmp_path / "bin").mkdir()
    for name, words in {"godwit": "-m godwit", "python": ""}.items():
        (tmp_path / "bin" / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {words} "$@"\n')
        (tmp_path / "bin" / name).chmod(0o755)
    script = steps((ROOT / "docs" / "pipeline" / "start.md").read_text())
    for old, new in zip(("9884", "1885"), free_ports(2), strict=True):
        script = script.replace(f"127.0.0.1:{old}", f"127.0.0.1:{new}")
    environment = {**os.environ, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT / "src")}
    # A broker that a failed step leaves behind ends with the shell that started it.
    guarded = script.replace("BROKER=$!", "BROKER=$!; trap 'kill $BROKER 2>/dev/null || true' EXIT")
    done = subprocess.run(
        ["bash", "-c", guarded], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=WAIT_S
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^\d{2,} handoffs$", done.stdout, re.MULTILINE), done.stdout
    assert "2 events in 2 commits" in done.stdout, done.stdout

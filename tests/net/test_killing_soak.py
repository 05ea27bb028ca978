"""The soak can set the calendar of the processes that it starts, and of no other."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.net.soaking import CLOCK, set_clock


@pytest.mark.parametrize("offset_s", [0.0, -700_000.0, 3_600.0])
def test_a_process_of_the_soak_has_the_time_that_it_is_given(tmp_path: Path, offset_s: float) -> None:
    (tmp_path / "sitecustomize.py").write_text(CLOCK)
    set_clock(tmp_path / "clock", offset_s)
    told = {**os.environ, "PYTHONPATH": str(tmp_path), "GODWIT_SOAK_CLOCK": str(tmp_path / "clock")}
    asked = [sys.executable, "-c", "import time; print(time.time())"]
    said = subprocess.run(asked, env=told, capture_output=True, text=True, check=True).stdout
    assert float(said) - time.time() == pytest.approx(offset_s, abs=300)

"""What `examples/` promises."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from typer.testing import CliRunner

from godwit.cli import app

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"


def test_the_files_and_the_script_deliver_the_same() -> None:
    files = [str(EXAMPLES / name) for name in ("events.jsonl", "subscriptions.jsonl")]
    result = CliRunner().invoke(app, ["match", *files, "--out", "-"])
    assert result.exit_code == 0
    pairs = {(one["event_id"], one["subscription"]) for one in map(json.loads, result.stdout.splitlines())}
    assert ("e4", "night shift") in pairs
    assert ("e5", "night shift") not in pairs

    script = subprocess.run([sys.executable, EXAMPLES / "matching.py"], capture_output=True, text=True, check=True)
    told = [line.split(" -> ") for line in script.stdout.splitlines() if " -> " in line]
    assert {(event, name) for event, names in told for name in names.split(", ")} == pairs

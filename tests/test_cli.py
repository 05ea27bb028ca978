"""The command line as a whole: how it starts, helps and refuses."""

from __future__ import annotations

import subprocess
import sys

import pytest
from typer.testing import CliRunner

import godwit
from godwit.cli import app
from godwit.commands import explanation
from godwit.commands.lab import structures

GODWIT = [sys.executable, "-c", "from godwit.cli import main; main()"]


def test_the_version_is_that_of_the_package() -> None:
    result = CliRunner().invoke(app, ["--version"])
    assert result.exit_code == 0
    assert result.stdout == f"godwit {godwit.__version__}\n"


SINGLE = [[one.name or str(getattr(one.callback, "__name__", ""))] for one in app.registered_commands]


@pytest.mark.parametrize("command", [["filter", "explain"], ["neighbors", "show"], *SINGLE])
def test_every_command_has_help_with_examples(command: list[str]) -> None:
    result = CliRunner().invoke(app, [*command, "--help"])
    assert result.exit_code == 0
    assert "Examples:" in result.stdout
    assert f"godwit {' '.join(command)}" in result.stdout


def test_help_is_by_task_and_serve_comes_first() -> None:
    lines = CliRunner().invoke(app, ["--help"]).stdout.splitlines()
    at = lines.index("Run brokers:")
    assert lines[at + 1].split()[0] == "serve"
    headings = [line for line in lines if line.endswith(":") and not line.startswith(" ")]
    assert headings[:3] == ["Options:", "Run brokers:", "Publish and subscribe:"]
    assert "More:" not in headings, "a new command belongs to a task of commands/help.py"


@pytest.mark.parametrize("group", [["filter"], ["lab"]])
def test_a_group_without_a_command_shows_its_help(group: list[str]) -> None:
    result = CliRunner().invoke(app, group)
    assert "Usage: " in result.output
    assert "Commands:" in result.output


def test_an_unknown_command_suggests_a_near_one() -> None:
    process = subprocess.run([*GODWIT, "mtch"], capture_output=True, text=True, check=False)
    assert process.returncode == 2
    assert "No such command 'mtch'. Did you mean 'match'?" in process.stderr


@pytest.mark.parametrize("arguments", [["match"], ["match", "a", "b", "--limit", "-1"], ["demo", "--seconds", "soon"]])
def test_wrong_arguments_are_refused_with_status_2(arguments: list[str]) -> None:
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 2
    assert "Error: " in result.stderr


def test_help_starts_without_the_heavy_libraries() -> None:
    code = (
        "import sys\nfrom godwit.cli import app\n"
        "try:\n    app(['--help'])\nexcept SystemExit:\n    print(*sys.modules, file=sys.stderr)"
    )
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"asyncio", "numpy", "pyarrow", "numba", "rich.progress", "sqlglot", "urllib.request"} & set(
        process.stderr.split()
    )


def test_ctrl_c_is_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(explanation, "explained", interrupted)
    result = CliRunner().invoke(app, ["filter", "explain", "a = 1"])
    assert result.exit_code == 130
    assert result.stderr == "interrupted\n"


def test_an_experiment_that_cannot_run_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(*_: object) -> int:
        raise ModuleNotFoundError("No module named 'scipy'", name="scipy")

    monkeypatch.setattr(structures, "structures", absent)
    result = CliRunner().invoke(app, ["lab", "structures"])
    assert result.exit_code == 2
    assert result.stderr == "godwit: lab structures needs scipy, which comes with godwit[lab]\n"

"""`godwit prepare`: every function of the matcher is compiled ahead, for the arguments that it is called with."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping

import msgspec
import pytest
from tests.seeds import few
from tools.warm import CHECKED

from godwit.commands.upkeep.prepare import Prepared
from godwit.tables.compiled.entries import Kernels

LACKING = """
import sys
sys.modules["godwit.tables.compiled.machine"] = None  # as where the package came without machine code
from typer.testing import CliRunner
from godwit.cli import app
from godwit.net.preload import warm
from godwit.tables.compiled.doors import dispatcher
from godwit.tables.compiled.kernels import KERNELS

def overloads():
    return {len(dispatcher(kernel).overloads) for kernel in KERNELS}

print(CliRunner().invoke(app, ["prepare", "--json"]).stdout.strip())
assert overloads() == {1}
warm()
assert overloads() == {1}, "a kernel was compiled again, for other arguments"
print(CliRunner().invoke(app, ["prepare"]).stdout.strip())
"""


def prepared(mode: Mapping[str, str]) -> tuple[Prepared, str]:
    environment = {**os.environ, **mode}
    ran = subprocess.run([sys.executable, "-c", LACKING], env=environment, capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stderr
    figures, words = ran.stdout.splitlines()
    return msgspec.json.decode(figures, type=Prepared), words


@pytest.mark.bound(600)
@pytest.mark.parametrize("mode", few(1, [CHECKED, {}]))
def test_what_is_prepared_is_all_that_a_broker_needs_and_another_process_finds_it(mode: Mapping[str, str]) -> None:
    """In the checked mode most was compiled for other tests; to compile all once more takes a minute."""
    told, words = prepared(mode)
    assert told.compiled + told.known >= len(Kernels._fields)
    assert told.folder
    assert f"all {len(Kernels._fields)} functions were there" in words or "functions compiled" in words
    again, _ = prepared(mode)
    assert (again.compiled, again.known) == (0, len(Kernels._fields))

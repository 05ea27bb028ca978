"""Where the kernels come from: with the package, or from numba."""

from __future__ import annotations

import builtins
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from godwit.tables.compiled import doors, kernels
from godwit.tables.compiled.entries import Kernels


def machine(digest: int) -> SimpleNamespace:
    return SimpleNamespace(digest=lambda: digest, **{name: name for name in Kernels._fields})


def test_machine_code_of_these_sources_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, kernels.MACHINE, machine(kernels.digest()))
    assert kernels.ready() == Kernels(*Kernels._fields)  # type: ignore[arg-type]


def test_machine_code_of_other_sources_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, kernels.MACHINE, machine(kernels.digest() ^ 1))
    assert kernels.ready() is None


def test_the_checked_mode_never_takes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, kernels.MACHINE, machine(kernels.digest()))
    monkeypatch.setattr(kernels, "CHECKED", True)
    assert kernels.ready() is None


def test_without_either_it_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = builtins.__import__

    def lacking(name: str, *more: Any) -> Any:
        if name == "numba" or name.startswith("numba."):
            raise ModuleNotFoundError(f"No module named {name!r}", name="numba")
        return usual(name, *more)

    monkeypatch.delitem(sys.modules, doors.__name__)
    monkeypatch.delattr(doors.__name__)
    monkeypatch.setattr(builtins, "__import__", lacking)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'godwit\[jit\]'"):
        kernels.made()


def test_every_module_that_is_compiled_counts() -> None:
    compiled = {name for name in sys.modules if name.startswith("godwit.tables.compiled.")}
    beside = {"kernels", "entries", "state", "programs", "machine"}
    assert {name.rpartition(".")[2] for name in compiled} - beside == set(kernels.COMPILED)

"""The public names of the package."""

from __future__ import annotations

import sys
from importlib.metadata import version

import pytest

import godwit
from godwit.events import Event
from godwit.filters.text import parse


def test_every_public_name_is_there_and_listed() -> None:
    assert [name for name in godwit.__all__ if not hasattr(godwit, name)] == []
    assert set(godwit.__all__) <= set(dir(godwit))


def test_public_names_are_the_things_themselves() -> None:
    assert godwit.Event is Event
    assert godwit.parse is parse


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'godwit' has no attribute 'Bird'"):
        _ = godwit.Bird


def test_what_is_not_installed_is_told_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "godwit.tables.matching.index", None)
    monkeypatch.delitem(vars(godwit), "Index", raising=False)
    with pytest.raises(ModuleNotFoundError, match=r"^godwit\.Index needs .*: pip install godwit$"):
        _ = godwit.Index


def test_the_version_is_the_installed_one() -> None:
    assert godwit.__version__ == version("godwit")

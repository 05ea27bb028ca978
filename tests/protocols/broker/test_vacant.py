"""Nobody puts anything into the dict that stands for all empty ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from godwit.protocols.broker.vacant import VACANT, own


def _set(found: dict[Any, Any]) -> None:
    found["a"] = 1


def _join(found: dict[Any, Any]) -> None:
    found |= {"a": 1}


@pytest.mark.parametrize("add", [_set, _join, lambda found: found.update(a=1), lambda found: found.setdefault("a", 1)])
def test_who_adds_to_it_is_told_to_take_one_of_its_own(add: Callable[[dict[Any, Any]], object]) -> None:
    with pytest.raises(TypeError, match="of its own"):
        add(VACANT)
    assert not VACANT
    taken = own(VACANT)
    add(taken)
    assert taken == {"a": 1}
    assert own(taken) is taken


def test_it_is_written_as_any_empty_dict() -> None:
    assert msgspec.msgpack.encode(VACANT) == msgspec.msgpack.encode({})
    assert msgspec.json.encode(VACANT) == b"{}"

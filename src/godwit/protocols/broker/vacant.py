"""One empty dict for all who have nothing to put into theirs yet: each of its own would cost 64 bytes, and an idle
client has a dozen."""

from __future__ import annotations

from typing import Any, NoReturn, TypeVar

Key = TypeVar("Key")
Held = TypeVar("Held")


class Vacant(dict[Any, Any]):
    """To look at. Whoever adds something takes a dict of its `own` first, and is told so where it forgets."""

    __slots__ = ()

    def _refuse(self, *given: object, **named: object) -> NoReturn:
        raise TypeError("put it into a dict of its own")

    __setitem__ = __ior__ = setdefault = update = _refuse


VACANT: dict[Any, Any] = Vacant()


def own(found: dict[Key, Held]) -> dict[Key, Held]:
    """This one, or a new one where it stands for all that are empty."""
    return {} if found is VACANT else found

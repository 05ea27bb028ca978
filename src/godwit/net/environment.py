"""Settings by environment, as containers and service managers give them.

    GODWIT_NAME=north
    GODWIT_LISTEN__MQTT=0.0.0.0:1883,[::]:1883
    GODWIT_PEERS__SECRET_FILE=/run/secrets/cluster

A key of the file in capitals, with two underscores for a dot, and commas in a list. They win over the file, and flags
win over them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

import msgspec

PREFIX, DOT = "GODWIT_", "__"


class SettingError(ValueError):
    """A variable that sets nothing, or to what cannot be; the text names it."""


def settings_of(
    environment: Mapping[str, str], config: type[msgspec.Struct], decoded: Callable[[type, Any], Any]
) -> dict[str, Any]:
    """The keys that are set, with dots, and their values. `SettingError` where there is no such key or value.

    Variables of one word that are no key are left alone: others use the prefix too, as Kubernetes for a service that
    is called godwit.
    """
    found = {}
    for variable, text in sorted(environment.items()):
        if not variable.startswith(PREFIX):
            continue
        names = variable.removeprefix(PREFIX).lower().split(DOT)
        kind = _kind_of(names, config)
        if kind is None:
            if len(names) > 1:
                raise SettingError(f"{variable}: there is no key {'.'.join(names)!r}")
            continue
        found[".".join(names)] = _value(variable, text, kind, decoded)
    return found


def _kind_of(names: list[str], config: Any) -> Any:
    """What stands under a key; None where there is no such key, or it is a whole table."""
    kind = config
    for name in names:
        tables = [one for one in _choices(kind) if isinstance(one, type) and issubclass(one, msgspec.Struct)]
        kind = get_type_hints(tables[0], include_extras=True).get(name) if tables else None
    return None if any(isinstance(one, type) and issubclass(one, msgspec.Struct) for one in _choices(kind)) else kind


def _choices(kind: Any) -> tuple[Any, ...]:
    return get_args(kind) if isinstance(kind, UnionType) else (kind,)


def _value(variable: str, text: str, kind: Any, decoded: Callable[[type, Any], Any]) -> Any:
    lists = any(get_origin(one) is tuple for one in _choices(kind))
    given: object = [one.strip() for one in text.split(",") if one.strip()] if lists else text
    try:
        # What comes out is as good as what a file says, and checked again together with that.
        return msgspec.to_builtins(msgspec.convert(given, kind, strict=False, dec_hook=decoded), enc_hook=str)
    except (msgspec.ValidationError, ValueError) as error:
        raise SettingError(f"{variable}: {str(error).partition(' - at')[0]}") from None

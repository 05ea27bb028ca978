"""A grid of runs as a file says it: an experiment, parameters with the values each is to take, and seeds."""

from __future__ import annotations

import itertools
import json
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, get_type_hints

import msgspec

EXPERIMENTS = {
    "mft": "godwit.lab.mft.runs:run",
    "handoff": "godwit.lab.handoff.runs:run",
    "adhoc": "godwit.lab.adhoc.runs:run",
    "explore": "godwit.lab.product.exploration:run",
}
"""A function `run(configuration: C) -> R` each, C a frozen struct with a field `seed`, R a struct of numbers."""

SEED = "seed"


class GridError(Exception):
    """A grid that cannot be run: the message names the file, what is wrong in it, and what would be right."""


class Said(msgspec.Struct, forbid_unknown_fields=True):
    """What stands in the file. `seeds` 5 means 1 to 5."""

    experiment: str
    seeds: int | list[int] = 1
    fixed: dict[str, Any] = {}
    grid: dict[str, list[Any]] = {}


class Grid(msgspec.Struct, frozen=True):
    configuration: type[msgspec.Struct]
    result: type[msgspec.Struct]
    work: Callable[[Any], Any]
    runs: Sequence[msgspec.Struct]


def read(path: Path) -> Grid:
    """The grid in a .toml or .json file; raises `GridError`."""
    try:
        text = path.read_text(encoding="utf-8")
        said = msgspec.convert(json.loads(text) if path.suffix == ".json" else tomllib.loads(text), Said)
        return _grid(said)
    except OSError as error:
        raise GridError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, GridError) as error:
        raise GridError(f"{path}: {error}") from None


def _grid(said: Said) -> Grid:
    work = _function(said.experiment)
    configuration, result = _kinds(said.experiment, work)
    fields = configuration.__struct_fields__
    for name in [*said.fixed, *said.grid]:
        if name not in fields or name == SEED:
            known = ", ".join(one for one in fields if one != SEED)
            raise GridError(f"{name!r} is no parameter of {said.experiment}; there are {known}")
    if empty := [name for name, values in said.grid.items() if not values]:
        raise GridError(f"grid.{empty[0]} has no values")
    seeds = range(1, said.seeds + 1) if isinstance(said.seeds, int) else said.seeds
    if not seeds:
        raise GridError("seeds: at least one, as in 5 (for 1 to 5) or [7, 8]")
    cells = [dict(zip(said.grid, values, strict=True)) for values in itertools.product(*said.grid.values())]
    runs = [_run(configuration, {**said.fixed, **cell, SEED: seed}) for cell in cells for seed in seeds]
    return Grid(configuration, result, work, list(dict.fromkeys(runs)))


def _run(configuration: type[msgspec.Struct], values: Mapping[str, Any]) -> msgspec.Struct:
    try:
        return msgspec.convert(values, configuration)
    except msgspec.ValidationError as error:
        told = ", ".join(f"{name} = {value}" for name, value in values.items())
        raise GridError(f"{told}: {error}") from None


def _function(name: str) -> Callable[[Any], Any]:
    """A function of somebody else's may be in the folder that this runs in, as for workers that are started there."""
    module, colon, function = EXPERIMENTS.get(name, name).partition(":")
    known = f"one of {', '.join(EXPERIMENTS)}, or a function of yours, as in package.module:function"
    if not colon:
        raise GridError(f"experiment {name!r}: {known}")
    if name not in EXPERIMENTS and "" not in sys.path:
        sys.path.append("")
    try:
        found: Callable[[Any], Any] = getattr(import_module(module), function)
    except (ImportError, AttributeError) as error:
        raise GridError(f"experiment {name!r}: {error}; {known}") from None
    return found


def _kinds(name: str, work: Callable[[Any], Any]) -> tuple[type[msgspec.Struct], type[msgspec.Struct]]:
    kinds = list(get_type_hints(work).values())
    if len(kinds) != 2 or not all(isinstance(kind, type) and issubclass(kind, msgspec.Struct) for kind in kinds):
        raise GridError(f"experiment {name!r}: must take one msgspec.Struct and return one, by its type hints")
    if SEED not in kinds[0].__struct_fields__ or not kinds[0].__struct_config__.frozen:
        raise GridError(f"experiment {name!r}: its configuration must be frozen and have a field {SEED!r}")
    return kinds[0], kinds[1]

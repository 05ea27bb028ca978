"""An experiment that is quick, can be told to misbehave, and leaves a mark each time it runs."""

from __future__ import annotations

import os
import time
import uuid
from pathlib import Path

import msgspec

GATE = "gate"


class Toy(msgspec.Struct, frozen=True, kw_only=True):
    seed: int
    size: int = 1
    marks: str = ""
    """A folder."""
    takes_s: float = 0.0
    first: int = 0
    """Where it is set, only so many runs end before there is a file `gate` beside the folder of marks."""
    fails: bool = False


class Played(msgspec.Struct):
    area: int
    noise: float
    place: str = "here"


def play(toy: Toy) -> Played:
    if toy.marks:
        Path(toy.marks, f"{toy.size}-{toy.seed}-{uuid.uuid4()}").touch()
    time.sleep(toy.takes_s)
    if toy.first and len(marked(Path(toy.marks))) > toy.first:
        while not Path(toy.marks).with_name(GATE).exists():
            time.sleep(0.02)
    if toy.fails and toy.seed == 2:
        raise RuntimeError(f"no luck with {toy.seed}")
    return Played(toy.size**2, toy.seed / 7)


def marked(folder: Path) -> dict[tuple[int, int], int]:
    """How often each size and seed was run."""
    found: dict[tuple[int, int], int] = {}
    for name in os.listdir(folder):
        size, seed, _ = name.split("-", 2)
        found[int(size), int(seed)] = found.get((int(size), int(seed)), 0) + 1
    return found

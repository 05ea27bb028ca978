"""Well-formed nonsense for the one decoder of peer traffic: frames of the right shape, with values that nobody says.

    python -m tests.net.wellformed --inputs 1000000 --seed 1 --state wellformed.json

The shapes are read from the types themselves, so that a new message is tried as soon as it is named in `frames.py`.
What the decoder takes must be fit for use: it is encoded again, filters are asked, items are read. Anything but
`RemoteError` is a fault; the run then stops and prints the input. With `--state` a run goes on where the last ended.
"""

from __future__ import annotations

import argparse
import enum
import json
import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any, TypeVar

import msgspec
from msgspec import inspect

from godwit.events import Value
from godwit.filters.areas import Circle
from godwit.filters.filters import Filter
from godwit.filters.text import parse
from godwit.net.peers import frames as links
from godwit.protocols.broker.messages import Content, Divided, Noted, Owned, Routed, Seek, filters_in
from godwit.protocols.broker.publication import NUMBER_MAX, Publication
from godwit.protocols.broker.streams import frames
from godwit.protocols.gathering.areas import Anywhere, Keyed, Reach, Spot, Zone, meets, walk
from godwit.protocols.gathering.space import Boundary, Cell
from godwit.protocols.host import RemoteError
from godwit.protocols.routing.courier import Numbered
from godwit.protocols.routing.messages import Bsub, Filters, Sub, Uns
from godwit.protocols.routing.process import Enclosed

T = TypeVar("T")
BLOCK = 1_000
"""Inputs of one run of dice: a fault is found again from the number of its block."""

NUMBERS = (0, 1, 2, -1, 255, 2**31, 2**53, NUMBER_MAX, NUMBER_MAX + 1, 2**63 - 1, -(2**63), 2**64 - 1)
FLOATS = (0.0, -0.0, 1.5, -1.0, 1e308, -1e308, 5e-324, math.inf, -math.inf, math.nan)
WORDS = ("a", "b", "n", "north", "van-7", "topic_1", "a/b", "01")
TEXTS = ("", "a", "topic_1", "a/b", "+", "#", "a/#/b", "\0", "\U0001f987", "x" * 300, "$share/g/a", "a" * 2_000)
BLOBS = (b"", b"{}", b'{"n": 1}', b"\xff\xfe", b"[" * 50, b"x" * 300)
EVENTS: tuple[dict[str, Value], ...] = (
    {},
    {"topic_1": "a", "topic_levels": 1},
    {"a": 1, "n": -1.5, "x": "y", "topic_1": "a", "topic_2": "b", "topic_levels": 2},
    {"a": True, "n": "text", "topic_levels": 2**60},
    {"lat": 39.9, "lon": 116.4},
)
REACHES: tuple[Reach, ...] = (
    Anywhere(),
    Spot((116.4, 39.9)),
    Keyed(bytes(16)),
    Zone(Circle(39.9, 116.4, 5_000.0)),
)
MOODS = ((0.0, 0.0), (0.0, 0.05), (0.02, 0.0), (0.02, 0.3))
"""How often in one input a value is of another type than its place asks for, and how often one at the edge of it."""
DEPTH_MAX = 24
COUNTS = (0, 1, 1, 1, 2, 3)
PAIRS = (2, 2, 2, 2, 0, 1, 3)
"""How many numbers make a place: nearly always two."""
CONDITIONS = (
    "a > 1 AND b <= 2.5",
    "a BETWEEN 1 AND 2 OR a IN (5, 7, 9)",
    "x = 'y' AND NOT z LIKE 'a%b'",
    "x LIKE '%q%' OR x IS NULL",
    "n != 0 AND flag = TRUE",
    "within(lat, lon, 39.9, 116.4, 5km) AND pm25 > 150",
    "a IS NOT NULL AND b IS NULL",
    "a < b AND x IN ('p', 'q')",
)


class Shapes:
    """Values of any type that msgspec knows, as what an encoder would be given."""

    def __init__(self, dice: Random) -> None:
        self.roll = dice.random
        self.wrong, self.extreme = MOODS[0]

    def input(self, shape: inspect.Type) -> bytes:
        self.wrong, self.extreme = self.one(MOODS)
        return encode(self.value(shape))

    def one(self, many: Sequence[T]) -> T:
        """Any of these: half of all time is spent here, and `Random.choice` takes three times as long."""
        return many[int(self.roll() * len(many))]

    def value(self, shape: inspect.Type, depth: int = 0) -> Any:
        if (self.wrong and self.roll() < self.wrong) or depth > DEPTH_MAX:
            return self.anything()
        return MADE[type(shape)](self, shape, depth + 1)

    def anything(self) -> Any:
        kind = int(self.roll() * 7)
        if kind == 0:
            return None
        if kind == 1:
            return [self.one(NUMBERS), self.one(TEXTS)]
        if kind == 2:
            return {self.one(TEXTS): self.one(NUMBERS)}
        return self.one((self.one(NUMBERS), self.one(FLOATS), self.one(TEXTS), b"x"))

    def number(self, shape: Any, depth: int) -> int:
        if self.roll() >= self.extreme:
            low = int(shape.ge or 0)
            return low + int(self.roll() * (4 if shape.le is None else min(4, shape.le - low + 1)))
        return self.one(NUMBERS)

    def real(self, shape: Any, depth: int) -> float:
        if self.roll() >= self.extreme:
            return float(shape.ge or 0) + self.roll()
        return self.one(FLOATS)

    def text(self, shape: Any, depth: int) -> str:
        return self.one(TEXTS) if self.roll() < self.extreme else self.one(WORDS)

    def blob(self, shape: Any, depth: int) -> bytes:
        if shape.min_length and self.roll() >= self.extreme:
            return bytes(int(self.roll() * 256) for _ in range(shape.min_length))
        return self.one(BLOBS)

    def spoiled(self, given: Any) -> Any:
        """A copy in which a leaf or two may be another."""
        if isinstance(given, list):
            return [self.spoiled(one) for one in given]
        if isinstance(given, dict):
            return {name: self.spoiled(one) for name, one in given.items()}
        return self.anything() if self.roll() < self.wrong + self.extreme / 4 else given

    def many(self, shape: Any, depth: int) -> list[Any]:
        usual = PAIRS if type(shape.item_type) is inspect.FloatType else COUNTS
        count = self.one(usual) if depth < DEPTH_MAX else 0
        return [self.value(shape.item_type, depth) for _ in range(count)]

    def tupled(self, shape: Any, depth: int) -> list[Any]:
        made = [self.value(one, depth) for one in shape.item_types]
        return made if self.roll() >= self.wrong else made[:-1]

    def mapped(self, shape: Any, depth: int) -> dict[Any, Any]:
        count = int(self.roll() * 3)
        made = ((self.value(shape.key_type, depth), self.value(shape.value_type, depth)) for _ in range(count))
        return {key: value for key, value in made if isinstance(key, str | int | float | bytes | bool | None)}

    def one_of(self, shape: Any, depth: int) -> Any:
        return self.value(self.one(shape.types), depth)

    def struct(self, shape: inspect.StructType, depth: int) -> Any:
        if shape.cls in RIGHT and self.roll() < 0.7:
            return self.spoiled(self.one(RIGHT[shape.cls]))
        given = [
            (field, self.value(field.type, depth))
            for field in shape.fields
            if field.required or shape.array_like or self.roll() < 0.6
        ]
        if given and self.roll() < self.wrong:
            given.pop(int(self.roll() * len(given)))
        tag = [] if shape.tag is None else [shape.tag]
        if shape.array_like:
            return [*tag, *(value for _, value in given)]
        named = {field.encode_name: value for field, value in given}
        return {**({shape.tag_field: shape.tag} if shape.tag_field else {}), **named}

    def raw(self, shape: Any, depth: int) -> Any:
        """Items of a stream, which the receiver decodes. Their numbers grow, unless it is their turn to be wrong."""
        if self.roll() < self.wrong:
            return self.anything()
        items = self.value(ITEMS, depth)
        if isinstance(items, list) and self.roll() >= self.extreme:
            for number, item in enumerate(items, 1):
                if isinstance(item, list) and item:
                    item[0] = number
        return items


MADE: dict[type, Callable[[Shapes, Any, int], Any]] = {
    inspect.IntType: Shapes.number,
    inspect.FloatType: Shapes.real,
    inspect.BoolType: lambda shapes, shape, depth: shapes.roll() < 0.5,
    inspect.StrType: Shapes.text,
    inspect.BytesType: Shapes.blob,
    inspect.NoneType: lambda shapes, shape, depth: None,
    inspect.AnyType: lambda shapes, shape, depth: shapes.anything(),
    inspect.EnumType: lambda shapes, shape, depth: _plain(shapes.one(list(shape.cls))),
    inspect.LiteralType: lambda shapes, shape, depth: shapes.one(shape.values),
    inspect.VarTupleType: Shapes.many,
    inspect.ListType: Shapes.many,
    inspect.SetType: Shapes.many,
    inspect.FrozenSetType: Shapes.many,
    inspect.TupleType: Shapes.tupled,
    inspect.DictType: Shapes.mapped,
    inspect.UnionType: Shapes.one_of,
    inspect.StructType: Shapes.struct,
    inspect.RawType: Shapes.raw,
}


def _plain(one: enum.Enum) -> Any:
    return one.value


FRAME = inspect.type_info(frames.Frame)
ITEMS = inspect.type_info(tuple[frames.Item, ...])
CONTROL = inspect.type_info(links.Control)
ENCLOSED, PARCELS = inspect.type_info(Enclosed), inspect.type_info(frames.Parcels)
SHAPES = (ENCLOSED, PARCELS, ENCLOSED, PARCELS, PARCELS, ENCLOSED, FRAME, CONTROL)
CELLS = (
    Cell(),
    Cell("0", (Boundary(0, 116.4, True),)),
    Cell("10", (Boundary(0, -0.5, False), Boundary(1, 39.9, True))),
)
RIGHT: dict[type, list[Any]] = {
    Filter: [msgspec.to_builtins(one) for text in CONDITIONS for one in parse(text)],
    Cell: [msgspec.to_builtins(one) for one in CELLS],
    Seek: [msgspec.to_builtins(Seek("a", 1, (one,), "01"), builtin_types=(bytes,)) for one in REACHES],
}
"""Values that are right, where few others are; to be spoiled."""

encode = msgspec.msgpack.Encoder().encode


def filters_of(frame: Enclosed) -> list[Filter]:
    message = frame.message
    found: list[Filter] = []
    for part in message.parts if isinstance(message, Numbered) else (message,):
        match part:
            case Bsub(_, filters) | Filters(filters):
                found += filters
            case Sub(wanted, _) | Uns(wanted, _):
                found.append(wanted)
    return found


def use(frame: frames.Frame) -> None:
    """What a broker does with a frame before it believes anything of it."""
    assert frames.decode(frames.encode(frame)) is not None
    if isinstance(frame, frames.Parcels):
        for run in frame.runs:
            for item in frames.decode_items(run):
                use_content(item.content)
    elif isinstance(frame, Enclosed):
        ask(filters_of(frame))


def use_content(content: Content) -> None:
    ask(list(filters_in(content)))
    match content:
        case Publication():
            content.values()
        case Routed(publication):
            publication.values()
        case Owned(regions=regions) | Noted(regions=regions) | Divided(regions=regions):
            for region in regions:
                divide(region.cell, REACHES)
        case Seek(reaches=reaches):
            for cell in CELLS:
                divide(cell, reaches)


def ask(wanted: Sequence[Filter]) -> None:
    for one in wanted:
        for event in EVENTS:
            one.matches(event)
        for other in wanted:
            one.covers(other)
            one.overlaps(other)


def divide(cell: Cell, reaches: Iterable[Reach]) -> None:
    for reach in reaches:
        meets(cell, reach)
        walk(cell, reach, 0)
        walk(cell, reach, 0, exact=True)


def try_one(data: bytes, shape: inspect.Type) -> bool:
    """Whether it was taken; anything but a refusal is raised."""
    try:
        if shape is CONTROL:
            links.decode_control(data)
        else:
            use(frames.decode(data))
    except RemoteError:
        return False
    return True


def inputs(seed: int, block: int) -> Iterator[tuple[bytes, inspect.Type]]:
    shapes = Shapes(Random(seed << 40 | block))
    for at in range(BLOCK):
        shape = SHAPES[at % len(SHAPES)]
        yield shapes.input(shape), shape


def run_block(seed: int, block: int) -> int:
    """How many were taken."""
    taken = 0
    for at, (data, shape) in enumerate(inputs(seed, block)):
        try:
            taken += try_one(data, shape)
        except Exception as error:
            error.add_note(f"seed {seed}, block {block}, input {at}: {data.hex()}")
            raise
    return taken


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--inputs", type=int, default=100_000, help="how many in all, those of earlier runs included")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--state", type=Path, help="a file that says how far this seed has come")
    options = parser.parse_args()
    done = taken = 0
    if options.state is not None and options.state.exists():
        before = json.loads(options.state.read_text())
        if before["seed"] == options.seed:
            done, taken = before["inputs"], before["taken"]
    began, told_s = done, time.monotonic()
    while done < options.inputs:
        taken += run_block(options.seed, done // BLOCK)
        done += BLOCK
        if options.state is not None:
            options.state.write_text(json.dumps({"seed": options.seed, "inputs": done, "taken": taken}))
        if time.monotonic() - told_s > 10:
            told_s = time.monotonic()
            print(f"{done:,} of {options.inputs:,}", flush=True)  # noqa: T201
    print(f"{done:,} inputs of seed {options.seed}, {done - began:,} of them now; {taken:,} were taken, 0 faults")  # noqa: T201


if __name__ == "__main__":
    main()

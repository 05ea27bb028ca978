"""Bytes that nobody would send: they cost their sender the connection at most, and nobody else anything."""

from __future__ import annotations

import contextlib
import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import inspect
from tests.net.fuzzing import TARGETS, once
from tests.net.nonsense import UPGRADE, Pipe, Scene, masked, played, streams, turns
from tests.net.wellformed import BLOCK, CONTROL, FRAME, ITEMS, inputs, run_block

from godwit.net.peers import frames as links
from godwit.protocols.broker.streams import frames
from godwit.protocols.host import RemoteError

ROOT = Path(__file__).resolve().parents[2]
SECONDS = (2, pytest.param(60, marks=pytest.mark.explore))


async def said(scene: Scene, pipe: Pipe, pieces: list[bytes]) -> None:
    for piece in pieces:
        pipe.say(piece)
        await turns(3)
    await turns()
    assert pipe.ends <= 1
    assert pipe.is_closing() == (pipe.ends == 1)


@given(st.lists(streams(), min_size=1, max_size=3))
def test_whatever_clients_say_the_broker_goes_on_and_others_notice_nothing(said_by: list[list[bytes]]) -> None:
    async def act(scene: Scene) -> None:
        for pieces in said_by:
            await said(scene, scene.newcomer(), pieces)

    played(act)


@given(streams(), streams())
def test_two_at_once_do_not_disturb_one_another(first: list[bytes], second: list[bytes]) -> None:
    async def act(scene: Scene) -> None:
        one, other = scene.newcomer(), scene.newcomer()
        for at in range(max(len(first), len(second))):
            for pipe, pieces in ((one, first), (other, second)):
                if at < len(pieces):
                    pipe.say(pieces[at])
            await turns(2)

    played(act)


@given(streams(), st.lists(st.sampled_from([0, 1, 2, 8, 9, 10, 15]), max_size=6), st.booleans())
def test_whatever_comes_in_websocket_frames_the_broker_goes_on(
    pieces: list[bytes], opcodes: list[int], whole: bool
) -> None:
    async def act(scene: Scene) -> None:
        framed = [
            masked(opcodes[at] if at < len(opcodes) else 2, piece, fin=whole or at % 2 == 0)
            for at, piece in enumerate(pieces)
        ]
        await said(scene, scene.newcomer(websocket=True), [UPGRADE, *framed])

    played(act)


@given(st.binary(max_size=200), st.booleans())
def test_whatever_comes_instead_of_a_websocket_the_broker_goes_on(garbage: bytes, upgraded: bool) -> None:
    async def act(scene: Scene) -> None:
        await said(scene, scene.newcomer(websocket=True), [UPGRADE if upgraded else b"", garbage])

    played(act)


@given(st.integers(0, len(TARGETS) - 1), streams() | st.lists(st.binary(max_size=60), max_size=3))
def test_decoders_read_or_refuse(target: int, pieces: list[bytes]) -> None:
    once(bytes((target,)) + b"".join(pieces))


@pytest.mark.parametrize("block", range(20))
def test_well_formed_nonsense_from_a_peer_is_refused_or_fit_for_use(block: int) -> None:
    """`python -m tests.net.wellformed --inputs 10000000` runs more of it."""
    taken = run_block(7, block)
    assert 0.2 * BLOCK < taken < 0.95 * BLOCK


def named(shape: inspect.Type, found: set[type]) -> set[type]:
    """Every struct that may occur in this type."""
    if isinstance(shape, inspect.StructType):
        if shape.cls in found:
            return found
        found.add(shape.cls)
        inner: list[Any] = [field.type for field in shape.fields]
    else:
        inner = [getattr(shape, name, ()) for name in ("types", "item_types", "item_type", "key_type", "value_type")]
    for one in inner:
        for part in one if isinstance(one, tuple) else (one,):
            named(part, found)
    return found


def within(value: object, found: set[type]) -> None:
    """Every struct that occurs in this value."""
    if isinstance(value, msgspec.Struct):
        found.add(type(value))
        for name in value.__struct_fields__:
            within(getattr(value, name), found)
    elif isinstance(value, tuple | list | set | frozenset):
        for one in value:
            within(one, found)
    elif isinstance(value, dict):
        within((*value, *value.values()), found)


def test_the_nonsense_has_everything_in_it_that_brokers_may_say() -> None:
    """Whatever is never taken is tried at its door only."""
    taken: set[type] = set()
    for data, shape in (one for block in range(60) for one in inputs(7, block)):
        with contextlib.suppress(RemoteError):
            if shape is CONTROL:
                within(links.decode_control(data), taken)
                continue
            frame = frames.decode(data)
            within(frame, taken)
            if isinstance(frame, frames.Parcels):
                within([frames.decode_items(run) for run in frame.runs], taken)
    wanted = named(FRAME, named(ITEMS, named(CONTROL, set())))
    # Nobody can look for a disc: it may stand in a walk of the lab only.
    assert {one.__name__ for one in wanted - taken} == {"Disc"}


def test_a_run_of_nonsense_goes_on_where_the_last_one_ended(tmp_path: Path) -> None:
    state = tmp_path / "state.json"
    for wanted, now in ((2_000, 2_000), (3_000, 1_000)):
        command = [sys.executable, "-m", "tests.net.wellformed", f"--inputs={wanted}", "--state", str(state)]
        ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        assert f"{wanted:,} inputs of seed 1, {now:,} of them now" in ran.stdout


@pytest.mark.skipif(importlib.util.find_spec("atheris") is None, reason="atheris is not installed")
@pytest.mark.parametrize("seconds", SECONDS)
def test_decoders_refuse_what_they_cannot_read_with_one_kind_of_error(seconds: int) -> None:
    command = [sys.executable, "-m", "tests.net.fuzzing", str(seconds)]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr[-3000:]
    assert "stat::number_of_executed_units" in ran.stderr

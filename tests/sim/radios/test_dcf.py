"""Slots: who waits for whom, and that two neighbors whose counters end together collide."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from tests.sim.worlds import Listener, Word

from godwit.sim.mobility import Still
from godwit.sim.radio import WIFI_TWO_RAY
from godwit.sim.radios.dcf import Slots, SlottedRadio
from godwit.sim.world import World


class Loaded(Random):
    """Dice that always show the same number of slots."""

    def __init__(self, slots: int) -> None:
        super().__init__(0)
        self.slots = slots

    def randrange(self, *limits: Any, **others: Any) -> int:
        return self.slots


AIR_S = (10 + WIFI_TWO_RAY.overhead_b) * 8 / WIFI_TWO_RAY.bits_per_s
"""Of the word that the tests send."""


def world_of(**places_m: float) -> tuple[World, SlottedRadio, dict[str, Listener]]:
    world = World(1, lambda w: SlottedRadio(w, WIFI_TWO_RAY, Slots()))
    radio = world.medium
    assert isinstance(radio, SlottedRadio)
    ears: dict[str, Listener] = {}
    for name, x_m in places_m.items():
        radio.place(name, Still(x_m, 0.0))
        node = world.add(name, Listener)
        ears[name] = node.core = Listener(node)
    return world, radio, ears


def count_down(radio: SlottedRadio, **slots: int) -> None:
    for name, number in slots.items():
        radio._stations[name].mac_dice = Loaded(number)


@pytest.mark.feature("manet-cbr F17")
def test_a_frame_goes_out_after_difs_and_its_slots() -> None:
    world, radio, ears = world_of(a=0, b=100)
    count_down(radio, a=5)
    radio.broadcast("a", Word(1))
    world.run(1.0)
    (heard,) = ears["b"].heard
    assert heard[0] == pytest.approx(50e-6 + 5 * 20e-6 + AIR_S)
    assert heard[1:] == ("a", 1)


@pytest.mark.feature("manet-cbr F17")
def test_two_neighbors_whose_counters_end_in_the_same_slot_collide() -> None:
    world, radio, ears = world_of(a=0, b=100, c=50)
    count_down(radio, a=3, b=3)
    radio.broadcast("a", Word(1))
    radio.broadcast("b", Word(2))
    world.run(1.0)
    assert ears["c"].heard == []
    assert radio.collided == 1


@pytest.mark.feature("manet-cbr F17")
def test_who_hears_a_slot_earlier_stops_counting_and_goes_on_where_it_was() -> None:
    world, radio, ears = world_of(a=0, b=100, c=50)
    count_down(radio, a=3, b=7)
    radio.broadcast("a", Word(1))
    radio.broadcast("b", Word(2))
    world.run(1.0)
    first, second = ears["c"].heard
    assert (first[2], second[2]) == (1, 2)
    gap_s = second[0] - first[0]
    assert gap_s == pytest.approx(50e-6 + 4 * 20e-6 + AIR_S), "seven slots, of which three had passed"


def test_a_message_that_is_taken_back_leaves_nothing_waiting() -> None:
    world, radio, ears = world_of(a=0, b=100)
    message = Word(1)
    radio.broadcast("a", message)
    assert radio.withdraw("a", message)
    radio.broadcast("a", Word(2))
    world.run(1.0)
    assert [number for _, _, number in ears["b"].heard] == [2]

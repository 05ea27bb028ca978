"""What a radio takes from its battery, and that one which sleeps says nothing meanwhile."""

from __future__ import annotations

import pytest
from tests.sim.worlds import Listener, Word

from godwit.sim.mobility import Still
from godwit.sim.radios.energy import Draw, MeteredRadio, Rhythm
from godwit.sim.world import World

pytestmark = pytest.mark.feature("mft-pubsub F38")


def two(rhythm: Rhythm) -> tuple[World, MeteredRadio, Listener]:
    world = World(1, lambda world: MeteredRadio(world, rhythm=rhythm))
    radio = world.medium
    assert isinstance(radio, MeteredRadio)
    for name in "ab":
        radio.place(name, Still(0 if name == "a" else 5, 0))
        world.add(name, Listener)
    hearer = world.nodes["b"].core
    assert isinstance(hearer, Listener)
    return world, radio, hearer


def test_a_radio_that_is_always_on_empties_its_cells_in_three_and_a_half_days() -> None:
    world, radio, _ = two(Rhythm())
    world.run(10.0)
    assert radio.power_mw("a", 10.0) == pytest.approx(62.0)
    assert radio.battery_days(62.0) == pytest.approx(18_720 / 0.062 / 86_400)


def test_sending_takes_a_little_less_than_listening_and_sleeping_hardly_anything() -> None:
    world, radio, _ = two(Rhythm(awake=0.1))
    radio.broadcast("a", Word(1))
    world.run(10.0)
    airtime_s = 25 * 8 / 250_000
    draw = Draw()
    asleep_mw = 0.9 * draw.asleep_mw + 0.1 * draw.listening_mw
    assert radio.power_mw("b", 10.0) == pytest.approx(asleep_mw)
    saved_mw = airtime_s / 10.0 * (draw.listening_mw - draw.sending_mw)
    assert radio.power_mw("a", 10.0) == pytest.approx(asleep_mw - saved_mw)


@pytest.mark.parametrize("at_s", [0.05, 0.3, 0.999, 4.1999])
def test_a_frame_waits_until_everybody_listens_to_all_of_it(at_s: float) -> None:
    world, radio, hearer = two(Rhythm(awake=0.2))
    world.engine.at(at_s, lambda: radio.broadcast("a", Word(1)))
    world.run(10.0)
    ((heard_s, _, _),) = hearer.heard
    assert heard_s % 1.0 <= 0.2
    assert heard_s >= at_s


def test_a_rhythm_that_never_wakes_is_refused() -> None:
    with pytest.raises(ValueError, match="a share above 0"):
        Rhythm(awake=0.0)

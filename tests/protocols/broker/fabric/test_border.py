"""Frames that cross between sites speak of each gateway as the receiver knows it."""

from __future__ import annotations

import msgspec

from godwit.protocols.broker.fabric.border import at_home, inbound, known_as, outbound, site_of
from godwit.protocols.broker.streams.frames import Ask, Leg, Parcels, Run, Taken

RAW = msgspec.Raw(b"\x90")


def test_two_gateways_of_the_same_name_understand_each_other() -> None:
    there = known_as("hq", "one")
    assert (site_of(there), at_home(there)) == ("hq", "one")
    sent = Parcels("one", 7, (Run((Leg(there, 1, 0),), RAW),))
    arrived = inbound(outbound(sent, there), known_as("plant", "one"))
    assert arrived == Parcels("plant/one", 7, (Run((Leg("one", 1, 0),), RAW),))
    assert inbound(outbound(Ask("one", 7, there, 3), there), "plant/one") == Ask("plant/one", 7, "one", 3)
    taken = Taken("one", 5, there, 7, 9, 9)
    assert inbound(outbound(taken, there), "plant/one") == Taken("plant/one", 5, "one", 7, 9, 9)


def test_whoever_speaks_over_a_link_cannot_speak_for_another() -> None:
    assert inbound(Ask("somebody", 7, "one"), "plant/one") == Ask("plant/one", 7, "one")

"""The published claims E1 to E7 and A1 (spec manet-cbr 4.3), and what we take their words to mean."""

from __future__ import annotations

from godwit.lab.claims import Claim

POINTS, PACKETS = 0.08, 0.5
"""The spec's tolerances (F23)."""
FLAT = 0.08
"""E4a, E6: less change of delivery is none."""
SLIGHTLY = 0.15
"""E2e: a smaller lead is a slight one."""
ROUGHLY = 1.5
"""E7c: overheads within this factor are roughly constant."""
LOW, SHARP = 0.3, 0.2
"""E1a: delivery at the smallest probability, and the steepest rise for a tenth of probability."""

CLAIMS = {
    claim.name: claim
    for claim in (
        Claim("E1a", "Gossip's delivery over its probability is bimodal: low, then a sharp rise."),
        Claim("E1b", "Gossip never delivers everything, at no probability."),
        Claim("E1c", "With gossip, more than 50 % delivery needs at least 5 packets per delivery."),
        Claim("E2a", "Proximity-driven routing without credits delivers 70 % at 2.5 packets per delivery."),
        Claim("E2b", "Gossip needs 5.5 packets per delivery for 70 %, more than twice as many."),
        Claim("E2c", "Gossip at 2.5 packets per delivery delivers only 30 %."),
        Claim("E2d", "More credits raise delivery, and it stays much cheaper than gossip."),
        Claim("E2e", "The most that proximity-driven routing delivers is slightly below gossip's most."),
        Claim("E3a", "Credits matter most where there are few subscribers."),
        Claim("E3b", "Delivery can be held above 85 % for any number of subscribers, at a cost that falls with it."),
        Claim("E3c", "Gossip becomes more efficient with more subscribers."),
        Claim("E4a", "Proximity-driven routing is almost insensitive to the publishing rate."),
        Claim("E4b", "Gossip suffers from the rate, more so at a higher probability."),
        Claim("E4c", "The overhead of proximity-driven routing falls with the rate, as beacons are shared by more."),
        Claim("E5", "Short beacon intervals are bad at low speed, long ones at high speed."),
        Claim("E6", "At constant density both scale well: gossip delivers slightly less, the other marginally more."),
        Claim("E7a", "Gossip of low probability improves with density."),
        Claim("E7b", "Gossip of high probability falls from some density on."),
        Claim("E7c", "Density leaves proximity-driven routing's delivery intact, its overhead about constant and low."),
        Claim("A1", "Expected distance rises with elapsed time up to a threshold, and is less at lower speed."),
    )
}

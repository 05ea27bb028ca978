"""The published claims E1 to E17 (spec mft-pubsub 3.4), their places, and what we take their words to mean.

The thesis prints plots without values, so that only orderings and trends can be judged. E16 is about the wall time of
the simulator that was used, not about the protocols: it is not judged.
"""

from __future__ import annotations

from godwit.lab.claims import Claim

STRONG_LOSS = 0.1
"""E4: so much of the delivery rate is a strong loss."""
SAME_ORDER = 10.0
"""E10: delays within this factor are of the same order."""
EXPLODES, BARELY = 3.0, 1.5
"""E13: growth of messages per node from the smallest to the largest size."""
MOST = 2.0
"""E14: brokers send so many times what a client does."""
HARDLY = 0.5
"""E17: hardly, compared with the same nodes at the usual density."""
POINT = 0.01
"""Less than one event in a hundred is no effect that a plot of delivery rates could show."""

PLACE = "mft-pubsub 3.4"
EXACT = "to the message"
ORDER = "an ordering: any clear difference in the same worlds counts"

CLAIMS = {
    claim.name: claim
    for claim in (
        Claim("E1", "A simple migration costs 13 messages in the first approach and 2 in MFT.", PLACE, EXACT),
        Claim(
            "E2",
            "A double migration, MFT's worst case, costs 12 messages in the first approach and 13 in MFT.",
            PLACE,
            EXACT,
        ),
        Claim(
            "E3",
            "MFT's delivery rate bears speed better than AODV's, and even rises with it.",
            PLACE,
            f"slowest against fastest speed; a rise below {POINT:g} is none",
        ),
        Claim(
            "E4",
            "Both protocols lose delivery rate strongly as the network grows.",
            PLACE,
            f"strongly: at least {STRONG_LOSS:g} of the rate from the smallest to the largest size",
        ),
        Claim(
            "E5",
            "MFT has the better delivery rate, also at C32.",
            PLACE,
            ORDER,
            "knew our acknowledgements only; with the text's the sign turns",
        ),
        Claim("E6", "At C32 and 8 m/s AODV delivers more messages than MFT in absolute terms.", PLACE, ORDER),
        Claim("E7", "At C16 MFT delivers more messages than AODV at every speed.", PLACE, ORDER + ", at each speed"),
        Claim(
            "E8",
            "At C16 MFT's deliveries rise slightly with speed and start to fall at 6 m/s.",
            PLACE,
            f"6 m/s above both ends; less than {POINT:g} of what is published is none",
        ),
        Claim(
            "E9",
            "Faster nodes pass a broker that stores their events more often: replayed deliveries rise with speed.",
            PLACE,
            f"slowest against fastest; less than {POINT:g} of what is published is none",
        ),
        Claim(
            "E10",
            "MFT's delay, storage included, is of the same order as AODV's.",
            PLACE,
            f"same order: within a factor of {SAME_ORDER:g} at every size, as the published axis is logarithmic",
        ),
        Claim("E11", "AODV shows abnormally high delay and hop count at C4.", PLACE, "above C2 and C8 in both"),
        Claim("E12", "At C2 AODV sends fewer messages per node than MFT.", PLACE, ORDER + "; beacons count"),
        Claim(
            "E13",
            "AODV's messages per node explode with size; MFT's barely change.",
            PLACE,
            f"from C2 to C32 at least x {EXPLODES:g} against at most x {BARELY:g}; the words have no number",
        ),
        Claim(
            "E14",
            "In MFT brokers send most of the messages, more so near the leader; clients send few.",
            PLACE,
            f"a broker sends more than {MOST:g} times what a client does; a leader more than a broker below",
        ),
        Claim(
            "E15",
            "Overall MFT outperforms AODV, loses performance in larger networks and scales better in messages.",
            PLACE,
            "a better rate over all cells; MFT's part of E4; its messages grow by less than AODV's",
        ),
        Claim(
            "E17",
            "Few nodes in a large area hardly ever communicate.",
            PLACE,
            f"at most {HARDLY:.0%} of what the same nodes deliver at the usual density",
        ),
    )
}

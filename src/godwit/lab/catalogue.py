"""All studies of published claims, in the order of the index. Whoever has one to add names it here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from godwit.lab.adhoc.study import STUDY as ADHOC
from godwit.lab.capacity.study import STUDY as CAPACITY
from godwit.lab.gathering_study import STUDY as RING
from godwit.lab.handoff.study import STUDY as HANDOFF
from godwit.lab.mft.study import STUDY as MFT
from godwit.lab.structures.study import STUDY as STRUCTURES
from godwit.lab.studies import Awaited, Study

STUDIES: Mapping[str, Study] = {study.name: study for study in (MFT, HANDOFF, ADHOC, STRUCTURES, CAPACITY, RING)}

AWAITED: Sequence[Awaited] = tuple(
    Awaited(spec="content-routing", name=name, text=text, study=study)
    for study, claims in {
        "sites": {
            "C12": "The average cost of a handover is below its theoretical upper bound.",
            "C13": "Costs: ping/pong above ping/pong by rendezvous, above incomplete and complete acyclic relocation.",
            "C14": "Latency: the generic protocol takes 3.5 times incomplete, 4.4 times complete acyclic relocation.",
            "C15": "Mobility at the border has longer paths and higher incomplete cost; complete covers more often.",
            "C16": "The cost of incomplete acyclic relocation grows with the subscribers.",
            "C17": "That of the complete one is highest with 20 subscribers, then falls.",
            "C18": "Ping/pong does not depend on how many subscribers and publishers there are.",
            "C19": "More publishers cost acyclic relocation moderately more; with rendezvous points hardly.",
        },
        "lasting": {
            "C20": "The optimised double forest is the best for covering, in operations and in time.",
            "C21": "For overlap it is better than sets, by a small margin.",
            "C22": "Preloaded with all filters it takes constant time and no covering operations.",
            "C23": "Random preloading costs covering nothing; overlap rises linearly with what is preloaded.",
        },
    }.items()
    for name, text in claims.items()
)
"""Statements of the specifications that a study is to judge which is not here yet; the index names them until it is."""

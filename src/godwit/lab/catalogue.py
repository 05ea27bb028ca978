"""All studies of published claims, in the order of the index. Whoever has one to add names it here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from godwit.lab.adhoc.study import STUDY as ADHOC
from godwit.lab.capacity.study import STUDY as CAPACITY
from godwit.lab.gathering.study import STUDY as RING
from godwit.lab.handoff.study import STUDY as HANDOFF
from godwit.lab.lasting.study import STUDY as LASTING
from godwit.lab.mft.study import STUDY as MFT
from godwit.lab.relocation.study import STUDY as RELOCATION
from godwit.lab.structures.study import STUDY as STRUCTURES
from godwit.lab.studies import Awaited, Study

STUDIES: Mapping[str, Study] = {
    study.name: study for study in (MFT, HANDOFF, ADHOC, STRUCTURES, CAPACITY, RELOCATION, LASTING, RING)
}

AWAITED: Sequence[Awaited] = ()
"""Statements of the specifications that a study is to judge which is not here yet; the index names them until it is."""

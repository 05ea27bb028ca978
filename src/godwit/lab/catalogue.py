"""All studies of published claims, in the order of the index. Whoever has one to add names it here."""

from __future__ import annotations

from collections.abc import Mapping

from godwit.lab.adhoc.study import STUDY as ADHOC
from godwit.lab.gathering_study import STUDY as RING
from godwit.lab.handoff.study import STUDY as HANDOFF
from godwit.lab.mft.study import STUDY as MFT
from godwit.lab.relocation.study import STUDY as RELOCATION
from godwit.lab.structures.study import STUDY as STRUCTURES
from godwit.lab.studies import Study

STUDIES: Mapping[str, Study] = {study.name: study for study in (MFT, HANDOFF, ADHOC, STRUCTURES, RELOCATION, RING)}

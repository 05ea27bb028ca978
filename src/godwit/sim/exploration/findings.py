"""What judges say, and what they agree upon: which publications count."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from godwit.sim.brokers.roamer import Roamer, Said

if TYPE_CHECKING:
    from godwit.sim.exploration.trial import Trial

SHOWN_MAX = 6


class Finding(msgspec.Struct, frozen=True):
    kind: str
    who: str
    text: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.who} {self.text}" if self.who else f"{self.kind}: {self.text}"


def is_certain(trial: Trial, roamer: Roamer, said: Said) -> bool:
    """Whether it was published for sure, or will be, and its way to this client is safe. Where nothing is on a disk
    between brokers, a crash anywhere may take it along, but for those at its own."""
    if not (said.qos and said.is_due) or said.given_up:
        return False
    here = trial.cards[roamer.name].home == said.at
    return counts(trial, said.n) and (
        trial.promises.outlives or here or not trial.crashed or 0 < trial.probing_from <= said.n
    )


def counts(trial: Trial, n: int) -> bool:
    """Where a disk was lost nothing can be said of what was published before all had calmed down."""
    return not trial.wiped or 0 < trial.probing_from <= n


def shown(numbers: list[int]) -> str:
    more = f" and {len(numbers) - SHOWN_MAX} more" if len(numbers) > SHOWN_MAX else ""
    return ", ".join(map(str, numbers[:SHOWN_MAX])) + more

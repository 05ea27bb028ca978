"""Whether rows of other code may stand for ours: some of them are run again, and must come out equal to the last digit.

Any change of shared code gives a study another `code`, though most change no result. The sample has every value of
every setting that occurs in the rows, at the least cost; all but the time that a run took is compared. That is evidence
and no proof, so that a page names every voucher with how many rows were run again. Where a study has strands, each is
vouched for by itself: that the deployed broker has changed says nothing about published protocols.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from godwit.lab.studies import Kept, Study

C = TypeVar("C", bound=msgspec.Struct)

NAME = "vouchers.json"
SEED = frozenset({"seed", "replication"})
"""Which world it is: no code asks for its number."""


Strand = tuple[str, str]
"""A code, and the strand of its runs."""


class Voucher(msgspec.Struct, frozen=True, kw_only=True):
    """`by` has run `again` of the runs that `code` left of a strand, and `differing` of them came out otherwise."""

    code: str
    by: str
    runs: int
    again: int
    differing: int
    strand: str = ""

    @property
    def is_good(self) -> bool:
        return self.again > 0 and not self.differing

    def __str__(self) -> str:
        runs = f"runs of {self.strand} of code" if self.strand else "runs of code"
        if not self.is_good:
            return f"{self.differing} of {self.again} {runs} {self.code} come out otherwise in code {self.by}."
        return (
            f"Code {self.by} has run {self.again} of the {self.runs} {runs} {self.code} again, every value of"
            " every setting among them: all are equal to the last digit."
        )


def read(folder: Path) -> list[Voucher]:
    path = folder / NAME
    return msgspec.json.decode(path.read_bytes(), type=list[Voucher]) if path.exists() else []


def write(folder: Path, vouchers: Sequence[Voucher]) -> None:
    """In place of what was there: vouchers by older code say nothing about this one."""
    unfinished = folder / (NAME + ".part")
    unfinished.write_bytes(msgspec.json.format(msgspec.json.encode(vouchers), indent=1) + b"\n")
    unfinished.replace(folder / NAME)


def admit(kept: Kept, vouchers: Iterable[Voucher]) -> None:
    """Let rows of the codes that were vouched for by the code at hand count as its own, strand by strand."""
    kept.vouched = frozenset((one.code, one.strand) for one in vouchers if one.is_good and one.by == kept.made.code)


def sample(runs: Iterable[C], cost_s: Callable[[C], float]) -> list[C]:
    """The cheapest first, and of the others those with a value of a setting that none before had."""
    known: set[tuple[str, Any]] = set()
    chosen = []
    for one in sorted(runs, key=cost_s):
        values = {(name, getattr(one, name)) for name in one.__struct_fields__ if name not in SEED}
        if values - known:
            chosen.append(one)
            known |= values
    return chosen


def samples(study: Study, kept: Kept, wanted: Sequence[Any]) -> dict[Strand, list[Any]]:
    """By the code and the strand of rows that do not count yet: what must be run again before they do."""
    return {own: sample(runs, study.cost_s) for own, runs in _foreign(study, kept, wanted).items()}


def _foreign(study: Study, kept: Kept, wanted: Sequence[Any]) -> dict[Strand, list[Any]]:
    found: dict[Strand, list[Any]] = {}
    for code, runs in kept.foreign_runs(wanted).items():
        for one in runs:
            found.setdefault((code, study.strand(one)), []).append(one)
    return found


def vouch(study: Study, kept: Kept, wanted: Sequence[Any]) -> list[Voucher]:
    """Run the samples, here and one by one; rows whose sample comes out equal count from now on."""
    found = [one for one in read(kept.path.parent) if one.by == kept.made.code]
    for (code, strand), runs in _foreign(study, kept, wanted).items():
        chosen = sample(runs, study.cost_s)
        differing = sum(not kept.is_equal(code, one, study.work(one)) for one in chosen)
        own = Voucher(
            code=code, by=kept.made.code, runs=len(runs), again=len(chosen), differing=differing, strand=strand
        )
        found = [*(one for one in found if (one.code, one.strand) != (code, strand)), own]
        write(kept.path.parent, found)
    admit(kept, found)
    return found

"""Whether rows of other code may stand for ours: some of them are run again, and must come out equal to the last digit.

Any change of shared code gives a study another `code`, though most change no result. The sample has every value of
every setting that occurs in the rows, at the least cost; all but the time that a run took is compared. That is evidence
and no proof, so that a page names every voucher with how many rows were run again.
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


class Voucher(msgspec.Struct, frozen=True, kw_only=True):
    """`by` has run `again` of the runs that `code` left, and `differing` of them came out otherwise."""

    code: str
    by: str
    runs: int
    again: int
    differing: int

    @property
    def is_good(self) -> bool:
        return self.again > 0 and not self.differing

    def __str__(self) -> str:
        if not self.is_good:
            return f"{self.differing} of {self.again} runs of code {self.code} come out otherwise in code {self.by}."
        return (
            f"Code {self.by} has run {self.again} of the {self.runs} runs of code {self.code} again, every value of"
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
    """Let rows of the codes that were vouched for by the code at hand count as its own."""
    kept.vouched = frozenset(one.code for one in vouchers if one.is_good and one.by == kept.made.code)


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


def samples(study: Study, kept: Kept, wanted: Sequence[Any]) -> dict[str, list[Any]]:
    """By the code of rows that do not count yet: what must be run again before they do."""
    return {code: sample(runs, study.cost_s) for code, runs in kept.foreign_runs(wanted).items()}


def vouch(study: Study, kept: Kept, wanted: Sequence[Any]) -> list[Voucher]:
    """Run the samples, here and one by one; rows whose sample comes out equal count from now on."""
    found = [one for one in read(kept.path.parent) if one.by == kept.made.code]
    for code, runs in kept.foreign_runs(wanted).items():
        chosen = sample(runs, study.cost_s)
        differing = sum(not kept.is_equal(code, one, study.work(one)) for one in chosen)
        own = Voucher(code=code, by=kept.made.code, runs=len(runs), again=len(chosen), differing=differing)
        found = [*(one for one in found if one.code != code), own]
        write(kept.path.parent, found)
    admit(kept, found)
    return found

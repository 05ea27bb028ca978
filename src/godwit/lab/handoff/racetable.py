"""The table of spec proactive-handoff 2.10: what each set of rules loses when messages are slower than moves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from godwit.lab.handoff.races import Outcome, Race, run
from godwit.lab.pages import Page, Table
from godwit.lab.product.race import run as race_of_product
from godwit.protocols.handoff_schemes.rules import CHECKED, HARDENED, LITERAL, OPTIONS, SPARING, Rules

SEEDS_AT_ONCE = 5

VARIANTS: Mapping[str, Rules] = {
    "literal (options off)": LITERAL,
    "literal, attached records spared": SPARING,
    "epochs, ackHighWater, gapSafe; no attachNo": OPTIONS,
    "the same and Z2": CHECKED,
    "Z1-Z15 without ackHighWater": HARDENED.without("ack_high_water"),
    "Z1-Z15 without gapSafe": HARDENED.without("gap_safe"),
    "Z1-Z15, all options": HARDENED,
}
PRODUCT = "the deployed broker"
"""Not by these rules but by epochs and streams; edges that age and options of the rules do not concern it."""
COLUMNS: Mapping[str, Mapping[str, Any]] = {
    "mild, NBR": {"delay": "mild"},
    "harsh, NBR": {},
    "harsh, RND": {"neighbors": False},
    "harsh, NBR, edges age after 2.0": {"edge_timeout": 2.0},
}
PUBLISHED: Mapping[str, tuple[str, str, str, str]] = dict(
    zip(
        VARIANTS,
        (
            ("767/185/1/0", "63412/59338/66215/70", "68615/61528/68293/28", "73348/59645/65768/202"),
            ("586/185/1/0", "52631/63669/69159/62", "53563/66801/72670/34", "52213/65528/72229/150"),
            ("147/231/11/0", "41703/71326/76641/91", "36067/82623/86009/53", "47339/71278/77349/167"),
            ("147/7/6/0", "43167/46217/50478/91", "37289/52195/54821/53", "48984/42149/46501/167"),
            ("173/0/0/0", "9740/0/0/0", "8505/0/0/0", "4820/0/0/0"),
            ("228/0/0/0", "23944/0/0/0", "24911/0/0/0", "15850/0/0/0"),
            ("0/0/0/0", "0/0/0/0", "0/0/0/0", "0/0/0/0"),
        ),
        strict=True,
    )
)
"""Of 100 runs and 390,400 deliveries: lost / repeated / out of order / left behind, by the spec's own model."""


class Batch(msgspec.Struct, frozen=True):
    """Seeds `first` to `last`, without it, of one row and column."""

    variant: str
    column: str
    first: int
    last: int


def batches(seeds: int) -> list[Batch]:
    return [
        Batch(variant, column, first, min(first + SEEDS_AT_ONCE, seeds))
        for column in COLUMNS
        for variant in (*VARIANTS, PRODUCT)
        for first in range(0, seeds, SEEDS_AT_ONCE)
    ]


def count(batch: Batch) -> Outcome:
    total = Outcome()
    for seed in range(batch.first, batch.last):
        race = Race(seed=seed, rules=VARIANTS.get(batch.variant, HARDENED), **COLUMNS[batch.column])
        total = total.plus(race_of_product(race) if batch.variant == PRODUCT else run(race))
    return total


def page(seeds: int, counted: Mapping[Batch, Outcome]) -> Page:
    """The table of the outcomes of all `batches(seeds)`."""
    cells: dict[tuple[str, str], Outcome] = {}
    for batch, outcome in counted.items():
        key = (batch.variant, batch.column)
        cells[key] = cells.get(key, Outcome()).plus(outcome)
    lead = (
        f"{seeds} runs a cell; six brokers, six subscribers, 980 events that all want, buffers without limit. Lost /"
        " repeated / out of order / left behind (orphans, stuck active, cut off), in brackets the spec's own model with"
        " 100 runs. The first four rows depend on how open points of the text are read. The last row is the"
        " product on the same moves and delays; its links keep the order and its disks take half a millisecond."
    )
    rules = [variant for variant in (*VARIANTS, PRODUCT) if any(variant == one for one, _ in cells)]
    note = "Due in a cell: " + ", ".join(f"{column} {_due(cells, column)}" for column in COLUMNS) + "."
    rows = [
        (
            variant,
            *(
                _numbers(cells[variant, column]) + (f" [{PUBLISHED[variant][i]}]" if variant in PUBLISHED else "")
                for i, column in enumerate(COLUMNS)
                if (variant, column) in cells
            ),
        )
        for variant in rules
    ]
    hits = [(variant, *(_hits(cells[variant, column]) for column in COLUMNS)) for variant in rules]
    tables = [
        Table("Races", note, ("rules", *COLUMNS), rows),
        Table("Hits", "Of all handoffs, those that found a stand-in awake.", ("rules", *COLUMNS), hits),
    ]
    return Page("Handoff under adversarial delays", lead, [], tables)


def _due(cells: Mapping[tuple[str, str], Outcome], column: str) -> int:
    return max(outcome.due for (_, name), outcome in cells.items() if name == column)


def _numbers(outcome: Outcome) -> str:
    return f"{outcome.lost}/{outcome.repeated}/{outcome.disordered}/{outcome.left_behind}"


def _hits(outcome: Outcome) -> str:
    return f"{outcome.hits} of {outcome.handoffs}"

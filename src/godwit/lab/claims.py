"""Published claims, and what becomes of them when they are measured again."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class Verdict(StrEnum):
    REPRODUCED = "reproduced"
    NOT_REPRODUCED = "not reproduced"
    NOT_DECIDABLE = "not decidable"
    """What was run says nothing about it: cells are missing, or the claim leaves open what to measure."""


class Claim(msgspec.Struct, frozen=True):
    """`name` is the spec's number, as in E7; `text` what was published."""

    name: str
    text: str


class Finding(msgspec.Struct, frozen=True):
    """A claim with its verdict; `numbers` are what the verdict rests on, or what is missing."""

    claim: Claim
    verdict: Verdict
    numbers: str


def judged(claim: Claim, holds: bool | None, numbers: str) -> Finding:
    """None where nothing can be said."""
    if holds is None:
        return Finding(claim, Verdict.NOT_DECIDABLE, numbers)
    return Finding(claim, Verdict.REPRODUCED if holds else Verdict.NOT_REPRODUCED, numbers)

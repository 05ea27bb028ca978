"""Schedules that once broke a promise, as small as they could be made. Each says in a sentence what was wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from godwit.sim.exploration.plan import load
from godwit.sim.exploration.trial import Trial

FAILURES = Path(__file__).parent / "failures"

CURED = {
    "new-session-old-packet-ids": "A client that is told that its session is new begins its packet ids anew: what the"
    " broker remembered under the old ones made it drop what it had acknowledged.",
    "new-session-old-packet-ids-roaming": "The same for a client that roams on.",
}


@pytest.mark.parametrize("name", CURED)
def test_what_was_cured_stays_cured(name: str) -> None:
    assert Trial(load(FAILURES / f"{name}.json")).run().findings == []


def test_every_schedule_here_has_its_sentence() -> None:
    assert {path.stem for path in FAILURES.glob("*.json")} == CURED.keys()

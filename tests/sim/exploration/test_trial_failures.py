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
    "begun-at-the-same-moment": "Two sessions of a client began in the same millisecond at two brokers, and a turn to"
    " the one was taken for a turn to the other.",
    "calendar-set-back": "A session that began where the calendar had been set back got an epoch that the older one"
    " reached by moving, so that the order of the two was lost.",
    "copied-while-held-back": "A session was copied and given away while what an older one kept was held back in it.",
    "copy-without-word": "A client without a token was let into a copy while its session was elsewhere, and both used"
    " the same packet identifier.",
    "four-sessions": "What one session had was worked out from stream numbers of another that had gone into it.",
    "given-while-held-back": "The same as copied-while-held-back, after a full disk.",
    "copy-nobody-knew-of": "A client that had no answer was let into a copy at one broker and into the session at"
    " another, and the copy still had what the session had given it.",
    "forgotten-while-under-way": "What an older session had passed on was forgotten while the same was still under way"
    " from its broker.",
    "lost-disk-new-session-unheard": "A client that had not heard that its session is new was told later that it is"
    " present, and did not subscribe.",
    "lost-disk-new-session-unheard-elsewhere": "The same at a broker that had never heard of the client.",
    "lost-disk-shadow": "What a session had left behind waited for brokers to turn that had lost their disks.",
    "lost-disk-turn": "A session waited for the turn of a broker that had lost its disk, and its rows stayed.",
    "lost-disk-waited-for": "A broker lost its disk, and who waited for its turn or its session waited for ever.",
    "old-token-old-copy": "A client showed an old token where an outdated copy was, and the newer session went into"
    " that, with packet identifiers that the client knew.",
    "publisher-in-two-sessions": "A client published under the same packet identifier in two sessions that met, and"
    " what it published next was taken for a repetition.",
    "sessions-that-pass-each-other": "A newer session went into an older one on its way, and nobody knew any longer"
    " what the newer had had.",
}


@pytest.mark.parametrize("name", CURED)
def test_what_was_cured_stays_cured(name: str) -> None:
    assert Trial(load(FAILURES / f"{name}.json")).run().findings == []


def test_every_schedule_here_has_its_sentence() -> None:
    assert {path.stem for path in FAILURES.glob("*.json")} == CURED.keys()

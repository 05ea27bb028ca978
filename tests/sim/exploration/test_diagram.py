"""A trial can be read and looked at."""

from __future__ import annotations

from pathlib import Path

from tests.sim.exploration.plans import CRASH, small_plan

from godwit.sim.exploration.diagram import page, write
from godwit.sim.exploration.trial import Note, Trial


def test_a_trial_is_told_and_drawn(tmp_path: Path) -> None:
    verdict = write(small_plan(*CRASH), tmp_path / "seed-1")
    assert not verdict.failed
    text, picture = (tmp_path / "seed-1.txt").read_text(), (tmp_path / "seed-1.html").read_text()
    for word in ("s1 -> b2: CONNECT", "b2 -> s1: CONNACK session present", "[b2 crashes", "Fetch s1", "PUBLISH 1"):
        assert word in text, word
    assert picture.count("<line class='client'") > 20
    assert ">b1<" in picture
    assert "crashes" in picture


def test_what_is_said_cannot_end_the_page() -> None:
    trial = Trial(small_plan())
    verdict = trial.run()
    story = [Note(1.0, "s1", "b1", "<script>alert(1)</script>"), Note(2.0, "b1", "", "<b>")]
    assert "<script>" not in page(trial.plan, verdict, story)

"""What stands in docs/results is what the committed rows say: nobody edits it by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from godwit.lab import site
from godwit.lab.catalogue import AWAITED, STUDIES
from godwit.lab.claims import Verdict

RESULTS = Path(__file__).resolve().parents[2] / "docs" / "results"
SIZE = "published"
KEPT = [name for name in STUDIES if (RESULTS / name / "results.parquet").exists()]


@pytest.fixture(scope="module")
def told() -> dict[str, site.Told]:
    found = {}
    for name in KEPT:
        one = STUDIES[name]
        kept = one.kept(RESULTS / name / "results.parquet")
        kept.any_code = True
        outcome = site.told(one, kept, SIZE)
        assert outcome is not None
        found[name] = outcome
    return found


def test_every_study_has_rows_in_the_repository() -> None:
    assert list(STUDIES) == KEPT


@pytest.fixture(scope="module")
def written(told: dict[str, site.Told]) -> dict[str, str]:
    return site.documents(list(told.values()), AWAITED)


@pytest.mark.parametrize("name", ["index.md", *(f"{name}.md" for name in STUDIES)])
def test_a_page_is_what_the_committed_rows_say(written: dict[str, str], name: str) -> None:
    assert (RESULTS / name).read_text() == written[name], (
        f"docs/results/{name} is not what its rows say; `godwit lab all --report-only --size {SIZE} --out docs/results"
        " --documents docs/results` writes it"
    )


PUBLISHED = {
    "mft-pubsub": [f"E{i}" for i in range(1, 18)],
    "proactive-handoff": [f"Q{i}" for i in range(1, 23)],
    "manet-cbr": [f"E{i}" for i in range(1, 8)] + ["A1"],
    "content-routing": [f"C{i}" for i in range(1, 31)],
    "data-gathering": [f"C{i}" for i in range(1, 16)],
}
"""The claims as the five specifications number them (mft-pubsub 3.4, proactive-handoff 4.6, manet-cbr 4.3,
content-routing 4.3, data-gathering 4.6). A letter or a word after the number names a part."""


@pytest.mark.parametrize("spec", PUBLISHED)
def test_every_published_claim_is_judged_awaited_or_left_out_with_a_reason(
    told: dict[str, site.Told], spec: str
) -> None:
    own = [one for one in told.values() if one.study.spec == spec]
    judged = {_number(finding.claim.name) for one in own for finding in one.outcome.findings}
    waiting = {one.name for one in site.awaited(list(told.values()), AWAITED) if one.spec == spec}
    dropped = {left.name for one in own for left in one.outcome.left_out if left.why}
    assert set(PUBLISHED[spec]) <= judged | waiting | dropped
    assert not judged & (waiting | dropped)


def _number(name: str) -> str:
    return name.split()[0].rstrip("abcde")


def test_every_claim_has_one_of_the_five_verdicts_with_numbers(told: dict[str, site.Told]) -> None:
    for one in told.values():
        for finding in one.outcome.findings:
            assert finding.numbers, finding.claim
            assert finding.claim.place, finding.claim
            assert finding.claim.tolerance, finding.claim


def test_every_row_says_where_it_comes_from(told: dict[str, site.Told]) -> None:
    for one in told.values():
        assert all(row.made.code != "unknown" and row.made.commit != "unknown" for row in one.all_rows)


REPAIRED = {
    "mft-pubsub": {"E5"},
    "proactive-handoff": {"Q2", "Q3", "Q16", "Q20a", "Q20b", "Q22"},
    "manet-cbr": {"E1a", "E2b", "E3b", "E5", "E7c"},
    "content-routing": {"C1", "C3", "C5", "C6", "C11", "C12", "C14", "C15 covering", "C17", "C22", "C23"},
    "data-gathering": {"C9"},
}


def test_every_judge_that_was_repaired_is_told_with_what_it_had_wrong(told: dict[str, site.Told]) -> None:
    found: dict[str, set[str]] = {}
    for one in told.values():
        own = {finding.claim.name for finding in one.outcome.findings if finding.claim.was}
        found.setdefault(one.study.spec, set()).update(own)
    assert {spec: own for spec, own in found.items() if own} == REPAIRED


def test_at_most_five_statements_are_not_decidable(told: dict[str, site.Told]) -> None:
    assert sum(one.counts[Verdict.NOT_DECIDABLE] for one in told.values()) <= 5


def test_the_committed_rows_stay_small() -> None:
    """A megabyte, which is half of what data of all kinds may be in the repository."""
    assert sum((RESULTS / name / "results.parquet").stat().st_size for name in KEPT) < 1_000_000

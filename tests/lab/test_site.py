"""The site: every claim with its verdict, counted, and each page with what it takes to run it again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import pytest

from godwit.lab import site
from godwit.lab.claims import Claim, Margin, Point, Verdict, along, arithmetic, judged
from godwit.lab.intervals import Interval
from godwit.lab.pages import Table
from godwit.lab.provenance import Provenance
from godwit.lab.results import Results
from godwit.lab.studies import Awaited, LeftOut, Outcome, Parameter, Study

PNG = b"\x89PNG"
CLAIM = Claim("E3", "It rolls.")


class Toss(msgspec.Struct, frozen=True, kw_only=True):
    seed: int
    sides: int = 6


class Shown(msgspec.Struct, kw_only=True):
    number: int


def toss(one: Toss) -> Shown:
    return Shown(number=one.seed % one.sides + 1)


def outcome(rows: Sequence[object], size: str) -> Outcome:
    curve = [Point("1 s", False, "0.1"), Point("2 s", True, "0.9")]
    return Outcome(
        lead="Dice & <dice>.",
        findings=[
            judged(Claim("E1", "It is fair.", "dice 1", "a tenth"), True, "3.5 ± 0.1"),
            judged(Claim("E2", "It is loaded.", was="did not throw it"), False, "0"),
            along(Claim("E3", "It rolls."), "the height", curve, "n"),
            judged(Claim("E4", "It is old."), None, "a date", "an hour"),
            arithmetic(Claim("E5", "Six sides."), True, "6"),
        ],
        tables=[Table("Throws", "All of them.", ("seed", "number"), [("1", "2")])],
        parameters=[Parameter("sides", "6", "text")],
        seeds="1 to 3",
        figures=drawn,
        left_out=[LeftOut(name="E6", text="It took a day.", why="the thrower's")],
    )


def drawn() -> Mapping[str, bytes]:
    return {"A die": PNG}


STUDY = Study(
    name="dice",
    title="Dice",
    spec="dice",
    runs=lambda size: [Toss(seed=seed) for seed in range(3 if size == "quick" else 9)],
    work=toss,
    cost_s=lambda one: 1.0,
    kept=lambda path: Results(path, Toss, Shown, Provenance(commit="abc123", code="c0de", machine="a machine")),
    outcome=outcome,
)


@pytest.fixture
def told(tmp_path: Path) -> site.Told:
    kept = STUDY.kept(tmp_path / "results.parquet")
    for one in STUDY.runs("quick"):
        kept.add(one, toss(one))
    found = site.told(STUDY, kept, "quick")
    assert found is not None
    return found


def test_the_index_counts_all_five_verdicts_and_links_every_claim(told: site.Told) -> None:
    html = site.index([told])
    for verdict in Verdict:
        assert f"<b>1</b> {verdict}" in html
    for i in range(5):
        assert f'href="dice.html#c{i}"' in html
    assert "depends on the height" in html


def test_a_page_says_how_to_run_it_again_and_where_its_rows_come_from(told: site.Told) -> None:
    html = site.page(told)
    assert "godwit lab all --only dice --size quick --out results" in html
    for word in (
        "abc123",
        "c0de",
        "a machine",
        "3 of 3 runs of size quick",
        "about 3 s of a core",
        "1 to 3",
        "dice/results.parquet",
        "Throws",
        "sides",
    ):
        assert word in html
    assert "Dice &amp; &lt;dice&gt;." in html
    assert html.count("data:image/png;base64,") == 1
    assert "dice 1: a tenth" in html
    assert 'id="c4"' in html


def test_the_curve_of_a_claim_that_depends_is_on_the_page_and_in_the_documents(told: site.Told) -> None:
    assert "<summary>curve</summary>" in site.page(told)
    pages = site.documents([told])
    assert "| E3 | the height | 2 s | holds | 0.9 |" in pages["dice.md"]
    assert "| [dice](dice.md) | 1 | 1 | 1 | 1 | 1 | 5 |" in pages["index.md"]
    assert all("do not edit" in text for text in pages.values())


def test_a_judge_that_was_repaired_is_in_the_index_with_what_it_had_wrong(told: site.Told) -> None:
    for text in (site.index([told]), site.documents([told])["index.md"]):
        assert "Judges that were repaired" in text
        assert text.count("did not throw it") == 1


def test_a_statement_that_is_left_out_is_in_the_index_with_the_reason_and_not_counted(told: site.Told) -> None:
    for text in (site.index([told]), site.documents([told])["index.md"]):
        assert "Left out" in text
        assert text.count("It took a day.") == 1
    assert site.documents([told])["index.md"].count("5 statements") == 1


def test_a_curve_with_margins_is_drawn(told: site.Told) -> None:
    points = [judged(CLAIM, holds, "").at(f"{x} s") for x, holds in ((1, False), (2, True))]
    with_margins = [
        msgspec.structs.replace(point, margins=(Margin("height", Interval(x - 1.5, 0.1, 3)),))
        for x, point in enumerate(points, 1)
    ]
    found = along(CLAIM, "the height", with_margins, "n")
    drawn = msgspec.structs.replace(told, outcome=msgspec.structs.replace(told.outcome, findings=[found]))
    assert 'alt="E3 along the height' in site.page(drawn)
    assert 'alt="E3 along the height' not in site.page(told)
    assert "| E3 | the height | 2 s | holds | height 0.5 ± 0.1 |" in site.documents([drawn])["dice.md"]


def test_rows_of_several_codes_are_called_so(told: site.Told) -> None:
    mixed = msgspec.structs.replace(told, rows=[*told.rows, msgspec.structs.replace(told.rows[0], made=Provenance())])
    assert "Rows of several codes" in mixed.origin["code"]
    assert "Rows of several codes" not in told.origin["code"]


def test_what_a_large_plan_leaves_open_is_taken_from_a_smaller_one_which_is_named(tmp_path: Path) -> None:
    kept = STUDY.kept(tmp_path / "results.parquet")
    for one in STUDY.runs("published")[:4]:
        kept.add(one, toss(one))
    claims = [Claim(f"E{i}", f"Sentence {i}.") for i in range(3)]
    holds = {"published": (True, None, None), "short": (False, False, None), "quick": (False, True, True)}

    def said(rows: Sequence[object], size: str) -> Outcome:
        findings = [judged(claim, own, f"seen in {size}") for claim, own in zip(claims, holds[size], strict=True)]
        return Outcome(lead=f"A {size} plan.", findings=findings, tables=[], parameters=[], seeds="1", figures=drawn)

    study = msgspec.structs.replace(STUDY, outcome=said)
    found = site.told(study, kept, "published")
    assert found is not None
    assert [(one.verdict, one.numbers) for one in found.outcome.findings] == [
        (Verdict.REPRODUCED, "seen in published"),
        (Verdict.NOT_REPRODUCED, "size short: seen in short"),
        (Verdict.REPRODUCED, "size quick: seen in quick"),
    ]
    page = site.documents([found])["dice.md"]
    assert "4 of 9 runs of size published, 4 of 9 runs of size short, 3 of 3 runs of size quick" in page
    assert "This size leaves E1, E2 open: they are taken from size short." in page
    assert [command.split()[6] for command in found.again] == ["quick", "short", "published"], (
        "the last writes the page"
    )
    captions = found.outcome.figures()
    assert set(captions) == {"A die", "A die (size short)", "A die (size quick)"}
    alone = site.told(study, kept, "quick")
    assert alone is not None
    assert alone.sizes == [alone]


def test_a_statement_without_a_study_is_named_in_the_index_until_it_has_one(told: site.Told) -> None:
    waiting = [Awaited(spec="dice", name=name, text="It lands.", study="tables") for name in ("E1", "E9")]
    for text in (site.index([told], waiting), site.documents([told], waiting)["index.md"]):
        assert "Judged elsewhere" in text
        assert "E9" in text
        assert text.count("It lands.") == 1
    assert "Judged elsewhere" not in site.index([told], waiting[:1])


def test_without_rows_there_is_nothing_to_tell(tmp_path: Path) -> None:
    assert site.told(STUDY, STUDY.kept(tmp_path / "none.parquet"), "quick") is None


def test_the_site_is_written_with_one_file_a_study(told: site.Told, tmp_path: Path) -> None:
    written = site.write(tmp_path, [told])
    assert [path.name for path in written] == ["index.html", "dice.html"]
    assert all(path.exists() for path in written)

"""All four walks can be walked; `test_house.py` compares them with the page."""

from __future__ import annotations

from pathlib import Path

import pytest
from tools import house, walk

PAGE = house.PAGE.read_text()


@pytest.fixture(scope="module")
def trails() -> dict[str, walk.Trail]:
    pytest.importorskip("pyspark")
    return {name: take() for name, take in walk.WALKS.items()}


def test_the_page_names_files_that_are_there(trails: dict[str, walk.Trail]) -> None:
    shown = PAGE.partition(walk.BEGIN)[2].partition(walk.END)[0]
    files = [line.strip("`,.") for line in shown.splitlines() if line.startswith("`")]
    assert [file for file in files if not Path(walk.SOURCE, file).is_file()] == []
    assert {trail.files()[0] for trail in trails.values()} <= set(files)


def test_a_handoff_writes_the_session_once_before_the_client_gets_anything(trails: dict[str, walk.Trail]) -> None:
    assert trails["handoff"].rows.count("sessions") == 1


def test_a_handoff_with_a_copy_is_read_in_at_most_eighty_changes_of_file(trails: dict[str, walk.Trail]) -> None:
    assert trails["handoff"].figures().changes <= 80


def test_what_is_printed_is_what_was_counted(capsys: pytest.CaptureFixture[str]) -> None:
    assert walk.main(["publication", "--hops"]) == 0
    head, row, *hops = capsys.readouterr().out.splitlines()
    assert head.split() == ["walk", "calls", "functions", "files", "changes", "of", "file"]
    name, calls, _, _, changes = row.split()
    assert name == "publication"
    assert len(hops) == int(changes) + 1
    assert sum(len(line.partition(": ")[2].split(", ")) for line in hops) == int(calls)


@pytest.mark.parametrize(("words", "told"), [(["nowhere"], "there is no walk"), (["lab", "--page"], "all walks")])
def test_a_walk_that_there_is_not_is_refused(words: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        walk.main(words)
    assert told in capsys.readouterr().err

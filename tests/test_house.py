"""docs/architecture.md: the picture is what the imports say, and the walks are as long as it says."""

from __future__ import annotations

from pathlib import Path

import pytest
from tools import house, tidy, walk

ROOT = Path(__file__).resolve().parent.parent


def modules(folder: Path, files: dict[str, str]) -> tidy.Modules:
    for name, source in {"__init__.py": "", **files}.items():
        path = folder / "godwit" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
    return tidy.read(folder, folder / "godwit")


@pytest.mark.xdist_group("tests/test_tidy.py")  # where all modules are read already
def test_the_page_shows_the_house_as_it_is() -> None:
    assert house.main(["--check"]) == 0, "draw it again: make house"


@pytest.mark.parametrize("name", walk.WALKS)
def test_every_walk_has_the_length_that_the_page_says_within_a_tenth(name: str) -> None:
    if name == "match":
        pytest.importorskip("pyspark")
    told = walk.counted(house.PAGE.read_text())
    assert walk.WALKS[name]().figures() == pytest.approx(told[name], rel=0.1, abs=1), "make walk ARGS=--page"


@pytest.mark.parametrize("page", ["docs/architecture.md", "CONTRIBUTING.md"])
def test_the_pages_for_contributors_name_only_files_that_are_there(page: str) -> None:
    assert [name for name in house.links((ROOT / page).read_text()) if not (ROOT / name).exists()] == []


def test_rooms_use_what_their_modules_import_wherever_it_stands(tmp_path: Path) -> None:
    found = modules(
        tmp_path,
        {
            "net/__init__.py": "",
            "net/server.py": "def f():\n    from godwit.tables import poset",
            "tables/__init__.py": "",
            "tables/poset.py": "import godwit.filters.text, math",
            "filters/__init__.py": "",
            "filters/text.py": "from godwit.filters import text",
        },
    )
    assert house.rooms_used(found) == {"net": {"tables"}, "tables": {"filters"}, "filters": set()}


def test_an_arrow_that_a_longer_way_implies_is_left_out_and_a_ring_stays() -> None:
    used = {name: frozenset(others) for name, others in {"a": "bc", "b": "c", "c": "", "x": "y", "y": "x"}.items()}
    assert house.reduced(used) == {"a": {"b"}, "b": {"c"}, "c": set(), "x": {"y"}, "y": {"x"}}


def test_only_what_is_between_the_marks_is_drawn_again(tmp_path: Path) -> None:
    found = modules(tmp_path, {"tables/__init__.py": "", "tables/poset.py": ""})
    page = house.redrawn(f"before\n{house.BEGIN}\nold\n{house.END}\nafter\n", found)
    assert page.startswith("before\n")
    assert page.endswith("\nafter\n")
    assert "old" not in page
    assert "| `tables` | `poset` | nothing of ours |" in page
    assert house.redrawn(page, found) == page
    with pytest.raises(house.PageError, match="must contain one line"):
        house.redrawn("no marks", found)

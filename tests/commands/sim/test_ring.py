"""`godwit sim` on a ring: the map in the terminal, and one page that holds everything."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from tests.console.eyes import FLAGS
from typer.testing import CliRunner

from godwit.cli import app
from godwit.commands.sim.ring import COLUMNS, ROWS, drawn
from godwit.sim.ring.ring_stage import RingStage, load_ring

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "ring.toml"

pytestmark = pytest.mark.feature("data-gathering F45")


def test_the_map_has_every_cell_name_and_every_phone() -> None:
    stage = RingStage(load_ring(EXAMPLE), 1)
    stage.run(20.0)
    sight = stage.look()
    text = drawn(sight).plain
    assert [len(line) for line in text.split("\n")] == [COLUMNS] * ROWS
    assert sum(f"#{cell.prefix}" in text for cell in sight.cells) >= len(sight.cells) - 2
    assert "s" in text
    assert "o" in text


def test_programs_get_the_summary_and_nothing_else() -> None:
    result = CliRunner().invoke(app, ["sim", str(EXAMPLE), "--until", "10", "--json"])
    assert {"brokers", "digest"} <= set(json.loads(result.stdout))


def test_a_run_writes_a_page_with_cells_paths_and_relocations(tmp_path: Path) -> None:
    page = tmp_path / "ring.html"
    result = CliRunner().invoke(app, ["sim", str(EXAMPLE), "--until", "60", "--watch", "--animation", str(page)])
    assert result.exit_code == 0, result.output
    assert "digest" in result.output
    assert "handed over" in result.output
    found = re.search(r'id="data">(.*?)</script>', page.read_text(), re.DOTALL)
    assert found is not None
    data = json.loads(found.group(1))
    assert len(data["sights"][0]["cells"]) == 12
    kinds = {arrow[3] for sight in data["sights"] for arrow in sight["arrows"]}
    assert {"Sub", "Notify", "Matched", "Handover", "Register"} <= kinds


COVERED = """() => {
  const at = document.getElementById("at"), found = [];
  for (let picture = 0; picture <= Number(at.max); picture += 3) {
    at.value = picture;
    at.dispatchEvent(new Event("input"));
    const all = [...document.querySelectorAll("#map text")];
    const names = all.map((one) => [one.textContent, one.getBoundingClientRect()]);
    names.forEach(([name, a], place) => names.slice(place + 1).forEach(([other, b]) => {
      const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (wide > 2 && high > 3) found.push(`${picture}: ${name} and ${other}`);
    }));
  }
  return found;
}"""


@pytest.mark.skipif(not shutil.which("chromium"), reason="Debian's chromium is not here")
@pytest.mark.xdist_group("console")
def test_no_name_on_the_page_covers_another_in_any_picture(tmp_path: Path) -> None:
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    page = tmp_path / "ring.html"
    assert CliRunner().invoke(app, ["sim", str(EXAMPLE), "--animation", str(page)]).exit_code == 0
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=shutil.which("chromium"), args=list(FLAGS))
        seen = browser.new_page(viewport={"width": 1100, "height": 900})
        seen.goto(page.as_uri())
        assert seen.locator("#map text").count() > 20
        assert seen.evaluate(COVERED) == []
        browser.close()


def test_bad_options_are_said_before_anything_runs(tmp_path: Path) -> None:
    runner = CliRunner()
    for arguments, told in (
        (["--animation", str(tmp_path / "x.txt")], "ends in .html"),
        (["--inspect", "b1"], "no tables R, T and Q"),
    ):
        result = runner.invoke(app, ["sim", str(EXAMPLE), *arguments])
        assert result.exit_code == 2
        assert told in result.output

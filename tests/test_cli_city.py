"""`godwit city`: it shows what is true, fits on a small terminal, and would tell if the matcher were wrong."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

from godwit.cli import app
from godwit.commands.city import show
from godwit.commands.city.screen import Picture, Watch, display_for
from godwit.commands.city.wishes import WISHES, heard, wishes
from godwit.commands.city.world import City
from godwit.filters.text import parse, to_text
from godwit.tables.matching.batch import Batch
from godwit.tables.matching.index import Index, Matches


def test_it_ends_by_itself_with_a_verified_summary() -> None:
    result = CliRunner().invoke(app, ["city", "--seconds", "0.3", "--subscriptions", "100"])
    assert result.exit_code == 0
    assert WISHES[0].text in result.stdout
    assert "deliveries to" in result.stdout
    assert ", 0 differences" in result.stdout


def test_every_subscription_is_what_its_text_would_have_been_parsed_to() -> None:
    people = list(wishes(np.random.default_rng(5), 450))
    assert len(people) == 450
    assert {wish.text for wish, _ in people} == {wish.text for wish in WISHES}
    for _, filters in people:
        assert parse(to_text(filters)) == filters


def test_the_same_seed_makes_the_same_city() -> None:
    one, other = (City(np.random.default_rng(3)) for _ in range(2))
    assert [one.events(200) for _ in range(3)][-1].equals([other.events(200) for _ in range(3)][-1])


def test_every_wish_comes_true_for_somebody_and_is_told_in_a_sentence() -> None:
    random = np.random.default_rng(8)
    people = list(wishes(random, 2000))
    events = [row for _ in range(3) for row in City(random).events(800).to_pylist()]
    untold = set(WISHES)
    for event in events:
        values = {name: value for name, value in event.items() if value is not None}
        for wish, filters in people:
            if wish in untold and filters.matches(values):
                assert "None" not in heard(wish, filters, values)
                untold.remove(wish)
        if not untold:
            break
    assert untold == set()


@pytest.mark.parametrize(("width", "height"), [(80, 24), (140, 50)])
def test_the_picture_fits_the_terminal(width: int, height: int) -> None:
    console = Console(file=io.StringIO(), width=width, height=height, force_terminal=True, record=True)
    watch = Watch(np.full(100_000, 123_456, np.int64), seconds=20.0, events=10**8, deliveries=10**11, matching_s=20.0)
    watch.heard.extend([("Chloe 99,999", "long news " * 20)] * 4)
    display = display_for(console, watch)
    assert isinstance(display, Picture)
    console.print(display.picture([(10**9, WISHES[1].text * 2)] * 3))
    shown = console.export_text().splitlines()
    assert len(shown) < height
    assert all(len(line) <= width for line in shown)


def test_a_small_terminal_gets_plain_lines() -> None:
    console = Console(file=io.StringIO(), width=60, height=20, force_terminal=True)
    assert not isinstance(display_for(console, Watch(np.zeros(1, np.int64), 1.0)), Picture)


class Forgetful(Index):
    """An index that loses the first match of every batch."""

    def match_batch(self, batch: Batch) -> Matches:
        found = super().match_batch(batch)
        offsets = np.maximum(found.offsets - 1, 0)
        return Matches(offsets, found.ids[1:])


def test_a_matcher_that_loses_deliveries_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(show, "Index", Forgetful)
    monkeypatch.setattr(show, "EVENTS_MAX", 8)
    result = CliRunner().invoke(app, ["city", "--seconds", "0.5", "--subscriptions", "300"])
    assert result.exit_code == 1
    assert ", 0 differences" not in result.stdout.splitlines()[-1]


def test_ctrl_c_ends_it_with_a_summary_and_status_130(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(show.Show, "run", interrupted)
    result = CliRunner().invoke(app, ["city", "--subscriptions", "10", "--json"])
    assert result.exit_code == 130
    assert json.loads(result.stdout)["people"] == 10
    assert "0 events brought 0 deliveries" in result.stderr

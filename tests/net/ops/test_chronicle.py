"""What a broker says in its log of other brokers."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from tests.net.servers import parts, scene, serving
from tests.net.stations import until

from godwit.net.ops import chronicle
from godwit.net.server import Server
from godwit.protocols.broker.messages import Owned, Region
from godwit.protocols.gathering.space import cut_between
from godwit.protocols.host import Record


@pytest.mark.parametrize(
    ("record", "line"),
    [
        (Record("refused", peer="b", message="Owned", note="says so"), "refused what b says (Owned): says so"),
        (Record("joined", note="begins a ring"), "this broker begins a ring, and owns all of the globe"),
        (Record("joined", peer="a", note="01"), "cell 01 is this broker's, by a"),
        (Record("joined", peer="a"), "cell all is this broker's, by a"),
        (Record("divided", peer="b", note="1"), "cell 1 is b's from now on"),
        (Record("undivided", peer="b", note="c d"), "stays where it is (b); in the way: c d"),
        (Record("undivided", peer="b"), "in the way: something else"),
        (Record("assumed", peer="b", note="1"), "this broker stands in for b, which is silent, in cell 1"),
        (Record("taken", note="1"), "cell 1 is this broker's: nobody knew an owner of it"),
        (Record("replaced", peer="b", note="c"), "b is silent, so c keeps the book of this broker in its place"),
        (Record("restored"), "its book is back from: nobody"),
    ],
)
def test_facts_that_operators_must_know_are_a_line_each(
    caplog: pytest.LogCaptureFixture, record: Record, line: str
) -> None:
    with caplog.at_level(logging.INFO, "godwit.fabric"):
        chronicle.write(0.0, "a", record)
    assert line in caplog.text


def test_what_happens_with_each_publication_is_no_line(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        for kind in ("published", "delivered", "dropped", "attached", "moved"):
            chronicle.write(0.0, "a", Record(kind, client="c"))
    assert not caplog.records


def cells(one: Server) -> list[str]:
    ring = parts(one).ring
    assert ring is not None
    return [region.prefix for region in ring.regions]


@scene
async def test_a_ring_says_who_has_which_cell_and_names_a_member_that_lies(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "godwit")
    ring = {"fabric": "dht", "peers__listen": "127.0.0.1:0"}
    async with serving(tmp_path, "a", ring__place="10,0", **ring) as a:
        seed = [dict(a.addresses())["peers"]]
        await until(lambda: bool(cells(a)))
        assert "this broker begins a ring" in caplog.text
        async with serving(tmp_path, "b", ring__place="20,0", peers__connect=seed, **ring) as b:
            await until(lambda: bool(cells(b)))
            assert "is this broker's, by a" in caplog.text
            assert "is b's from now on" in caplog.text
            fabric = parts(a).ring
            assert fabric is not None
            (own,) = fabric.regions
            half = own.cell.append(cut_between((0.0, 10.0), (5.0, 10.0)), "1")
            parts(b).host.run(lambda: _lie(b, Region(half, "c", own.term + 7)))
            await until(lambda: fabric.counts.refused == 1)
            assert [one.peer for one in caplog.records if "refused what" in one.getMessage()] == ["b"]  # type: ignore[attr-defined]
            assert "says that c owns" in caplog.text


def _lie(liar: Server, region: Region) -> None:
    ring = parts(liar).ring
    assert ring is not None
    ring.send(("a",), Owned(0, (region,)))

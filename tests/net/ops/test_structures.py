"""Windows into a running broker: structures of filters, and things with the questions that they answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.net.admin.asking import answered, asked
from tests.net.servers import cluster, port, serving
from tests.net.stations import played, until

import godwit
from godwit.filters.text import parse
from godwit.net.ops import services
from godwit.net.server import Server

HTTP: dict[str, Any] = {"listen__http": "127.0.0.1:0", "listen__status": "", "extras": services.ALL}


def at(one: Server) -> str:
    return f"127.0.0.1:{port(one)}"


@pytest.mark.feature("content-routing F47")
def test_the_structure_browser_shows_what_clients_want_in_every_structure(tmp_path: Path) -> None:
    texts = [f"x > {n}" for n in range(20)] + [f"y BETWEEN {n} AND {n + 1}" for n in range(0, 20, 2)] + ["x > 3"]

    async def scene() -> None:
        async with (
            cluster(tmp_path, "a", "b", **HTTP) as (a, b),
            godwit.connect(at(a)) as one,
            godwit.connect(at(a)) as two,
        ):
            for number, text in enumerate(texts):
                await (one, two)[number % 2].subscribe(text)
            for kind in ("FP", "PF", "BF", "NRF"):
                told = await asked(a, f"/v1/structures?kind={kind}")
                assert {row["kind"] for row in told["compared"]} == {"FP", "PF", "BF", "NRF"}
                assert all(row["agrees"] for row in told["compared"]), told["compared"]
                shown(told, kind)
            whole = next(row for row in told["compared"] if row["kind"] == "PF")
            assert (whole["roots"], whole["depth"], whole["nodes"]) == (11, 20, 30)
            # Ten intervals of y are one clause with ten alternatives, and loosely one interval.
            assert (whole["merged"], whole["merged_loosely"]) == (2, 2)
            small = await asked(a, "/v1/structures?size=5")
            assert (small["total"], small["taken"], len(small["nodes"])) == (30, 5, 5)
            assert (await asked(b, "/v1/structures"))["nodes"] == []
            status, said = await answered(a, "/v1/structures?kind=oak")
            assert (status, b"FP, PF, BF, NRF" in said) == (400, True)

    played(scene)


def shown(told: dict[str, Any], kind: str) -> None:
    """Each filter stands below what covers it; in a forest below one of them."""
    nodes = told["nodes"]
    filters = [parse(node["text"]) for node in nodes]
    for node, own in zip(nodes, filters, strict=True):
        assert all(filters[parent].covers(own) for parent in node["parents"])
        assert kind == "FP" or len(node["parents"]) <= 1
    roots = [own for node, own in zip(nodes, filters, strict=True) if not node["parents"]]
    assert not any(one is not other and one.covers(other) for one in roots for other in roots)


@pytest.mark.feature("content-routing F47")
def test_the_context_browser_shows_both_forests_and_what_each_question_is_told(tmp_path: Path) -> None:
    async def scene() -> None:
        async with serving(tmp_path, "a", **HTTP) as a, godwit.connect(at(a), client="desk") as desk:
            for number in range(5):
                await desk.publish({"speed": 10 * number}, topic=f"vans/{number}", retain=True)
            for number, profile in enumerate(("start >= 9 AND start < 11", "start >= 9 AND start < 10", "start >= 14")):
                await desk.publish({"kind": "room"}, topic=f"rooms/{number}", retain=True, profile=profile)
            fast = await desk.query("speed >= 30", topics="vans/+")
            rooms = await desk.query("kind = 'room' AND start >= 9.5 AND start < 12", topics="rooms/+")
            early = await desk.query("kind = 'room' AND start >= 10 AND start < 11", topics="rooms/+")
            await fast.now()
            await early.now()
            await rooms.now()
            told = await asked(a, "/v1/context")
            assert (told["retained"], told["total"], len(told["subspaces"])) == (8, 3, 3)
            found = [row["topics"] for row in told["questions"]]
            assert found == [["vans/3", "vans/4"], ["rooms/0", "rooms/1"], ["rooms/0"]]
            assert all(row["agrees"] and row["known"] == row["matches"] for row in told["questions"])
            assert len(told["profile_forest"]) == 3
            # A thing is under a topic of its own, so that none covers another; of the questions one does.
            assert [node["parents"] for node in told["question_forest"]] == [[], [], [1]]
            assert {row["topic"]: row["questions"] for row in told["subspaces"]} == {
                "rooms/0": 2,
                "rooms/1": 1,
                "rooms/2": 0,
            }
            await desk.publish(topic="rooms/1", payload=b"", retain=True)
            await until(lambda: len(rooms.known) == 1)
            told = await asked(a, "/v1/context")
            assert [row["matches"] for row in told["questions"]] == [2, 1, 1]

    played(scene)

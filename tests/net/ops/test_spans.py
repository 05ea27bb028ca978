"""Publications as traces: one trace at all brokers, without a word between them."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor
from tests.net.servers import cluster, port, wanted_by
from tests.net.stations import played

import godwit
from godwit.net.ops import services
from godwit.net.ops.spans import TAKEN_MAX, Spans, trace_of
from godwit.protocols.host import Record


class Kept(SpanProcessor):
    def __init__(self) -> None:
        self.spans: list[ReadableSpan] = []

    def on_end(self, span: ReadableSpan) -> None:
        self.spans.append(span)


def told(ratio: float, *records: tuple[str, Record]) -> list[ReadableSpan]:
    kept = Kept()
    brokers = {name: Spans(name, ratio, kept) for name, _ in records}
    for number, (name, record) in enumerate(records):
        brokers[name].take(float(number), name, record)
    return kept.spans


def number_of(span: ReadableSpan) -> int:
    assert span.context is not None
    return int(span.context.span_id)


EVENT = ("van", 7)


def test_a_publication_is_one_trace_over_all_brokers() -> None:
    spans = told(
        1.0,
        ("north", Record("published", event=EVENT, client="van", note="air/a")),
        ("north", Record("delivered", event=EVENT, client="here")),
        ("south", Record("received", event=EVENT, peer="north", note="air/a")),
        ("south", Record("delivered", event=EVENT, client="there")),
        ("south", Record("dropped", event=EVENT, client="away", note="full")),
    )
    names = [span.name for span in spans]
    assert names == ["publish air/a", "deliver here", "receive air/a", "deliver there", "drop away"]
    publish, here, receive, there, drop = spans
    assert {span.context.trace_id for span in spans if span.context} == {trace_of(EVENT)}
    parents = [None if span.parent is None else span.parent.span_id for span in spans]
    assert parents == [None, *(number_of(one) for one in (publish, publish, receive, receive))]
    assert (there.start_time, there.end_time) == (2 * 10**9, 3 * 10**9)
    assert drop.status.description == "full"
    assert here.attributes is not None
    assert here.attributes["messaging.client.id"] == "here"


def test_a_client_that_gets_it_again_has_two_spans() -> None:
    again = Record("delivered", event=EVENT, client="here")
    one, other = told(1.0, ("north", again), ("north", again))
    assert number_of(one) != number_of(other)


def test_brokers_choose_the_same_share_of_publications() -> None:
    events = [("van", number) for number in range(2000)]
    chosen = [
        {span.context.trace_id for span in told(0.1, *((name, Record("published", event=one)) for one in events))}
        for name in ("north", "south")
    ]
    assert chosen[0] == chosen[1]
    assert 130 < len(chosen[0]) < 270
    assert told(0.0, *(("north", Record("published", event=one)) for one in events)) == []


def test_what_is_remembered_is_bounded() -> None:
    spans = Spans("north", 1.0, Kept())
    for number in range(TAKEN_MAX + 10):
        spans.take(0.0, "north", Record("published", event=("van", number)))
    assert len(spans._taken) == TAKEN_MAX


@pytest.fixture
def collector() -> Iterator[tuple[str, list[ExportTraceServiceRequest]]]:
    heard: list[ExportTraceServiceRequest] = []

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            heard.append(ExportTraceServiceRequest.FromString(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_request(self, *said: object) -> None:
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Collector) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/v1/traces", heard
        server.shutdown()
        thread.join()


def test_a_collector_gets_what_two_brokers_did(
    tmp_path: Path, collector: tuple[str, list[ExportTraceServiceRequest]]
) -> None:
    url, heard = collector

    async def scene() -> None:
        async with (
            cluster(tmp_path, "north", "south", **traced(url)) as (north, south),
            godwit.connect(f"127.0.0.1:{port(south)}", client="reader") as reader,
            godwit.connect(f"127.0.0.1:{port(north)}", client="van") as van,
        ):
            readings = await reader.subscribe("pm25 > 100", topics="air/#")
            await wanted_by(south, [north])
            await van.publish({"pm25": 163.5}, topic="air/a")
            async with asyncio.timeout(60):
                await anext(aiter(readings))

    played(scene)
    spans = {
        (told.resource.attributes[1].value.string_value, span.name): span
        for request in heard
        for told in request.resource_spans
        for scope in told.scope_spans
        for span in scope.spans
    }
    by_name = {name: span for (_, name), span in spans.items()}
    assert {"publish air/a", "receive air/a", "deliver reader"} <= set(by_name)
    publish, receive, deliver = (by_name[one] for one in ("publish air/a", "receive air/a", "deliver reader"))
    assert publish.trace_id == receive.trace_id == deliver.trace_id
    assert receive.parent_span_id == publish.span_id
    assert deliver.parent_span_id == receive.span_id


def test_a_collector_that_is_not_there_costs_nothing_but_traces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """What the exporter says of its failure shows that there were spans to send."""
    monkeypatch.setattr("godwit.net.ops.spans.EXPORT_S", 1.0)

    async def scene(at: str) -> None:
        async with (
            cluster(tmp_path, "north", **traced(at)) as (north,),
            godwit.connect(f"127.0.0.1:{port(north)}", client="van") as van,
        ):
            readings = aiter(await van.subscribe("pm25 > 100", topics="air/#"))
            await publishes(van, readings)

    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        played(lambda: scene(url_of(nobody)))
    assert [one for one in caplog.records if one.name.startswith("opentelemetry.exporter") and one.levelname == "ERROR"]


def test_a_collector_that_never_answers_holds_up_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("godwit.net.ops.spans.EXPORT_S", 3.0)
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "50")

    async def scene(silent: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        async with (
            cluster(tmp_path, "north", **traced(url_of(silent))) as (north,),
            godwit.connect(f"127.0.0.1:{port(north)}", client="van") as van,
        ):
            readings = aiter(await van.subscribe("pm25 > 100", topics="air/#"))
            await publishes(van, readings)
            async with asyncio.timeout(60):
                wire, _ = await loop.sock_accept(silent)
                said = b""
                while b"publish air/a" not in said:
                    said += await loop.sock_recv(wire, 65_536)
            # The spans are with it, and nobody has told the broker so.
            for _ in range(20):
                await publishes(van, readings)
            wire.close()

    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.setblocking(False)
        played(lambda: scene(silent))


def traced(at: str) -> dict[str, Any]:
    return {"telemetry__endpoint": at, "telemetry__ratio": 1.0, "extras": services.ALL}


def url_of(wire: socket.socket) -> str:
    return f"http://127.0.0.1:{wire.getsockname()[1]}/v1/traces"


async def publishes(van: godwit.Client, readings: AsyncIterator[object]) -> None:
    await van.publish({"pm25": 163.5}, topic="air/a")
    async with asyncio.timeout(60):
        await anext(readings)

"""Publications as traces of OpenTelemetry: who published, which brokers got it, who received it, how long each took.

A trace needs no message of its own. A publication has one name at all brokers, and the number of its trace is a digest
of that name: brokers choose the same publications, and give their spans the same trace and parents, without a word.

| span | where | parent | from, until |
|---|---|---|---|
| publish TOPIC | the publisher's broker | none | taken |
| receive TOPIC | each other broker | publish | taken |
| deliver CLIENT | where the client is | publish or receive, of this broker | taken here, given to the client |
| drop CLIENT | where it was dropped | the same | taken here, dropped; an error, with its reason |
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from hashlib import blake2b

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

from godwit import __version__
from godwit.net.server import Parts, Service
from godwit.protocols.host import NodeId, Record

TAKEN_MAX = 10_000
"""Publications whose arrival is remembered, for those who get them later."""
EXPORT_S = 5.0
"""How long a collector may take before a batch is lost; only traces are, never publications."""

Event = tuple[str, int]


def trace_of(event: Event) -> int:
    """The number of a publication's trace, the same at all brokers."""
    return int.from_bytes(_digest(event, size=16), "big") or 1


def _digest(event: Event, *about: str, size: int = 8) -> bytes:
    return blake2b("\0".join((event[0], str(event[1]), *about)).encode(), digest_size=size).digest()


class Spans:
    """Takes what a broker traces, and gives spans to a processor. `ratio` of the publications are told."""

    def __init__(self, broker: NodeId, ratio: float, processor: SpanProcessor) -> None:
        self._below = int(ratio * 2**64)
        self._processor = processor
        told = {"service.name": "godwit", "service.instance.id": broker, "service.version": __version__}
        self._resource = Resource.create(told)
        self._taken: OrderedDict[Event, tuple[int, SpanContext]] = OrderedDict()
        self._made = 0

    def take(self, time_s: float, node: NodeId, record: Record) -> None:
        if record.event is None or trace_of(record.event) & (2**64 - 1) >= self._below:
            return
        now = int(time_s * 1e9)
        match record.kind:
            case "published":
                own = self._context(record.event, "publish")
                self._arrived(record.event, now, own)
                self._end(f"publish {record.note}", own, None, now, now, SpanKind.SERVER, record)
            case "received":
                own = self._context(record.event, "receive", node)
                self._arrived(record.event, now, own)
                parent = self._context(record.event, "publish")
                self._end(f"receive {record.note}", own, parent, now, now, SpanKind.CONSUMER, record)
            case "delivered" | "dropped":
                since, parent = self._taken.get(record.event, (now, self._context(record.event, "publish")))
                self._made += 1  # a client may get it again
                own = self._context(record.event, node, record.client, str(since), str(self._made))
                verb = "deliver" if record.kind == "delivered" else "drop"
                self._end(f"{verb} {record.client}", own, parent, since, now, SpanKind.PRODUCER, record)

    def _arrived(self, event: Event, now: int, context: SpanContext) -> None:
        self._taken[event] = (now, context)
        if len(self._taken) > TAKEN_MAX:
            self._taken.popitem(last=False)

    def _context(self, event: Event, *about: str) -> SpanContext:
        number = int.from_bytes(_digest(event, *about), "big") or 1
        return SpanContext(trace_of(event), number, is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED))

    def _end(
        self,
        name: str,
        own: SpanContext,
        parent: SpanContext | None,
        since: int,
        until: int,
        kind: SpanKind,
        record: Record,
    ) -> None:
        assert record.event is not None
        publisher, sequence = record.event
        said = {
            "messaging.system": "godwit",
            "messaging.operation.name": name.partition(" ")[0],
            "messaging.message.id": f"{publisher}/{sequence}",
            "messaging.client.id": record.client,
            "messaging.destination.name": record.note if record.kind in ("published", "received") else "",
            "godwit.peer": record.peer,
        }
        status = Status(StatusCode.ERROR, record.note) if record.kind == "dropped" else Status(StatusCode.UNSET)
        self._processor.on_end(
            ReadableSpan(
                name=name,
                context=own,
                parent=parent,
                resource=self._resource,
                attributes={key: value for key, value in said.items() if value},
                kind=kind,
                status=status,
                start_time=since,
                end_time=max(since, until),
            )
        )


class SpanService(Service):
    """Sends spans to the collector, in batches and from a thread of its own."""

    is_there_for_all = True

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        told = parts.config.telemetry
        self._processor = BatchSpanProcessor(OTLPSpanExporter(endpoint=told.endpoint, timeout=EXPORT_S))
        self._spans = Spans(parts.identity.name, told.ratio, self._processor)

    async def start(self) -> None:
        self._parts.host.sinks.append(self._spans.take)

    async def stop(self) -> None:
        self._parts.host.sinks.remove(self._spans.take)
        await asyncio.to_thread(self._processor.shutdown)

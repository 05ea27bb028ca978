"""What every job that can be a stream may be told of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from godwit.commands.console import InputError

if TYPE_CHECKING:
    from godwit.pipeline.io.source_options import Live
    from godwit.pipeline.streaming.queries import Pace


class StreamOptions(msgspec.Struct, frozen=True, kw_only=True):
    stream: Annotated[
        bool, typer.Option("--stream", help="As a stream with a checkpoint: what is there and was not taken before.")
    ] = False
    follow: Annotated[bool, typer.Option("--follow", help="A stream that waits for more, until Ctrl-C.")] = False
    every: Annotated[
        str, typer.Option(metavar="TIME", help="How often a stream that waits looks, as in '10 seconds'.")
    ] = "0 seconds"
    files_per_batch: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Files that a micro-batch of a stream takes at most.")
    ] = None
    events_per_batch: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Events of a broker that a micro-batch goes through at most.")
    ] = None

    @property
    def asked(self) -> bool:
        return self.stream or self.follow

    def pace(self) -> Pace:
        from godwit.pipeline.streaming.queries import Pace

        return Pace(follow=self.follow, every=self.every)


class LiveOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What a job that reads events may be told of live brokers."""

    filter: Annotated[
        str,
        typer.Option("--filter", metavar="FILTER", help="Of godwit:// sources: what the broker sends, as subscribed."),
    ] = ""
    topics: Annotated[str, typer.Option("--topic", "-t", help="Of godwit:// sources: a topic filter, as in air/#.")] = (
        ""
    )


def live(streaming: StreamOptions, narrowed: LiveOptions, *sources: str) -> Live:
    from godwit.pipeline.io.kafka.address import is_kafka
    from godwit.pipeline.io.source_options import Live, is_live

    if (narrowed.filter or narrowed.topics) and not all(map(is_live, sources)):
        raise InputError("--filter and --topic are for sources such as godwit://host:port")
    if streaming.events_per_batch and not all(is_live(source) or is_kafka(source) for source in sources):
        raise InputError("--events-per-batch is for sources such as godwit://host:port and kafka://host:port/topic")
    return Live(filter=narrowed.filter, topics=narrowed.topics, events_per_batch=streaming.events_per_batch)

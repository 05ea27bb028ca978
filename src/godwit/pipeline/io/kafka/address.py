"""Addresses of topics, and what a client must be told to reach them.

    kafka://broker1:9092,broker2:9092/fleet           one topic
    kafka://broker1:9092/air,water                    several

Security and the like stand in a file of properties, as every client of Kafka has one, named by the environment variable
GODWIT_KAFKA_PROPERTIES; a password does not belong on a command line.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from godwit.pipeline.errors import PipelineError

SCHEME, PROPERTIES = "kafka://", "GODWIT_KAFKA_PROPERTIES"


class KafkaAddress(msgspec.Struct, frozen=True):
    servers: str
    topics: tuple[str, ...]
    properties: tuple[tuple[str, str], ...] = ()


def is_kafka(text: str) -> bool:
    return text.startswith(SCHEME)


def parsed(text: str) -> KafkaAddress:
    """What the address says, with the properties of the environment; `PipelineError` where it is none."""
    servers, slash, rest = text.removeprefix(SCHEME).partition("/")
    topics = tuple(topic.strip() for topic in rest.split(",") if topic.strip())
    if not is_kafka(text) or not servers or not slash or not topics or "/" in rest:
        raise PipelineError(f"{text}: right would be {SCHEME}HOST:PORT/TOPIC, several of either with commas")
    for server in servers.split(","):
        host, colon, port = server.rpartition(":")
        if not host or not colon or not port.isdecimal():
            raise PipelineError(f"{text}: {server!r} names no port; right would be HOST:PORT, as in localhost:9092")
    return KafkaAddress(servers, topics, _properties())


def one_topic(text: str) -> KafkaAddress:
    """The same of a place to write to."""
    address = parsed(text)
    if len(address.topics) != 1:
        raise PipelineError(f"{text}: one topic is written to, and here are {len(address.topics)}")
    return address


def _properties() -> tuple[tuple[str, str], ...]:
    path = os.environ.get(PROPERTIES)
    if not path:
        return ()
    try:
        lines = Path(path).read_text().splitlines()
    except OSError as error:
        raise PipelineError(f"{PROPERTIES}={path}: cannot be read: {error.strerror}") from None
    told = [line.strip() for line in lines if line.strip() and not line.lstrip().startswith(("#", "!"))]
    pairs = [line.partition("=") for line in told]
    if wrong := [line for line, (_, equals, _) in zip(told, pairs, strict=True) if not equals]:
        raise PipelineError(f"{PROPERTIES}={path}: {wrong[0]!r}; right would be name=value")
    return tuple((name.strip(), value.strip()) for name, _, value in pairs)

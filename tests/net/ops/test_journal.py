"""The log of a broker: one line a thing, for people or for programs, and never a flood."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest

from godwit.net.ops.journal import Form, JsonLines, Level, Lines, Sparing, begin


def record(message: str, *arguments: object, name: str = "godwit.mqtt", **extra: object) -> logging.LogRecord:
    made = logging.makeLogRecord({"name": name, "msg": message, "args": arguments, "levelno": 20, "levelname": "INFO"})
    made.__dict__.update(extra)
    return made


@pytest.fixture
def undone() -> Iterator[None]:
    """Whatever a test does to the root logger; and the logger of godwit as a new process has it."""
    root, own = logging.getLogger(), logging.getLogger("godwit")
    handlers, level, own_level = root.handlers[:], root.level, own.level
    own.setLevel(logging.NOTSET)
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    own.setLevel(own_level)


def test_json_has_the_words_and_what_was_said_for_programs() -> None:
    told = json.loads(JsonLines().format(record("%r connected", "van-7", client="van-7", version=5)))
    assert told.pop("time").endswith("Z")
    expected = {
        "level": "info",
        "logger": "godwit.mqtt",
        "message": "'van-7' connected",
        "client": "van-7",
        "version": 5,
    }
    assert told == expected


def test_a_name_cannot_begin_another_line() -> None:
    for form in (Lines(), JsonLines()):
        assert "\n" not in form.format(record("%s is here", "van\nERROR forged"))


def test_a_flood_is_counted_instead_of_written() -> None:
    now = 0.0
    sparing = Sparing(most=2, period_s=10.0, clock=lambda: now)
    assert [sparing.filter(record("refused %s", n)) for n in range(5)] == [True, True, False, False, False]
    assert sparing.filter(record("something else"))
    assert sparing.filter(record("refused %s", 9, name="godwit.other"))
    now = 10.0
    one = record("refused %s", 6)
    assert sparing.filter(one)
    assert Lines().format(one).endswith("refused 6 (3 more like this were not told)")
    assert json.loads(JsonLines().format(one))["not_told"] == 3
    again = record("refused %s", 7)
    assert sparing.filter(again)
    assert Lines().format(again).endswith("refused 7")


def test_the_log_goes_where_it_is_told(undone: None) -> None:
    stream = io.StringIO()
    begin(Form.JSON, Level.WARNING, stream)
    logging.getLogger("godwit.test").info("quiet")
    logging.getLogger("godwit.test").warning("loud")
    # Brokers that other tests of this process left to end may say something too.
    told = [json.loads(line)["message"] for line in stream.getvalue().splitlines()]
    assert [one for one in told if one in ("quiet", "loud")] == ["loud"]

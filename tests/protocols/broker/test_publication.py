"""What a filter can see of a publication, however it is made up."""

from __future__ import annotations

import json
import tracemalloc

from godwit.events import NAME_MAX
from godwit.protocols.broker.publication import Publication


def test_names_are_bounded_before_they_are_built() -> None:
    """Nested keys as long as the payload allows: built first and thrown away after, they cost megabytes each."""
    inner: dict[str, object] = {f"k{i}": i for i in range(5_000)}
    payload = json.dumps({"a" * 100_000: {"b" * 100_000: inner}, "speed": 7}).encode()
    tracemalloc.start()
    found = Publication("p", 1, "t", payload).values()
    _, peak_b = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found == {"speed": 7, "topic": "t", "topic_levels": 1, "topic_1": "t"}
    assert peak_b < 20 * len(payload)


def test_a_name_may_be_as_long_as_it_may_be() -> None:
    longest, longer = "n" * NAME_MAX, "n" * (NAME_MAX + 1)
    found = Publication("p", 1, "t", json.dumps({longest: 1, longer: 2, "": 3}).encode()).values()
    assert longest in found
    assert longer not in found
    assert "" not in found

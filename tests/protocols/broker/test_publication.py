"""What a filter can see of a publication, however it is made up."""

from __future__ import annotations

import json
import tracemalloc

from hypothesis import example, given
from hypothesis import strategies as st

from godwit.events import INT_MAX, INT_MIN, NAME_MAX
from godwit.protocols.broker.publication import DEPTH_MAX, Publication

SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text(max_size=5)
)
NAMES = st.text("ab.", max_size=3) | st.just("n" * NAME_MAX) | st.just("n" * (NAME_MAX + 1))
OBJECTS = st.dictionaries(
    NAMES,
    st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=3)),
    max_size=4,
)


def seen(members: dict[str, object], prefix: str = "", depth: int = 0) -> dict[str, object]:
    """What a filter sees of an object, as the page says it."""
    found: dict[str, object] = {}
    for key, value in members.items():
        name = prefix + key
        if isinstance(value, dict) and depth < DEPTH_MAX and len(name) <= NAME_MAX:
            found |= seen(value, f"{name}.", depth + 1)
        elif isinstance(value, str | bool | float) or (isinstance(value, int) and INT_MIN <= value <= INT_MAX):
            found |= {name: value} if 0 < len(name) <= NAME_MAX else {}
    return found


@given(OBJECTS)
@example({"a": 1, "b": "x", "c": True, "d": 1.5})
@example({"a": INT_MAX + 1, "b": 2})
@example({"a": 10**400, "b": 2})
@example({"a": None, "b": {"c": {"d": 1}}})
def test_a_filter_sees_what_is_text_number_or_boolean_however_deep(members: dict[str, object]) -> None:
    found = Publication("p", 1, "t", json.dumps(members).encode()).values()
    told = {name: value for name, value in found.items() if not name.startswith("topic")}
    wanted = seen(members)
    assert told == wanted
    assert {name: type(value) for name, value in told.items()} == {name: type(value) for name, value in wanted.items()}


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

"""Who else wants a topic, against asking every filter of every broker."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from godwit.events import Value
from godwit.filters.filters import Filter, FilterSet
from godwit.filters.text import parse
from godwit.protocols.broker.interest.remote import Others
from godwit.protocols.broker.publication import topic_values
from godwit.protocols.host import NodeId

TEXTS = [
    "topic_1 = 'a'",
    "topic_1 IN ('a', 'b') AND topic_levels = 2",
    "topic_2 LIKE 'x%'",
    "topic LIKE 'a/%'",
    "topic_1 NOT LIKE '$%' AND topic_levels >= 1",
    "topic_1 = 'a' AND topic_2 = 'x' AND n > 5",
    "n = 1",
    "topic_1 = other",
    "topic_3 IS NULL",
]
FILTERS = [one for text in TEXTS for one in parse(text)]

interests = st.dictionaries(
    st.sampled_from(["b1", "b2", "b3"]), st.lists(st.sampled_from(FILTERS), max_size=4).map(tuple), max_size=3
)


@settings(deadline=None)
@given(st.lists(interests, min_size=1, max_size=4), st.sampled_from(["a", "b", "a/x", "b/xy", "a/x/z", "$s/x", "c/d"]))
def test_the_same_brokers_are_found_as_by_asking_all(steps: list[dict[NodeId, tuple[Filter, ...]]], topic: str) -> None:
    asked: dict[int, tuple[FilterSet, NodeId]] = {}

    def ask(filters: FilterSet, broker: NodeId) -> int:
        number = max(asked, default=0) + 1
        asked[number] = (filters, broker)
        return number

    def forget(number: int) -> None:
        del asked[number]

    others = Others(ask, forget)
    for interest in steps:
        others.follow(interest)
    surely, perhaps = others.find(topic)
    values = topic_values(topic)
    contents: list[dict[str, Value]] = [{}, {"n": 1}, {"n": 9}, {"other": "a"}, {"other": "b"}]
    for content in contents:
        event = {**content, **values}
        wanting = {name for name, filters in interest.items() if any(one.matches(event) for one in filters)}
        by_content = {broker for filters, broker in asked.values() if filters.matches(event)}
        assert set(surely) <= wanting
        assert wanting == set(surely) | by_content
        assert wanting == set(surely) or perhaps
    others.follow({})
    assert asked == {}

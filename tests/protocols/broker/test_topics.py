"""Topics against the plainest matcher there is, and their meaning as filters against enumeration."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from godwit.filters.filters import Filter
from godwit.protocols.broker.publication import Publication, topic_values
from godwit.protocols.broker.topics import (
    LEVELS_MAX,
    Named,
    Trie,
    matches,
    meaning,
    problem_of_filter,
    problem_of_name,
)

WORDS = ("a", "b", "", "$s")
TOPICS = ["/".join(levels) for count in (1, 2, 3) for levels in product(WORDS, repeat=count) if levels != ("",)]

names = st.sampled_from(TOPICS)
filters = st.builds(
    lambda levels, ending: "/".join([*levels, *ending]) or "#",
    st.lists(st.sampled_from(("a", "b", "", "$s", "+")), min_size=0, max_size=3),
    st.sampled_from(((), ("#",))),
)


@pytest.mark.parametrize(
    ("topics", "topic", "wanted"),
    [
        ("sport/tennis/player1/#", "sport/tennis/player1", True),
        ("sport/tennis/player1/#", "sport/tennis/player1/score/wimbledon", True),
        ("sport/#", "sport", True),
        ("#", "sport/tennis", True),
        ("sport/tennis/+", "sport/tennis/player1/ranking", False),
        ("sport/+", "sport", False),
        ("sport/+", "sport/", True),
        ("+/+", "/finance", True),
        ("/+", "/finance", True),
        ("+", "/finance", False),
        ("#", "$SYS/up", False),
        ("+/monitor/Clients", "$SYS/monitor/Clients", False),
        ("$SYS/#", "$SYS/up", True),
        ("$SYS/monitor/+", "$SYS/monitor/Clients", True),
        ("ACCOUNTS", "Accounts", False),
    ],
)
def test_the_examples_of_the_mqtt_standard(topics: str, topic: str, wanted: bool) -> None:
    assert matches(topics, topic) is wanted
    assert meaning(topics).matches(topic_values(topic)) is wanted


@given(filters, names)
def test_the_meaning_of_a_topic_filter_accepts_what_it_wants(topics: str, topic: str) -> None:
    assert meaning(topics).matches(topic_values(topic)) == matches(topics, topic)


@given(filters, filters)
@example("/#", "+")
def test_one_covers_or_overlaps_another_exactly_where_the_topics_do(one: str, other: str) -> None:
    # Nobody may publish under the empty name, and both of them have it: "/#" and "+" overlap there only.
    long = [
        "",
        *TOPICS,
        *(f"{topic}/a/b" for topic in TOPICS),
        *(f"{topic}/z" for topic in TOPICS),
        "z",
        "z/z",
        "z/z/z",
    ]
    mine = {topic for topic in long if matches(one, topic)}
    theirs = {topic for topic in long if matches(other, topic)}
    assert meaning(one).covers(meaning(other)) == (theirs <= mine)
    assert meaning(one).overlaps(meaning(other)) == bool(mine & theirs)


@given(st.lists(filters, max_size=8), st.lists(st.integers(0, 7), max_size=4), names)
def test_the_trie_finds_what_the_matcher_finds(held: list[str], removed: list[int], topic: str) -> None:
    trie: Trie[int] = Trie()
    for number, topics in enumerate(held):
        trie.add(topics, number, number)
    for number in removed:
        if number < len(held):
            trie.remove(held[number], number)
    left = [number for number, topics in enumerate(held) if number not in removed and matches(topics, topic)]
    assert sorted(trie.find(topic)) == left


@given(st.sets(names, max_size=12), st.sets(names, max_size=4), filters)
def test_named_values_are_found_by_filter(put: set[str], removed: set[str], topics: str) -> None:
    named: Named[str] = Named()
    for topic in put:
        named.put(topic, topic)
    for topic in removed:
        named.remove(topic)
    left = put - removed
    assert sorted(named.find(topics)) == sorted(topic for topic in left if matches(topics, topic))
    assert sorted(named) == sorted(left)
    assert len(named) == len(left)


@pytest.mark.parametrize("topics", ["a/#/b", "a#", "#/a", "a+", "+a/b", "", "a\0", "a/" * LEVELS_MAX, "x" * 65_536])
def test_what_is_no_topic_filter_is_refused_with_a_reason(topics: str) -> None:
    assert problem_of_filter(topics)


@pytest.mark.parametrize("topic", ["a/+", "#", "", "a\0b", "\u00e9" * 32_768])
def test_what_is_no_topic_is_refused_with_a_reason(topic: str) -> None:
    assert problem_of_name(topic)


def test_the_longest_topic_passes() -> None:
    assert problem_of_name("x" * 65_535) == problem_of_filter("x" * 65_535) == ""


def test_content_cannot_make_up_a_level_that_the_topic_does_not_have() -> None:
    values = Publication("p", 1, "a", b'{"topic_2": "b", "topic_levels": 7, "topics": 1}').values()
    assert values == {"topics": 1, "topic": "a", "topic_levels": 1, "topic_1": "a"}


def test_everything_covers_all_but_the_brokers_own() -> None:
    assert meaning("#").covers(meaning("a/+/c"))
    assert not meaning("#").covers(meaning("$SYS/#"))
    assert meaning("a/#").covers(meaning("a/b"))
    assert meaning("a/#").covers(meaning("a/+/c"))
    assert isinstance(meaning("#"), Filter)

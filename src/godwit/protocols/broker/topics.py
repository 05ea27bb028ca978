"""Topic names and topic filters, as MQTT has them: checking, matching, finding, and what they mean as filters.

+ stands for one level, # for any levels at the end, none included; neither at the start matches a topic beginning
with $, which are the broker's own.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from functools import lru_cache
from typing import Generic, TypeVar

from godwit.filters.clauses import AttributeFilter
from godwit.filters.filters import Filter, attribute, filter_of
from godwit.filters.predicates import AnyPredicate, TextOp, equ, gre, negation
from godwit.filters.predicates import Text as TextPredicate

BYTES_MAX = 65_535
LEVELS_MAX = 200
"""Deeper topics are refused, so that nobody can make a broker walk ten thousand levels for one message."""
REMEMBERED_CHARS_MAX, REMEMBERED_LEVELS_MAX = 256, 16
"""The meaning of longer and deeper topic filters is not kept."""

V = TypeVar("V")


def problem_of_name(topic: str) -> str:
    """Why this cannot be published to, or nothing where it can."""
    if "+" in topic or "#" in topic:
        return f"topic {topic[:80]!r} has a wildcard; only topic filters may have one"
    return _problem(topic, "topic")


def problem_of_filter(topics: str) -> str:
    """Why this cannot be subscribed to, or nothing where it can."""
    return problem_of_form(topics) or _problem(topics, "topic filter")


def problem_of_form(topics: str) -> str:
    """Why this is no topic filter of MQTT, or nothing where it is one; it may still be one that no broker takes."""
    if not topics:
        return "the topic filter is empty"
    for at, level in enumerate(levels := topics.split("/")):
        if "+" in level and level != "+":
            return f"topic filter {topics[:80]!r}: '+' must be a whole level, not a part of {level[:80]!r}"
        if "#" in level and (level != "#" or at != len(levels) - 1):
            return f"topic filter {topics[:80]!r}: '#' must be a whole level, and the last one"
    return ""


def _problem(text: str, what: str) -> str:
    if not text:
        return f"the {what} is empty"
    if "\0" in text:
        return f"{what} {text[:80]!r} contains the character NUL"
    # Most are short: a character takes four bytes at most.
    if len(text) > BYTES_MAX // 4 and len(text.encode("utf-8", "surrogatepass")) > BYTES_MAX:
        return f"{what} {text[:80]!r}... is longer than {BYTES_MAX} bytes"
    if text.count("/") >= LEVELS_MAX:
        return f"{what} {text[:80]!r}... has more than {LEVELS_MAX} levels"
    return ""


def matches(topics: str, topic: str) -> bool:
    """Whether the topic filter wants the topic; both are valid."""
    wanted, levels = topics.split("/"), topic.split("/")
    if topic.startswith("$") and wanted[0] in ("+", "#"):
        return False
    if wanted[-1] == "#":
        wanted.pop()
        levels = levels[: len(wanted)]
    return len(wanted) == len(levels) and all(one in ("+", level) for one, level in zip(wanted, levels, strict=True))


_NOT_THE_BROKERS = negation(TextPredicate(TextOp.STW, "$"))


def meaning(topics: str) -> Filter:
    """The filter over `topic_1` ... and `topic_levels` that accepts exactly the topics that the topic filter wants.

    One covers or overlaps another exactly where the topic filters do.
    """
    # What is long or deep is not remembered: whoever asks for very many such would fill the memory.
    small = len(topics) <= REMEMBERED_CHARS_MAX and topics.count("/") < REMEMBERED_LEVELS_MAX
    return _remembered(topics) if small else _meant(topics)


@lru_cache(maxsize=16_384)
def _remembered(topics: str) -> Filter:
    return _meant(topics)


def _meant(topics: str) -> Filter:
    levels = topics.split("/")
    open_ended = levels[-1] == "#"
    if open_ended:
        levels.pop()
    least = max(len(levels), 1)
    demands = [attribute("topic_levels", gre(least) if open_ended else equ(least))]
    demands += [_level(number, equ(level)) for number, level in enumerate(levels, 1) if level != "+"]
    if not levels or levels[0] == "+":
        demands.append(_level(1, _NOT_THE_BROKERS))
    return filter_of(*demands)


@lru_cache(maxsize=16_384)
def _level(number: int, predicate: AnyPredicate) -> AttributeFilter:
    """Shared by all filters that demand it: a deep topic filter would else be a hundred times as large as its text."""
    return attribute(f"topic_{number}", predicate)


class _Node(Generic[V]):
    __slots__ = ("below", "children", "here")

    def __init__(self) -> None:
        self.children: dict[str, _Node[V]] = {}
        self.here: dict[Hashable, V] = {}
        self.below: dict[Hashable, V] = {}
        """What is filed under a filter that ends with '#' at this level."""

    @property
    def empty(self) -> bool:
        return not (self.children or self.here or self.below)


class Trie(Generic[V]):
    """Values filed under topic filters, each with a key that is its own there; `find` gives those for a topic."""

    def __init__(self) -> None:
        self._root: _Node[V] = _Node()

    def add(self, topics: str, key: Hashable, value: V) -> None:
        node, ending = self._root, topics.split("/")
        open_ended = ending[-1] == "#"
        for level in ending[:-1] if open_ended else ending:
            node = node.children.setdefault(level, _Node())
        (node.below if open_ended else node.here)[key] = value

    def remove(self, topics: str, key: Hashable) -> None:
        """Nothing happens where there is none."""
        levels = topics.split("/")
        open_ended = levels[-1] == "#"
        if open_ended:
            levels.pop()
        way = [self._root]
        for level in levels:
            child = way[-1].children.get(level)
            if child is None:
                return
            way.append(child)
        (way[-1].below if open_ended else way[-1].here).pop(key, None)
        for level in reversed(levels):
            if not way.pop().empty:
                break
            del way[-1].children[level]

    def find(self, topic: str) -> list[V]:
        """All whose topic filter wants the topic."""
        found: list[V] = []
        root = self._root
        if not root.children and not root.below:
            return found
        nodes, levels = [root], topic.split("/")
        if topic.startswith("$"):
            nodes = [child] if (child := root.children.get(levels.pop(0))) else []
        for level in levels:
            following = []
            for node in nodes:
                if node.below:
                    found.extend(node.below.values())
                children = node.children
                if level in children:
                    following.append(children[level])
                if "+" in children:
                    following.append(children["+"])
            nodes = following
        for node in nodes:
            found.extend(node.here.values())
            found.extend(node.below.values())
        return found


class _Leaf(Generic[V]):
    __slots__ = ("children", "value")

    def __init__(self) -> None:
        self.children: dict[str, _Leaf[V]] = {}
        self.value: V | None = None


class Named(Generic[V]):
    """One value a topic; `find` gives those whose topics a topic filter wants."""

    def __init__(self) -> None:
        self._root: _Leaf[V] = _Leaf()
        self._leaves: dict[str, _Leaf[V]] = {}
        """By topic, those with a value: a thing that moves is looked up several times for each of its positions."""

    def __len__(self) -> int:
        return len(self._leaves)

    def put(self, topic: str, value: V) -> None:
        leaf = self._leaves.get(topic)
        if leaf is None:
            leaf = self._root
            for level in topic.split("/"):
                leaf = leaf.children.setdefault(level, _Leaf())
            self._leaves[topic] = leaf
        leaf.value = value

    def get(self, topic: str) -> V | None:
        leaf = self._leaves.get(topic)
        return leaf.value if leaf is not None else None

    def remove(self, topic: str) -> None:
        if self._leaves.pop(topic, None) is None:
            return
        levels = topic.split("/")
        way = [self._root]
        for level in levels:
            way.append(way[-1].children[level])
        way[-1].value = None
        for level in reversed(levels):
            leaf = way.pop()
            if leaf.children or leaf.value is not None:
                break
            del way[-1].children[level]

    def find(self, topics: str) -> list[V]:
        levels = topics.split("/")
        open_ended = levels[-1] == "#"
        if open_ended:
            levels.pop()
        leaves = [self._root]
        for at, level in enumerate(levels):
            leaves = [child for leaf in leaves for child in _below(leaf, level, at == 0)]
        if open_ended:
            at_root = not levels
            return [value for leaf in leaves for value in _all_of(leaf, at_root)]
        return [leaf.value for leaf in leaves if leaf.value is not None]

    def __iter__(self) -> Iterator[V]:
        return iter(list(_all_of(self._root, False)))


def _below(leaf: _Leaf[V], level: str, first: bool) -> Iterator[_Leaf[V]]:
    if level != "+":
        if level in leaf.children:
            yield leaf.children[level]
    else:
        for name, child in leaf.children.items():
            if not (first and name.startswith("$")):
                yield child


def _all_of(leaf: _Leaf[V], without_brokers: bool) -> Iterator[V]:
    """Everything at and below; LEVELS_MAX keeps the recursion within bounds."""
    if leaf.value is not None:
        yield leaf.value
    for name, child in leaf.children.items():
        if not (without_brokers and name.startswith("$")):
            yield from _all_of(child, False)

"""What every fabric answers, and what a medium without streams need not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from godwit.filters.filters import Filter, attribute, filter_of
from godwit.filters.predicates import equ
from godwit.protocols.broker.fabric.base import ANYTHING, Alone, Fabric, Medium, Streamless
from godwit.protocols.broker.messages import Content, Repeated
from godwit.protocols.broker.publication import Publication
from godwit.protocols.host import Message, NodeId

WARM = filter_of(attribute("warm", equ(True)))


class Pipe:
    """A `Medium` and nothing more."""

    def __init__(self) -> None:
        self.on_content: Callable[[NodeId, int, Content | Repeated], None] = lambda origin, number, content: None
        self.on_change: Callable[[], None] = lambda: None
        self.clock: Callable[[], float] = lambda: 0.0
        self.wanted: tuple[Filter, ...] = ()
        self.sent: list[tuple[tuple[NodeId, ...], Content]] = []

    @property
    def interests(self) -> Mapping[NodeId, tuple[Filter, ...]]:
        return {"others": (WARM,)}

    def want(self, filters: Iterable[Filter]) -> int:
        self.wanted = tuple(filters)
        return 7

    def send(self, to: Iterable[NodeId], content: Content, *, durable: bool = True) -> None:
        self.sent.append((tuple(to), content))

    def receive(self, sender: NodeId, message: Message) -> None:
        self.on_content(sender, 0, publication())
        self.on_change()


def publication() -> Publication:
    return Publication("p", 1, "t")


def test_a_medium_without_streams_serves_as_a_fabric_that_knows_nobody() -> None:
    pipe = Pipe()
    medium: Medium = pipe
    fabric: Fabric = Streamless(medium)
    assert fabric.interests == {"others": (WARM,)}
    assert fabric.want((WARM,)) == 7
    fabric.send(("others",), publication(), durable=True)
    assert pipe.wanted == (WARM,)
    assert pipe.sent == [(("others",), publication())]
    assert not fabric.is_known("others")
    assert fabric.sources(ANYTHING) == frozenset()
    assert (fabric.heard("others"), fabric.disk_of("others"), fabric.sent) == (0, 0, 0)


def test_what_comes_over_such_a_medium_reaches_whoever_listens_to_the_fabric() -> None:
    fabric = Streamless(Pipe())
    heard: list[object] = []
    fabric.on_content = lambda origin, number, content: heard.append((origin, number, content))
    fabric.on_change = lambda: heard.append("changed")
    fabric.receive("others", Message())
    assert heard == [("others", 0, publication()), "changed"]


def test_a_broker_alone_has_no_sources_and_no_interests() -> None:
    fabric: Fabric = Alone()
    assert not fabric.interests
    assert not fabric.sources(ANYTHING)


def test_anything_accepts_every_event() -> None:
    assert all(one.matches({}) and one.covers(WARM) for one in ANYTHING)

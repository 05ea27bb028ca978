"""What a client makes of the changes that it is told: the rules of docs/lasting.md, and nothing of the broker's."""

from __future__ import annotations

from godwit.protocols.broker.api import Delivery


def told(delivery: Delivery) -> str:
    """A change in a few words."""
    said = dict(delivery.publication.properties.user)
    return f"{said['lasting-view']} {said['lasting-number']} {said['lasting']} {delivery.publication.topic}"


class Picture:
    """Give it every delivery of one lasting subscription, in their order; repetitions do no harm.

    `known` is what matches as far as the client knows: the payload of each topic. What is not as it should be is said
    in `wrong`.
    """

    def __init__(self) -> None:
        self.view = ""
        self.number = 0
        self.known: dict[str, bytes] = {}
        self.told: list[tuple[str, str]] = []
        """Sign and topic of each change."""
        self.wrong: list[str] = []
        self.pending = 0
        self._left: set[str] = set()
        self._numbered: dict[tuple[str, int], tuple[str, str, bytes]] = {}
        """What came under each number."""

    def take(self, delivery: Delivery) -> None:
        said = delivery.publication
        properties = dict(said.properties.user)
        view, number, sign = properties["lasting-view"], int(properties["lasting-number"]), properties["lasting"]
        if self._numbered.setdefault((view, number), (sign, said.topic, said.payload)) != (
            sign,
            said.topic,
            said.payload,
        ):
            self.wrong.append(f"{view} {number} is used twice, the second time for {sign} {said.topic}")
        if view in self._left or (view == self.view and number <= self.number):
            return
        self.begin(view)
        if number != self.number + 1:
            self.wrong.append(f"{view} {number} follows {self.number}")
        self.number, self.pending = number, int(properties["lasting-pending"])
        self.told.append((sign, said.topic))
        self._apply(sign, said.topic, said.payload)

    def begin(self, view: str) -> None:
        """It is told of this one from now on, by a SUBACK or by a change; of another one it forgets what it knew."""
        if view != self.view and view not in self._left:
            self._left.add(self.view)
            self.view, self.number, self.known = view, 0, {}

    def _apply(self, sign: str, topic: str, payload: bytes) -> None:
        if (sign == "+") == (topic in self.known):
            self.wrong.append(f"{self.view} {self.number}: {sign} {topic}, which was known: {topic in self.known}")
        if sign == "-":
            self.known.pop(topic, None)
        else:
            self.known[topic] = payload

"""Streams between brokers (docs/broker.md): everything arrives once and in order, whatever the way does to frames.

Frames may be lost, repeated and overtake one another. What makes that good:

- A copy says its number, and the number after which it follows in the stream to its receiver: whatever lies between
  has been confirmed, or given up, and does not come any more. So a receiver takes what follows on the last that it was
  given, and what a limit has dropped leaves no hole.
- `stream` names the sender's disk. Another name is another stream, from the beginning: the sender has lost its disk.
- `life` names a start of the receiver. The sender sends to a life that has answered, and begins where that says: behind
  its mark, or with the oldest that is kept where the receiver has lost its disk. What is not durable and was sent to a
  former life is given up, since that may have taken it.
- Nothing is repeated on suspicion. Where a receiver is silent, reports a gap, or is reached by another way, it is
  asked; the question follows all that was sent, and the answer says what of that is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from godwit.protocols.broker.messages import Content
from godwit.protocols.broker.store import Store
from godwit.protocols.broker.streams.frames import Ask, Parcels, Taken
from godwit.protocols.broker.streams.receiver import Receiver
from godwit.protocols.broker.streams.sender import Carry, Counts, Sender, StreamOptions
from godwit.protocols.broker.streams.sequence import reserved
from godwit.protocols.host import Host, NodeId


class Streams:
    """Both halves for one broker. `carry` takes a frame one step on its way or loses it.

    It must be made once for each start of the broker and needs a store that writes what is put in one turn at once.
    """

    def __init__(
        self,
        host: Host,
        store: Store,
        options: StreamOptions,
        carry: Carry,
        has_way: Callable[[NodeId], bool],
        on_content: Callable[[NodeId, int, Content], None],
        on_reborn: Callable[[NodeId], None] = lambda origin: None,
        clock: Callable[[], float] | None = None,
    ) -> None:
        clock = clock or host.now
        self.counts = Counts()
        disk = _stream(host, store)
        self.sender = Sender(host, store, disk, options, self.counts, carry, has_way, clock)
        self.receiver = Receiver(host, store, options, self.counts, carry, on_content, on_reborn, clock, disk)

    def stream_of(self, origin: NodeId) -> int:
        """The name of the stream of this broker, or of another from whom something has come."""
        return self.sender.stream if origin == self.sender.host.name else self.receiver.sources[origin].stream

    def reached(self, origin: NodeId) -> int:
        """The last number of that stream that was used, or has come here; 0 where none has."""
        if origin == self.sender.host.name:
            return self.sender.numbers.last
        source = self.receiver.sources.get(origin)
        return 0 if source is None else source.given

    def start(self) -> None:
        """Begin to send. The store must have settled since this was made: names and numbers are then on the disk."""
        self.sender.start()

    @property
    def unconfirmed(self) -> dict[NodeId, int]:
        """How many contents are kept for each broker that has some to confirm."""
        return {to: len(lane.parcels) for to, lane in self.sender.outbox.lanes.items() if lane.parcels}

    def send(self, to: Iterable[NodeId], content: Content, *, durable: bool = True, settled: bool = False) -> None:
        self.sender.send(to, content, durable=durable, settled=settled)

    def taken(self, origin: NodeId, number: int) -> None:
        """`on_content` of this has been done with; the mark is written at once, beside whatever came of it."""
        self.receiver.taken(origin, number)

    def again(self, to: NodeId) -> None:
        """A way to this broker has appeared, or another one."""
        self.receiver.announce(to)
        self.sender.again(to)

    def forget(self, to: NodeId) -> None:
        """This broker will not come back; what is kept for it is dropped. What has come from it stays known."""
        self.sender.forget(to)

    def receive(self, frame: Parcels | Ask | Taken) -> None:
        """A frame for this broker; `RemoteError` where it cannot be true, and nothing has changed."""
        match frame:
            case Parcels():
                self.receiver.receive(frame)
            case Ask():
                self.receiver.asked(frame)
            case Taken():
                if self.receiver.is_of(frame.by, frame.disk):
                    self.sender.confirmed(frame)


def _stream(host: Host, store: Store) -> int:
    """The name of this disk's stream, given to it when it is first used."""
    name = reserved(store, "stream")
    if not name:
        name = 1 + host.random.getrandbits(60)
        store.put("meta", "stream", 0, str(name).encode())
    return name

"""A tree kept by leader election (spec mft-pubsub 2.3): the first copy of a round of heartbeats points to the leader.

The leader broadcasts a numbered heartbeat; whoever hears a round for the first time takes the sender as its parent and
repeats it once. So the parents form a tree that is at most one round old, and a round that comes first through somebody
else is how a broker learns that it, or the world around it, has moved.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

import msgspec

from godwit.protocols.host import Host, Message, NodeId, Record, Timer
from godwit.protocols.topology.tree import Migrate, ignore


class Heartbeat(Message, frozen=True):
    """One copy of a round. `parent` tells the hearer whether the sender is its child; `load` counts children."""

    leader: NodeId
    incarnation: int
    round: int
    hops: int
    parent: NodeId | None = None
    load: int = 0

    @property
    def size_b(self) -> int:
        return 15


class Choice(StrEnum):
    """Which copy of a round names the parent, among those that arrive within the holding time."""

    FIRST = "first"
    """The first one: exactly the thesis. Nothing is held back."""

    STICKY = "sticky"
    """The present parent's, if it comes in time: a race that the same neighbors run every second is not a move."""

    BALANCED = "balanced"
    """Of those nearest to the leader the present parent's, unless its family is far larger; else the least loaded."""


LOPSIDED = 3
"""How many children more than elsewhere make a family worth leaving."""

LATE_ROUNDS = 10


class ElectionOptions(msgspec.Struct, frozen=True, kw_only=True):
    period_s: float = 1.0
    leader_timeout_s: float = 3.0
    child_timeout_s: float = 3.0
    jitter_s: float = 0.02
    choice: Choice = Choice.FIRST
    hold_s: float = 0.0
    """How long a decision, and the repetition with it, waits for better copies of the same round."""
    patience_s: float = 0.0
    """How long a silent parent is kept though others bring the rounds: on the air a lost copy is no lost parent."""


class Election:
    """A `Tree` for one broker. Give it every heartbeat that is heard; `incarnation` must grow with each boot."""

    def __init__(self, host: Host, options: ElectionOptions = ElectionOptions(), *, incarnation: int = 0) -> None:  # noqa: B008
        self.host = host
        self.options = options
        self.incarnation = incarnation
        self.leader: NodeId = host.name
        self.hops = 0
        self.parent: NodeId | None = None
        self.last_parent: NodeId | None = None
        self.children: set[NodeId] = set()
        self.neighbors: set[NodeId] = set()
        self.on_migrate: Migrate = ignore
        self.on_returned: Callable[[NodeId], None] = ignore
        self._round = 0
        self._seen: dict[NodeId, tuple[int, int]] = {}
        self._last_heard: dict[NodeId, float] = {}
        self._last_beat: dict[NodeId, Heartbeat] = {}
        self._given_up: set[NodeId] = set()
        self._copies: list[tuple[NodeId, Heartbeat]] = []
        self._leader_timer: Timer | None = None
        host.after(host.random.uniform(0, options.period_s), self._tick)

    def adopt(self, child: NodeId) -> None:
        self.children.add(child)
        self.neighbors.add(child)
        self._last_heard[child] = self.host.now()
        self._given_up.discard(child)
        if self.last_parent == child:
            self.last_parent = None

    def linked(self, peer: NodeId) -> None:
        """A link is up: let the peer know the way to the leader now, not with the next round."""
        if self.leader == self.host.name:
            self._beat()
        else:
            self._send_round(peer)

    def unlinked(self, peer: NodeId) -> None:
        """A link is down for certain: its peer is no neighbor any more, and nobody waits for that to be noticed."""
        self._last_heard.pop(peer, None)
        self._last_beat.pop(peer, None)
        self._copies = [copy for copy in self._copies if copy[0] != peer]
        if peer in self.children:
            self._give_up(peer)
        if peer == self.parent:
            self._lead()

    def heard_since(self, neighbor: NodeId, time_s: float) -> bool:
        return self._last_heard.get(neighbor, -1.0) > time_s

    def receive(self, sender: NodeId, beat: Heartbeat) -> None:
        self._note_neighbor(sender, beat)
        self._last_beat[sender] = beat
        if not self._copies and self._seen.get(beat.leader) == (beat.incarnation, beat.round):
            return  # most of what is heard: one more copy of a round that is decided
        self._remind(sender, beat)
        if self._is_fresh(beat):
            self._take(sender, beat)
        elif self._copies and (beat.leader, beat.incarnation, beat.round) == _name(self._copies[0][1]):
            self._copies.append((sender, beat))

    def _remind(self, sender: NodeId, beat: Heartbeat) -> None:
        """A leader that has lost its disk counts anew, and nobody would listen: its last round goes back to it.

        Whoever has not heard that round takes it for a new one and repeats it, so it finds the leader over any way.
        """
        if beat.leader == self.host.name:
            if (beat.incarnation, beat.round) > (self.incarnation, self._round):
                self.incarnation = beat.incarnation + 1
        elif _is_far_behind(beat, *self._seen.get(beat.leader, (-1, -1))):
            incarnation, round_ = self._seen[beat.leader]
            last = Heartbeat(beat.leader, incarnation, round_, self.hops, self.parent, len(self.children))
            self.host.send(sender, last)

    def _is_fresh(self, beat: Heartbeat) -> bool:
        """A round of our leader or of a better one, not here before. The smallest name is the best leader.

        Whoever counts on this broker as its parent has no way to the leader to offer.
        """
        leader = self._copies[0][1].leader if self._copies else self.leader
        return (
            beat.leader <= leader
            and beat.leader != self.host.name
            and beat.parent != self.host.name
            and (beat.incarnation, beat.round) > self._seen.get(beat.leader, (-1, -1))
        )

    def _take(self, sender: NodeId, beat: Heartbeat) -> None:
        self._seen[beat.leader] = (beat.incarnation, beat.round)
        if self._copies and self._copies[0][1].leader == beat.leader:
            self._decide()
        self._copies = [(sender, beat)]
        if self.options.choice is Choice.FIRST or not self.options.hold_s:
            self._decide()
        else:
            self.host.after(self.options.hold_s, self._decide_if_same(_name(beat)))

    def _decide_if_same(self, name: tuple[NodeId, int, int]) -> Callable[[], None]:
        def decide() -> None:
            if self._copies and _name(self._copies[0][1]) == name:
                self._decide()

        return decide

    def _decide(self) -> None:
        """Take a parent from the copies of this round, pass the round on, and tell the routing layer if it changed."""
        copies = [(sender, beat) for sender, beat in self._copies if beat.parent != self.host.name]
        self._copies = []
        if not copies:
            return  # the link that brought this round is gone, and others that did hang below this broker
        sender, beat = self._chosen(copies)
        old, self.parent = self.parent, sender
        self.leader, self.hops = beat.leader, beat.hops + 1
        self._restart_leader_timer()
        self.children.discard(sender)
        self.neighbors.add(sender)
        self.host.after(self.host.random.uniform(0, self.options.jitter_s), lambda: self._repeat(beat))
        if old != sender:
            before = old if old is not None else self.last_parent
            if old is not None and old not in self.children:
                self.neighbors.discard(old)
            self.last_parent = sender
            self.host.trace(Record("parent", peer=sender, hops=self.hops, note=self.leader))
            self.on_migrate(before, sender)

    def _chosen(self, copies: list[tuple[NodeId, Heartbeat]]) -> tuple[NodeId, Heartbeat]:
        mine = next(((sender, beat) for sender, beat in copies if sender == self.parent), None)
        if mine is None and self.parent is not None and self._is_patient(self.parent, copies[0][1]):
            return self.parent, msgspec.structs.replace(copies[0][1], hops=self.hops - 1)
        match self.options.choice:
            case Choice.STICKY if mine is not None:
                return mine
            case Choice.BALANCED:
                return self._balanced(copies, mine)
        return copies[0]

    def _balanced(
        self, copies: list[tuple[NodeId, Heartbeat]], mine: tuple[NodeId, Heartbeat] | None
    ) -> tuple[NodeId, Heartbeat]:
        """Dice decide between equals, and who of a large family leaves it: else all would choose the same at once."""
        least = min(beat.hops for _, beat in copies)
        nearest = [copy for copy in copies if copy[1].hops == least]
        lightest = min(nearest, key=lambda copy: (copy[1].load, self.host.random.random()))
        if mine is None or mine not in nearest:
            return lightest
        excess = mine[1].load - lightest[1].load
        leaves = excess > LOPSIDED and self.host.random.random() < excess / 2 / mine[1].load
        return lightest if leaves else mine

    def _is_patient(self, parent: NodeId, round_now: Heartbeat) -> bool:
        """Keep a parent that was heard lately under the same leader, unless it hangs from this broker or below it."""
        last = self._last_beat.get(parent)
        return (
            last is not None
            and self.heard_since(parent, self.host.now() - self.options.patience_s)
            and last.leader == round_now.leader == self.leader
            and last.hops < self.hops
            and last.parent != self.host.name
        )

    def _repeat(self, beat: Heartbeat) -> None:
        """Pass a round on, unless a better leader's has come meanwhile: its repetition follows."""
        if self.leader == beat.leader:
            self.host.broadcast(
                Heartbeat(beat.leader, beat.incarnation, beat.round, self.hops, self.parent, len(self.children))
            )

    def _send_round(self, peer: NodeId) -> None:
        incarnation, round_ = self._seen[self.leader]
        self.host.send(peer, Heartbeat(self.leader, incarnation, round_, self.hops, self.parent, len(self.children)))

    def _tick(self) -> None:
        now = self.host.now()
        for child in sorted(self.children):
            if now - self._last_heard[child] > self.options.child_timeout_s:
                self._give_up(child)
        if self.leader == self.host.name:
            self._beat()
        self.host.after(self.options.period_s, self._tick)

    def _beat(self) -> None:
        self._round += 1
        self.host.broadcast(Heartbeat(self.host.name, self.incarnation, self._round, 0, None, len(self.children)))

    def _give_up(self, child: NodeId) -> None:
        self.children.discard(child)
        self.neighbors.discard(child)
        self._given_up.add(child)

    def _restart_leader_timer(self) -> None:
        if self._leader_timer is not None:
            self._leader_timer.cancel()
        self._leader_timer = self.host.after(self.options.leader_timeout_s, self._lead)

    def _lead(self) -> None:
        """No round for too long, or no way to get one: lead. Nothing is sent to anybody and no table is touched."""
        if self._leader_timer is not None:
            self._leader_timer.cancel()
        if self.parent is not None:
            self.neighbors.discard(self.parent)
            self.last_parent = self.parent
        self.parent, self.leader, self.hops = None, self.host.name, 0
        self.host.trace(Record("leading"))

    def _note_neighbor(self, sender: NodeId, beat: Heartbeat) -> None:
        self._last_heard[sender] = self.host.now()
        if beat.parent == self.host.name:
            was_given_up = sender in self._given_up
            self.adopt(sender)
            if was_given_up:
                self.on_returned(sender)
            return
        self._given_up.discard(sender)
        if sender in self.children:
            self.children.discard(sender)
            if sender != self.parent:
                self.neighbors.discard(sender)


def _is_far_behind(beat: Heartbeat, incarnation: int, round_: int) -> bool:
    """Further than a slow neighbor's copy of a round can be."""
    return beat.incarnation < incarnation or (beat.incarnation == incarnation and beat.round < round_ - LATE_ROUNDS)


def _name(beat: Heartbeat) -> tuple[NodeId, int, int]:
    return (beat.leader, beat.incarnation, beat.round)

"""What is on the disk is what was in memory, however it was written."""

from __future__ import annotations

from random import Random

from godwit.protocols.broker.publication import Publication
from godwit.protocols.broker.session.queue import next_number
from godwit.protocols.broker.session.rows import CHUNK_MAX, DONE_WITH, Ledger, items_of
from godwit.protocols.broker.session.state import Item, Session
from godwit.protocols.broker.store import Disk, MemoryStore

Told = tuple[int, int, bool, bytes, str]


def at_once(disk: Disk) -> MemoryStore:
    return MemoryStore(disk, lambda call: call())


def session_with(dice: Random, ledger: Ledger) -> Session:
    """Something under way, something waiting, something kept back; some of it for others too."""
    session = Session("s", 1)
    session.outlive(60.0)
    made = [Item(Publication("p", at, "a/x", b"%d" % at, 2), 2) for at in range(dice.randint(0, 12))]
    for item in made:
        item.body = ledger.body() if dice.random() < 0.3 else None
        kind = dice.choice(("flying", "waiting", "waiting", "held"))
        if kind == "flying":
            item.number = next_number(session.queue)
            session.queue.fly(item)
        elif kind == "waiting":
            session.queue.wait((item,))
        else:
            session.inflow.hold(dice.choice("bc"), item)
    return session


def step(dice: Random, ledger: Ledger, session: Session) -> None:
    """What happens to deliveries of a session whose client is in."""
    match dice.choice(("launch", "launch", "received", "acknowledged", "taken", "released")):
        case "launch" if session.queue.waiting:
            item = session.queue.waiting.popleft()
            item.number = next_number(session.queue)
            session.queue.fly(item)
            ledger.put_item(session, item)
        case "received" if session.queue.flying:
            item = dice.choice([*session.queue.flying.values()])
            item.received, item.label = True, DONE_WITH
            ledger.let_go(item)
            ledger.put_item(session, item)
        case "acknowledged" if session.queue.flying:
            ledger.delete_item(session, session.queue.flying.pop(dice.choice([*session.queue.flying])))
        case "taken":
            item = Item(Publication("q", 1, "a/y", b"new"), 2)
            ledger.put_item(session, item)
            session.queue.wait((item,))
        case "released" if session.inflow.held:
            for item in session.inflow.held.pop(next(iter(session.inflow.held))):
                ledger.delete_item(session, item)
                ledger.put_item(session, item)
                session.queue.wait((item,))


def told(session: Session) -> list[list[Told]]:
    queues = [
        [*session.queue.flying.values()],
        [*session.queue.waiting],
        *(items for _, items in sorted(session.inflow.held.items())),
    ]
    return [
        [(one.qos, one.number, one.received, one.publication.payload, one.publication.topic) for one in queue]
        for queue in queues
    ]


def test_what_was_written_together_is_read_back_whatever_has_become_of_it_since() -> None:
    for seed in range(300):
        dice, disk = Random(seed), Disk()
        ledger = Ledger(at_once(disk))
        session = session_with(dice, ledger)
        ledger.save_together(session)
        for _ in range(dice.randint(0, 8)):
            step(dice, ledger, session)
        (found,) = Ledger(at_once(disk)).load()
        assert told(found) == told(session), seed
        (once_more,) = Ledger(at_once(disk)).load()
        assert told(once_more) == told(session), seed


def test_a_session_that_was_written_together_leaves_nothing_behind() -> None:
    for seed in range(20):
        dice, disk = Random(seed), Disk()
        ledger = Ledger(at_once(disk))
        session = session_with(dice, ledger)
        ledger.save_together(session)
        step(dice, ledger, session)
        ledger.forget(session)
        assert not any(disk.values())
        assert not any(item.position for item in items_of(session))


class Together:
    """A session to which publications come many at a time, and what of them must be there."""

    def __init__(self, seed: int) -> None:
        self.dice = Random(seed)
        self.disk = Disk()
        self.ledger = Ledger(at_once(self.disk))
        self.session = Session("s", 1)
        self.session.outlive(60.0)
        self.ledger.put_session(self.session)
        self.count = 0

    def come(self) -> None:
        qos = self.dice.choice((1, 1, 1, 2))
        stamp = ("b1", self.dice.randint(1, 9)) if self.dice.random() < 0.5 else None
        numbers = range(self.count + 1, self.count + 1 + self.dice.choice((1, 3, 4, 9, CHUNK_MAX + 1, CHUNK_MAX + 5)))
        publications = [Publication("p", number, "a/x", b"%d" % number, qos) for number in numbers]
        self.count, queue = numbers[-1], self.session.queue
        if qos == 1 and self.dice.random() < 0.8:
            for chunk in self.ledger.put_together(self.session, publications, stamp, 7.0):
                queue.wait_together(chunk)
        else:
            items = [Item(one, qos, stamp=stamp, since=7.0) for one in publications]
            for item in items:
                self.ledger.put_item(self.session, item)
            queue.wait(items)
        assert len(queue.waiting) >= len(numbers)

    def change(self) -> None:
        queue = self.session.queue
        kind = self.dice.choice(("spill", "spill", "fetch", "launch", "done", "done", "finish"))
        if kind == "launch" and queue.waiting:  # before anybody has looked at all of them
            before, since = len(queue.waiting), queue.waiting[0].since
            item = queue.waiting.popleft()
            assert (len(queue.waiting), since) == (before - 1, item.since)
            item.number = next_number(queue)
            queue.fly(item)
            self.ledger.put_item(self.session, item)
            return
        items = [*queue.waiting, *queue.flying.values()]
        if not items:
            return
        item = self.dice.choice(items)
        if kind == "spill" and not item.received:
            self.ledger.spill(self.session, item)
        elif kind == "fetch":
            item.bring_back()
        elif kind == "done":
            queue.flying.pop(item.number) if item.number else queue.waiting.remove(item)
            self.ledger.delete_item(self.session, item)
        elif kind == "finish" and item.number:
            item.discard()
            item.received, item.label = True, DONE_WITH
            self.ledger.let_go(item)
            self.ledger.put_item(self.session, item)


def test_what_came_together_is_read_back_whatever_has_become_of_it_since() -> None:
    for seed in range(150):
        scene = Together(seed)
        for _ in range(scene.dice.randint(1, 3)):
            scene.come()
            for _ in range(scene.dice.randint(0, 12)):
                scene.change()
        assert [one.publication.payload for one in scene.session.queue.waiting] == sorted(
            (one.publication.payload for one in scene.session.queue.waiting), key=int
        )
        copy = Disk({table: dict(rows) for table, rows in scene.disk.items()})
        for _ in range(2):
            (found,) = Ledger(at_once(copy)).load()
            assert told(found) == told(scene.session), seed
            assert [one.stamp for one in found.queue.waiting] == [one.stamp for one in scene.session.queue.waiting]
        for item in [*items_of(scene.session)]:
            scene.ledger.delete_item(scene.session, item)
        assert not scene.disk["queues"], seed


def test_a_session_that_moves_takes_all_along_that_came_together() -> None:
    for seed in range(30):
        scene = Together(seed)
        scene.come()
        for _ in range(4):
            scene.change()
        before = told(scene.session)
        scene.ledger.forget(scene.session)
        assert not any(scene.disk.values())
        scene.session.owner = "s\0other"
        scene.ledger.save(scene.session)
        (found,) = Ledger(at_once(scene.disk)).load()
        assert told(found) == told(scene.session) == before, seed

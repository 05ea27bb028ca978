"""What is on the disk is what was in memory, however it was written."""

from __future__ import annotations

from random import Random

from godwit.protocols.broker.publication import Publication
from godwit.protocols.broker.session.queue import next_number
from godwit.protocols.broker.session.rows import DONE_WITH, Ledger, items_of
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
            session.queue.flying[item.number] = item
        elif kind == "waiting":
            session.queue.waiting.append(item)
        else:
            session.inflow.held.setdefault(dice.choice("bc"), []).append(item)
    return session


def step(dice: Random, ledger: Ledger, session: Session) -> None:
    """What happens to deliveries of a session whose client is in."""
    match dice.choice(("launch", "launch", "received", "acknowledged", "taken", "released")):
        case "launch" if session.queue.waiting:
            item = session.queue.waiting.popleft()
            item.number = next_number(session.queue)
            session.queue.flying[item.number] = item
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
            session.queue.waiting.append(item)
        case "released" if session.inflow.held:
            for item in session.inflow.held.pop(next(iter(session.inflow.held))):
                ledger.delete_item(session, item)
                ledger.put_item(session, item)
                session.queue.waiting.append(item)


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

"""Which things answer a question: few or many, points or subspaces."""

from __future__ import annotations

from random import Random

import msgspec

from godwit.protocols.broker.api import Lasting, Subscription
from godwit.protocols.broker.lasting import things
from godwit.protocols.broker.lasting.things import Things
from godwit.protocols.broker.publication import Properties, Publication
from godwit.protocols.broker.session.parse import remembered
from godwit.protocols.broker.session.retained import Retained
from godwit.protocols.broker.session.state import Session, Sub
from godwit.protocols.broker.store import MemoryStore


def subscription(text: str) -> Sub:
    sub = remembered(Session("c", 1), Subscription("q", "a/+", text, lasting=Lasting.OVERLAP), 1)
    assert sub is not None
    return sub


def test_many_are_found_as_few_are(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    dice = Random(5)
    retained = Retained(MemoryStore({}, lambda call: None))
    few, many = Things(retained), Things(retained)
    questions = [subscription(text) for text in ("", "x > 5", "x > 2 AND kind = 'b'", "y = 1 OR x < 3")]
    for one in (few, many):
        for question in questions:
            one.ask(question)
    for step in range(400):
        topic = f"{dice.choice('ab')}/{dice.randrange(30)}"
        said = msgspec.json.encode({"x": dice.randrange(10), "kind": dice.choice("ab")})
        profile = (("profile", "y >= 0 AND y < 3"),) if dice.random() < 0.1 else ()
        payload = b"" if dice.random() < 0.2 else said
        expires = float(step + dice.randrange(1, 300)) if dice.random() < 0.5 else None
        properties = Properties(user=profile)
        retained.keep(
            Publication("p", step, topic, payload, time=step, expires=expires, properties=properties), "b1", 0.0
        )
        last = retained.last(topic)
        assert last is not None
        few.changed(last, float(step))
        many.changed(last, float(step))
        question = dice.choice(questions)
        monkeypatch.setattr(things, "FEW", 1_000)
        expected = few.find(question, float(step))
        monkeypatch.setattr(things, "FEW", 0)
        assert many.find(question, float(step)) == expected
        assert all(topic.startswith("a/") for topic in expected)


def test_until_compiled_code_is_there_many_are_asked_one_by_one(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(things, "FEW", 0)
    retained = Retained(MemoryStore({}, lambda call: None))
    for number in range(5):
        retained.keep(Publication("p", number, f"a/{number}", b'{"x": %d}' % number, time=number), "b1", 0.0)
    known, question = Things(retained), subscription("x > 2")
    ready = [False, True]
    known.prepared = lambda: ready.pop(0)
    known.ask(question)
    assert set(known.find(question, 0.0)) == {"a/3", "a/4"}
    assert known._points is None
    assert set(known.find(question, 0.0)) == {"a/3", "a/4"}
    assert known._points is not None

from __future__ import annotations

import pytest
from tests.protocols.handoff_schemes.stages import Stage

from godwit.protocols.handoff_schemes.messages import CtxRequest
from godwit.protocols.host import LocalError, RemoteError


@pytest.mark.feature("proactive-handoff F6")
def test_a_restarted_client_still_says_where_it_was_and_counts_on() -> None:
    stage = Stage("AB")
    stage.client("s", "A")
    stage.vanish("s")
    stage.publish(to="AB")
    again = stage.client("s", "B")
    stage.settle()
    assert again.number == 2
    assert again.log.previous == "B"
    assert stage.got["s"] == [0]


@pytest.mark.feature("proactive-handoff F6")
def test_a_broker_that_did_not_accept_is_not_remembered() -> None:
    stage = Stage("AB")
    client = stage.client("s", "A")
    stage.vanish("s")
    stage.brokers["B"].receive = lambda sender, message: None
    client.connect("B")
    assert client.log.previous == "A"
    assert client.number == 2


@pytest.mark.feature("proactive-handoff F5")
def test_a_broker_tells_first_contact_return_and_arrival_apart() -> None:
    stage = Stage("AB")
    stage.client("s", "A")
    assert stage.mail == {}
    stage.move("s", "A")
    assert stage.mail == {}
    stage.move("s", "B")
    assert stage.waiting("B", "A") == ["NbrList", "CtxRequest", "Moved"]


def test_a_client_that_is_nowhere_cannot_unsubscribe_and_is_not_asked_for_contexts() -> None:
    stage = Stage("A")
    client = stage.client("s")
    with pytest.raises(LocalError, match="attached to no broker"):
        client.unsubscribe()
    client.connect("A")
    with pytest.raises(RemoteError, match="CtxRequest to a client"):
        client.receive("A", CtxRequest("s"))
    client.leave()
    assert client.broker == ""

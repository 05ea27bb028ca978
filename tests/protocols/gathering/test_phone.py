"""The client: thin, sorted, without doubles, and clear about what it cannot do."""

from __future__ import annotations

import pytest
from tests.protocols.gathering.worlds import world

from godwit.protocols.gathering.areas import Disc
from godwit.protocols.gathering.messages import Item, Notify, Ready
from godwit.protocols.host import LocalError, RemoteError


@pytest.mark.feature("data-gathering F20")
def test_what_arrives_is_sorted_by_time_and_doubles_are_dropped() -> None:
    gathering, _ = world(4, 1)
    phone = gathering.phone("ada")
    gathering.attach("ada", "b0")
    gathering.run_for(1.0)
    for number, time_s in ((2, 20.0), (1, 10.0), (2, 20.0), (3, 15.0)):
        phone.receive("b0", Notify(Item(("p", number), "t", (0.0, 0.0), time_s)))
    assert [item.item[1] for item in phone.history()] == [1, 3, 2]
    assert phone.duplicates == 1


@pytest.mark.feature("data-gathering F19")
def test_notices_of_cancelled_subscriptions_are_dropped() -> None:
    gathering, _ = world(4, 1)
    phone = gathering.phone("ada")
    gathering.attach("ada", "b0")
    gathering.run_for(1.0)
    kept, cancelled = phone.subscribe("t", Disc((1.0, 1.0), 1.0)), phone.subscribe("t", Disc((2.0, 2.0), 1.0))
    phone.unsubscribe(cancelled)
    item = Item(("p", 1), "t", (1.0, 1.0), 1.0)
    phone.receive("b0", Notify(item, (cancelled,)))
    assert phone.history() == []
    phone.receive("b0", Notify(item, (kept, cancelled)))
    assert phone.history() == [item]


def test_a_client_out_of_range_says_so_and_changes_nothing() -> None:
    gathering, _ = world(4, 1)
    phone = gathering.phone("ada")
    with pytest.raises(LocalError, match="no broker is in range"):
        phone.publish("t", (1.0, 1.0))
    with pytest.raises(LocalError, match="has no subscription 'x'"):
        phone.unsubscribe("x")


def test_a_message_that_is_not_for_clients_or_brokers_is_refused() -> None:
    gathering, _ = world(4, 1)
    phone = gathering.phone("ada")
    with pytest.raises(RemoteError, match="no use for Ready"):
        phone.receive("b0", Ready(None))  # type: ignore[arg-type]
    with pytest.raises(RemoteError, match="no use for Notify"):
        gathering.brokers["b0"].receive("ada", Notify(None))  # type: ignore[arg-type]

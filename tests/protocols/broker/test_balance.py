"""Where clients are told to go: brokers that hear of each other with a delay, and clients that follow or do not."""

from __future__ import annotations

from functools import partial
from math import inf, nan

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from godwit.protocols.broker.api import Reason
from godwit.protocols.broker.balance import Balance, BalanceOptions, Burden
from godwit.protocols.broker.streams import frames
from godwit.protocols.broker.streams.frames import Ask, Load, Loads, Sent, Transport, decode
from godwit.protocols.host import Message, NodeId, RemoteError
from godwit.sim.brokers.site import SimHost
from godwit.sim.engine import Engine
from godwit.sim.streams import Streams

ON = BalanceOptions(redirect=True)


class Town:
    """Brokers b0, b1, ... and the clients that they have let in."""

    def __init__(self, count: int, options: BalanceOptions = ON, seed: int = 0, delay_s: float = 0.05) -> None:
        self.engine, dice = Engine(), Streams(seed)
        self.delay_s = delay_s
        self.clients: dict[NodeId, set[str]] = {f"b{n}": set() for n in range(count)}
        self.events = dict.fromkeys(self.clients, 0)
        self.linked = set(self.clients)
        self.brokers: dict[NodeId, Balance] = {}
        for name in self.clients:
            host = SimHost(name, self.engine, dice.stream("host", name))
            host.carry = partial(self._carry, name)
            linked = partial(self._others, name)
            balance = Balance(host, options, partial(self._burden, name), linked)
            balance.address, balance.address_tls = f"{name}:1883", f"{name}:8883"
            balance.address_ws, balance.address_wss = f"ws://{name}/mqtt", f"wss://{name}/mqtt"
            self.brokers[name] = balance
        for balance in self.brokers.values():
            balance.start()
        self.run(1)

    def run(self, seconds: float) -> None:
        self.engine.run(self.engine.now + seconds)

    def _burden(self, name: NodeId) -> Burden:
        return Burden(len(self.clients[name]), self.events[name])

    def _others(self, name: NodeId) -> list[NodeId]:
        return sorted(self.linked - {name})

    def _carry(self, sender: NodeId, to: NodeId | None, message: Message) -> None:
        assert to is not None
        assert isinstance(message, Load | Loads | Sent)
        assert to in self._others(sender), "there is no link"
        self.engine.after(self.delay_s, partial(self.brokers[to].receive, sender, message))

    def fill(self, name: NodeId, count: int) -> None:
        self.clients[name] |= {f"{name} {n}" for n in range(count)}

    def come(self, client: str, at: NodeId, *, known: bool = False, way_s: float = 0.0) -> list[NodeId]:
        """Go where one is sent, which takes `way_s`, until somebody lets one in; all brokers that were asked."""
        asked = [at]
        while answer := self.brokers[asked[-1]].refusal(client, known=known, follows=True):
            assert answer[0] is Reason.USE_ANOTHER_SERVER
            asked.append(answer[1].partition(":")[0])
            assert len(asked) <= len(self.brokers) + 1, "in circles"
            self.run(way_s)
        self.clients[asked[-1]].add(client)
        return asked


@pytest.mark.feature("proactive-handoff F48")
def test_a_broker_with_more_than_its_share_sends_a_new_client_to_one_with_less() -> None:
    town = Town(3)
    town.fill("b0", 60)
    town.fill("b1", 30)
    town.run(5)
    assert town.come("new", "b0") == ["b0", "b2"]
    assert town.brokers["b0"].redirected == 1


@pytest.mark.feature("proactive-handoff F48")
@settings(max_examples=30, deadline=None)
@given(
    count=st.integers(2, 6),
    seed=st.integers(0, 1000),
    each_s=st.sampled_from([0.0, 0.005, 0.1]),
    delay_s=st.sampled_from([0.0, 0.05, 1.0]),
)
def test_all_clients_knock_at_one_broker_and_end_up_everywhere(
    count: int, seed: int, each_s: float, delay_s: float
) -> None:
    town = Town(count, seed=seed, delay_s=delay_s)
    town.run(3)
    for number in range(300):
        assert len(town.come(f"c{number}", "b0", way_s=1.1 * delay_s)) <= 2
        town.run(each_s)
    mean = 300 / count
    assert max(map(len, town.clients.values())) <= 1.5 * mean + 10
    assert sum(map(len, town.clients.values())) == 300


@pytest.mark.feature("proactive-handoff F48")
@settings(max_examples=50, deadline=None)
@given(
    fills=st.lists(st.integers(0, 200), min_size=2, max_size=6),
    arrivals=st.lists(st.tuples(st.integers(0, 5), st.floats(0, 3)), max_size=60),
    seed=st.integers(0, 100),
    way_s=st.sampled_from([0.0, 0.1, 0.31]),
)
def test_nobody_is_sent_in_circles_however_late_brokers_hear_of_it(
    fills: list[int], arrivals: list[tuple[int, float]], seed: int, way_s: float
) -> None:
    town = Town(len(fills), seed=seed, delay_s=0.3)
    for number, fill in enumerate(fills):
        town.fill(f"b{number}", fill)
    for number, (at, wait_s) in enumerate(arrivals):
        asked = town.come(f"c{number}", f"b{at % len(fills)}", way_s=way_s)
        assert len(asked) <= 2 or way_s < town.delay_s
        town.run(wait_s)


def test_who_cannot_follow_gets_in_the_second_time() -> None:
    town = Town(2)
    town.fill("b0", 100)
    town.run(5)
    first = town.brokers["b0"].refusal("stubborn", known=False, follows=True)
    assert first == (Reason.USE_ANOTHER_SERVER, "b1:1883")
    assert town.brokers["b0"].refusal("stubborn", known=False, follows=True) is None
    town.run(120)
    assert town.brokers["b0"].refusal("stubborn", known=False, follows=True) is not None


def test_who_was_sent_is_let_in_whatever_has_happened_there_meanwhile() -> None:
    town = Town(2)
    town.fill("b0", 100)
    town.run(5)
    assert town.brokers["b0"].refusal("sent", known=False, follows=True) is not None
    town.run(0.1)
    town.clients["b0"].clear()
    town.fill("b1", 200)
    town.run(5)
    assert town.brokers["b1"].refusal("sent", known=False, follows=True) is None
    assert town.brokers["b1"].refusal("other", known=False, follows=True) is not None


def test_who_has_a_session_or_a_copy_here_stays() -> None:
    town = Town(2)
    town.fill("b0", 100)
    town.run(5)
    assert town.come("old", "b0", known=True) == ["b0"]


def test_clients_of_older_protocols_are_let_in() -> None:
    town = Town(2)
    town.fill("b0", 100)
    town.run(5)
    assert town.brokers["b0"].refusal("old", known=False, follows=False) is None


def test_nobody_is_sent_where_few_are_or_where_it_is_off() -> None:
    few, off = Town(3), Town(3, BalanceOptions())
    few.fill("b0", 9)
    off.fill("b0", 100)
    for town in (few, off):
        town.run(5)
        assert town.come("new", "b0") == ["b0"]


def test_much_to_do_for_few_clients_is_a_burden_too() -> None:
    town = Town(2)
    for _ in range(10):
        town.events["b0"] += 10_000
        town.run(1)
    assert town.come("new", "b0") == ["b0", "b1"]


def test_a_broker_that_is_silent_or_names_no_address_is_not_counted_on() -> None:
    town = Town(3)
    town.fill("b0", 100)
    town.brokers["b2"].address = ""
    town.run(5)
    town.linked = {"b0", "b2"}
    assert town.come("new", "b0") == ["b0"]


def test_a_new_neighbor_hears_of_the_load_at_once_unless_there_is_no_place_for_clients_yet() -> None:
    town = Town(2)
    here, there = town.brokers.values()
    here.loads.clear()
    there.loads.clear()
    Balance(here.host, ON, lambda: Burden(0, 0), list).linked("b1")
    there.linked("b0")
    town.run(town.delay_s)
    assert ([*here.loads], [*there.loads]) == (["b1"], [])


def test_a_client_with_an_endless_name_is_sent_without_a_word() -> None:
    town = Town(2)
    town.fill("b0", 100)
    town.run(5)
    assert town.come("x" * 60_000, "b0", way_s=1) == ["b0", "b1"]


@pytest.mark.parametrize(
    ("over", "address"),
    [("mqtt", "b1:1883"), ("mqtts", "b1:8883"), ("ws", "ws://b1/mqtt"), ("wss", "wss://b1/mqtt")],
)
def test_clients_are_sent_where_they_can_be_as_they_are_here(over: str, address: str) -> None:
    town = Town(2)
    town.fill("b0", 100)
    town.run(5)
    refusal = town.brokers["b0"].refusal("c", known=False, follows=True, over=Transport(over))
    assert refusal == (Reason.USE_ANOTHER_SERVER, address)


def test_a_broker_of_before_there_were_such_addresses_gets_no_websocket_clients() -> None:
    old = msgspec.msgpack.encode({"type": "Load", "clients": 0, "events_per_s": 0.0, "address": "b1:1883"})
    told = decode(old)
    assert isinstance(told, Load)
    assert (told.at(Transport.MQTT), told.at(Transport.WS)) == ("b1:1883", "")


@pytest.mark.parametrize("redirect", [False, True])
def test_no_more_clients_than_may_be_and_those_who_can_go_elsewhere_do(redirect: bool) -> None:
    town = Town(2, BalanceOptions(redirect=redirect, clients_max=20))
    town.fill("b0", 20)
    town.fill("b1", 19)
    town.run(5)
    full = town.brokers["b0"]
    assert full.refusal("old", known=False, follows=False) == (
        Reason.SERVER_BUSY,
        "20 clients are connected, which is all that may be",
    )
    answer = full.refusal("new", known=False, follows=True)
    assert answer is not None
    assert answer[0] is (Reason.USE_ANOTHER_SERVER if redirect else Reason.SERVER_BUSY)
    assert full.refusal("mine", known=True, follows=True) is None
    town.fill("b1", 20)
    town.run(5)
    answer = full.refusal("another", known=False, follows=True)
    assert answer is not None
    assert answer[0] is Reason.SERVER_BUSY


def test_a_broker_that_leaves_lets_nobody_in_and_is_nowhere_to_be_sent_to() -> None:
    town = Town(3, BalanceOptions())
    town.brokers["b0"].leave()
    town.run(1)
    for known in (False, True):
        answer = town.brokers["b0"].refusal("c", known=known, follows=True)
        assert answer is not None
        assert answer[0] is Reason.USE_ANOTHER_SERVER
    answer = town.brokers["b0"].refusal("old", known=True, follows=False)
    assert answer is not None
    assert answer[0] is Reason.SERVER_SHUTTING_DOWN
    assert town.brokers["b1"].elsewhere("x") == "b2:1883"


def test_what_is_said_of_loads_travels_beside_what_fabrics_say() -> None:
    for message in (Load(3, 2.5, "a:1", "", open=False), Sent("c"), Ask("a", 1, "b")):
        assert decode(frames.encode(message)) == message
    for wrong in (Load(-1, 0.0), Load(0, -1.0), Load(0, inf), Load(0, nan), Sent("x" * 2000)):
        with pytest.raises(RemoteError):
            decode(frames.encode(wrong))
    with pytest.raises(RemoteError):
        decode(b"nonsense")


class Mesh(Town):
    """Each is linked with eight others only."""

    def _others(self, name: NodeId) -> list[NodeId]:
        here, count = int(name[1:]), len(self.clients)
        return [f"b{(here + jump) % count}" for jump in (1, 2, 5, 11, -1, -2, -5, -11)]


def test_all_hear_of_all_though_each_is_linked_with_few() -> None:
    mesh = Mesh(40)
    mesh.run(60)
    assert all(balance.loads.keys() == mesh.clients.keys() - {name} for name, balance in mesh.brokers.items())
    assert all(len(balance._heard()) > 30 for balance in mesh.brokers.values())


def test_clients_are_sent_to_brokers_without_a_link_too_and_are_expected_there() -> None:
    mesh = Mesh(40)
    mesh.fill("b0", 400)
    mesh.run(60)
    ways = [mesh.come(f"c{number}", "b0", way_s=1.0) for number in range(100)]
    taken = {way[-1] for way in ways}
    assert len(taken - set(mesh._others("b0")) - {"b0"}) > 8
    assert max(map(len, ways)) == 2


def test_a_client_announced_for_a_stranger_is_announced_nowhere() -> None:
    town = Town(3)
    town.brokers["b0"].receive("b1", Sent("c", "nobody knows"))
    town.brokers["b0"].receive("b1", Sent("c", "b2", hops=8))
    town.run(1)
    assert not any("c" in balance._expected for balance in town.brokers.values())

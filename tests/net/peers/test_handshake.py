"""Brokers greet: who belongs together gets together, and everybody else learns why not."""

from __future__ import annotations

import itertools
import re

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from godwit.net.identity import Identity
from godwit.net.peers.frames import VERSION, Control, Hello, Known, Peer, Ping, Proof, Refused, encode_control
from godwit.net.peers.handshake import TRANSITIONS, Handshake, RefusedError, SelfError, SpareError, State
from godwit.protocols.host import RemoteError

NONCES = (bytes(16), bytes(range(16)))


def side(name: str, *, dialled: bool, secret: bytes = b"", cluster: str = "c", **more: object) -> Handshake:
    nonce = NONCES[dialled]
    return Handshake(
        Identity(name, f"disk of {name}", 1),
        cluster=cluster,
        secret=secret,
        dialled=dialled,
        nonce=nonce,
        **more,  # type: ignore[arg-type]
    )


def greeted(one: Handshake, other: Handshake) -> tuple[str, str]:
    """How it ends at each side, both speaking at once; where one refuses, the other hears its reason."""
    ends = ["", ""]
    saying = [[one.hello], [other.hello]]
    for _ in range(3):
        for at, hearer in ((0, other), (1, one)):
            for body in [saying[at].pop(0) for _ in list(saying[at])]:
                if not ends[1 - at]:
                    ends[1 - at], answer = heard(hearer, body)
                    saying[1 - at] += [answer] if answer else []
    return ends[1] or one.state.value, ends[0] or other.state.value


def heard(hearer: Handshake, body: bytes) -> tuple[str, bytes]:
    try:
        _, answer = hearer.receive(body)
    except RefusedError as error:
        return str(error), b""
    except RemoteError as error:
        return str(error), encode_control(Refused(str(error)))
    return "", answer


@pytest.mark.parametrize("secret", [b"", b"sesame"])
def test_brokers_of_one_cluster_admit_each_other(secret: bytes) -> None:
    one, other = side("a", dialled=True, secret=secret), side("b", dialled=False, secret=secret)
    assert greeted(one, other) == ("admitted", "admitted")
    assert one.peer is not None
    assert (one.peer.name, one.peer.disk) == ("b", "disk of b")


@pytest.mark.parametrize(
    ("secrets", "reason"),
    [
        ((b"sesame", b"barley"), "the cluster secrets of .* and .* differ; give both the same"),
        ((b"sesame", b""), "'a' has a cluster secret and 'b' has none; give both the same"),
        ((b"", b"sesame"), "'b' has a cluster secret and 'a' has none; give both the same"),
    ],
)
def test_a_wrong_secret_is_refused_and_both_sides_say_why(secrets: tuple[bytes, bytes], reason: str) -> None:
    ends = greeted(side("a", dialled=True, secret=secrets[0]), side("b", dialled=False, secret=secrets[1]))
    assert all(re.search(reason, end) for end in ends)


def test_clusters_do_not_mix() -> None:
    ends = greeted(side("a", dialled=True, cluster="red"), side("b", dialled=False, cluster="blue"))
    assert all("cluster of" in end and "'red'" in end and "'blue'" in end for end in ends)


def test_another_version_is_named() -> None:
    one = side("a", dialled=True)
    theirs = msgspec.structs.replace(msgspec.msgpack.decode(side("b", dialled=False).hello, type=Hello), version=9)
    with pytest.raises(RemoteError, match=rf"version of 'a' is {VERSION}, of 'b' 9; update the older"):
        one.receive(encode_control(theirs))


def test_a_later_version_may_say_more_in_its_hello() -> None:
    fields = msgspec.msgpack.decode(side("b", dialled=False).hello)
    one = side("a", dialled=True)
    one.receive(msgspec.msgpack.encode({**fields, "colour": "green"}))
    assert one.state is State.PROVING


def test_two_brokers_of_one_name_are_told_and_a_broker_that_met_itself_knows() -> None:
    with pytest.raises(RemoteError, match=r"two brokers are named 'a'; each needs a name of its own"):
        side("a", dialled=True).receive(side("a", dialled=False).hello)
    with pytest.raises(SelfError):
        side("a", dialled=True, own_nonces=NONCES).receive(side("a", dialled=False).hello)


def test_a_proof_serves_one_meeting_in_one_direction() -> None:
    """What a listener has seen or gets by repeating our own words does not let it in."""
    one, other = side("a", dialled=True, secret=b"s"), side("b", dialled=False, secret=b"s")
    _, proof_of_one = one.receive(other.hello)
    with pytest.raises(RemoteError, match="differ"):
        one.receive(proof_of_one)
    _, proof_of_other = other.receive(one.hello)
    later = Handshake(Identity("a", "d", 1), cluster="c", secret=b"s", dialled=True, nonce=b"another")
    later.receive(other.hello)
    with pytest.raises(RemoteError, match="differ"):
        later.receive(proof_of_other)


SAMPLES: dict[type[Control], Control] = {
    Hello: msgspec.msgpack.decode(side("b", dialled=False).hello, type=Hello),
    Proof: Proof(b""),
    Refused: Refused("no"),
    Ping: Ping(),
    Known: Known((Peer("c", "127.0.0.1:1"),)),
}


def in_state(state: State) -> Handshake:
    one = side("a", dialled=True)
    if state is not State.GREETING:
        one.receive(encode_control(SAMPLES[Hello]))
    if state is State.ADMITTED:
        one.receive(encode_control(SAMPLES[Proof]))
    if state is State.REFUSED:
        with pytest.raises(RefusedError):
            one.receive(encode_control(SAMPLES[Refused]))
    return one


@pytest.mark.parametrize(("state", "kind"), list(itertools.product(State, SAMPLES)))
def test_every_frame_in_every_state(state: State, kind: type[Control]) -> None:
    one, body = in_state(state), encode_control(SAMPLES[kind])
    assert one.state is state
    if kind not in TRANSITIONS[state]:
        with pytest.raises(RemoteError, match=f"{kind.__name__} came while {state}"):
            one.receive(body)
        assert one.state is state
    elif kind is Refused:
        with pytest.raises(RefusedError, match="refused: no"):
            one.receive(body)
    else:
        one.receive(body)
    assert kind not in TRANSITIONS[state] or one.state is TRANSITIONS[state][kind]


def test_a_spare_link_is_no_fault() -> None:
    with pytest.raises(SpareError):
        in_state(State.ADMITTED).receive(encode_control(Refused("there is a link already", spare=True)))


@given(body=st.binary(max_size=80))
def test_nonsense_is_refused_and_changes_nothing(body: bytes) -> None:
    one = side("a", dialled=True)
    with pytest.raises(RemoteError):
        one.receive(body)
    assert one.state is State.GREETING

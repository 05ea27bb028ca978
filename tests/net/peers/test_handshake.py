"""Brokers greet: who belongs together gets together, and everybody else learns why not."""

from __future__ import annotations

import itertools
import re

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from godwit.net.identity import Identity
from godwit.net.peers import handshake, seal
from godwit.net.peers.frames import VERSION, Control, Hello, Kind, Known, Peer, Ping, Proof, Refused, encode_control
from godwit.net.peers.handshake import TRANSITIONS, Handshake, RefusedError, SelfError, SpareError, State
from godwit.net.peers.seal import Exchange
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
    """How it ends at each side; where one refuses, the other hears its reason."""
    ends = ["", ""]
    saying: list[list[bytes]] = [[one.hello], []]
    for _ in range(3):
        for at, hearer in ((0, other), (1, one)):
            for body in [saying[at].pop(0) for _ in list(saying[at])]:
                if not ends[1 - at]:
                    ends[1 - at], answers = heard(hearer, body)
                    saying[1 - at] += answers
    return ends[0] or one.state.value, ends[1] or other.state.value


def heard(hearer: Handshake, body: bytes) -> tuple[str, tuple[bytes, ...]]:
    try:
        _, answers = hearer.receive(hearer.opened(Kind.CONTROL, body))
    except RefusedError as error:
        return str(error), ()
    except RemoteError as error:
        return str(error), (hearer.sealed(Kind.CONTROL, encode_control(Refused(str(error)))),)
    hearer.answered()
    return "", answers


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


def test_a_tree_and_a_ring_do_not_mix() -> None:
    ends = greeted(side("a", dialled=True, fabric="tree"), side("b", dialled=False, fabric="dht"))
    assert ends[1] == "fabric of 'b' is 'dht', of 'a' 'tree'; give both the same"
    assert ends[0] == f"refused: {ends[1]}"


def test_brokers_of_a_ring_that_match_other_topics_by_place_do_not_mix() -> None:
    """What one publishes under such a topic would look for subscriptions where the other does not put them."""

    def located(name: str, *topics: str, dialled: bool) -> Handshake:
        return side(name, dialled=dialled, fabric="dht", located=topics)

    ends = greeted(located("a", "taxi/#", "bus/#", dialled=True), located("b", dialled=False))
    told = "ring.located of 'b' is nothing, of 'a' bus/#, taxi/#; give all brokers of the ring the same"
    assert ends == (f"refused: {told}", told)
    same = located("a", "taxi/#", "bus/#", dialled=True), located("b", "bus/#", "taxi/#", dialled=False)
    assert greeted(*same) == ("admitted", "admitted")


@pytest.mark.parametrize("said", ["tree", "dht"])
def test_whoever_does_not_say_what_it_is_one_of_is_let_in(said: str) -> None:
    """Gateways of sites do not say it, nor brokers of before."""
    assert greeted(side("a", dialled=True, fabric=said), side("b", dialled=False)) == ("admitted", "admitted")
    assert greeted(side("a", dialled=True), side("b", dialled=False, fabric=said)) == ("admitted", "admitted")


def test_another_version_is_named() -> None:
    one = side("a", dialled=True)
    theirs = msgspec.structs.replace(hello_of("b"), version=12, oldest=11)
    with pytest.raises(RemoteError, match=rf"version of 'a' is {VERSION}, of 'b' 11 to 12; update the older"):
        one.receive(encode_control(theirs))


def speaking(versions: range, name: str, *, dialled: bool, secret: bytes) -> Handshake:
    """A broker of the future, or of the past."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(handshake, "OLDEST", versions[0])
        patch.setattr(handshake, "VERSION", versions[-1])
        return side(name, dialled=dialled, secret=secret)


@pytest.mark.parametrize("secret", [b"", b"sesame"])
@pytest.mark.parametrize(
    ("mine", "theirs"),
    [
        (range(8, 9), range(8, 10)),
        (range(8, 10), range(9, 11)),
        (range(8, 9), range(9, 10)),
        (range(7, 10), range(8, 9)),
        (range(9, 11), range(7, 9)),
        (range(8, 9), range(8, 9)),
    ],
)
def test_brokers_speak_the_newest_version_that_both_understand(mine: range, theirs: range, secret: bytes) -> None:
    one = speaking(mine, "a", dialled=True, secret=secret)
    other = speaking(theirs, "b", dialled=False, secret=secret)
    ends, both = greeted(one, other), set(mine) & set(theirs)
    if both:
        assert ends == ("admitted", "admitted")
        assert one.version == other.version == max(both)
    else:
        assert all("version of" in end and "update the older" in end for end in ends)


def hello_of(name: str, **said: object) -> Hello:
    """As a listener would answer that has no secret."""
    other = side(name, dialled=False, **said)  # type: ignore[arg-type]
    _, (hello,) = other.receive(side("somebody", dialled=True).hello)
    return msgspec.msgpack.decode(hello, type=Hello)


def test_a_later_version_may_say_more_in_its_hello() -> None:
    fields = msgspec.msgpack.decode(encode_control(hello_of("b")))
    one = side("a", dialled=True)
    one.receive(msgspec.msgpack.encode({**fields, "colour": "green"}))
    assert one.state is State.PROVING


def test_a_broker_of_before_is_told_to_be_updated() -> None:
    """Version 4 says hello unasked, knows no share, and reads what it does not know as nothing."""
    fields = msgspec.msgpack.decode(encode_control(hello_of("b")))
    del fields["share"]
    for dialled in (True, False):
        with pytest.raises(RemoteError, match=rf"version of 'a' is {VERSION}, of 'b' 4; update the older"):
            side("a", dialled=dialled, secret=b"sesame").receive(msgspec.msgpack.encode({**fields, "version": 4}))


def test_two_brokers_of_one_name_are_told_and_a_broker_that_met_itself_knows() -> None:
    with pytest.raises(RemoteError, match=r"two brokers are named 'a'; each needs a name of its own"):
        side("a", dialled=False).receive(side("a", dialled=True).hello)
    with pytest.raises(SelfError):
        side("a", dialled=False, own_nonces=NONCES).receive(side("a", dialled=True).hello)


def test_nobody_can_say_to_a_dialler_that_it_has_met_itself() -> None:
    """It would never dial that address again."""
    one = side("a", dialled=True, own_nonces=NONCES)
    theirs = msgspec.structs.replace(hello_of("b"), nonce=one.nonce)
    one.receive(encode_control(theirs))
    assert one.state is State.PROVING


def met(secret: bytes = b"s", other: bytes = b"s") -> tuple[Handshake, Handshake, bytes, bytes]:
    """Two that have said hello; and the proof that the dialler says, and what it would say with that secret instead."""
    one, two = side("a", dialled=True, secret=secret), side("b", dialled=False, secret=other)
    _, (hello,) = two.receive(one.hello)
    two.answered()
    _, (proof,) = one.receive(hello)
    one.answered()
    return one, two, hello, proof


def test_a_stranger_gets_no_proof_of_anything() -> None:
    """Whoever dials proves first: a broker that is dialled says its name and a share that says nothing."""
    _, two, _, proof = met(b"guessed", b"sesame")
    with pytest.raises(RemoteError, match="differ"):
        two.receive(proof)
    assert two.state is State.PROVING


def test_a_proof_serves_one_meeting_in_one_direction() -> None:
    """What a listener has seen or gets by repeating our own words does not let it in."""
    one, two, _, proof = met()
    with pytest.raises(RemoteError, match="differ"):
        one.receive(proof)
    _, later, _, _ = met()
    with pytest.raises(RemoteError, match="differ"):
        later.receive(proof)
    two.receive(proof)
    assert two.state is State.ADMITTED


def test_what_was_overheard_is_no_test_of_a_guess() -> None:
    """An eavesdropper has both hellos and both proofs. With the right guess and with a wrong one it gets keys that are
    strange alike: to tell them apart it would need what neither has said."""
    one, _, hello, proof = met(b"sesame", b"sesame")
    said = seal.heard(one.hello, hello)
    shares = [msgspec.msgpack.decode(body, type=Hello).share for body in (one.hello, hello)]
    mac = msgspec.msgpack.decode(proof, type=Proof).mac
    for guess in (b"sesame", b"barley"):
        listening = Exchange(guess, dialled=False).keys(shares[0], said, VERSION)
        dialling = Exchange(guess, dialled=True).keys(shares[1], said, VERSION)
        assert mac not in (listening.proof(True), dialling.proof(True))


def test_a_share_says_nothing_of_the_secret_and_is_new_each_time() -> None:
    shares = {Exchange(b"sesame", dialled=True).share for _ in range(8)}
    assert len(shares) == 8


@pytest.mark.parametrize(
    "share", [b"", b"B", b"B" + bytes(32), b"B" + b"\xff" * 32, b"A" + bytes(32), b"B" + b"\1" + bytes(31)]
)
def test_a_share_that_is_none_is_refused(share: bytes) -> None:
    one = side("a", dialled=True, secret=b"sesame")
    with pytest.raises(RemoteError):
        one.receive(encode_control(msgspec.structs.replace(hello_of("b"), share=share)))
    assert one.state is State.GREETING


def admitted() -> tuple[Handshake, Handshake]:
    one, two, _, proof = met()
    _, (answer,) = two.receive(proof)
    two.answered()
    one.receive(answer)
    one.answered()
    assert (one.state, two.state) == (State.ADMITTED, State.ADMITTED)
    return one, two


def test_what_is_said_after_the_proofs_is_sealed_and_opens_in_its_order() -> None:
    one, two = admitted()
    for said, heard_by in ((one, two), (two, one)):
        sealed = [said.sealed(Kind.MESSAGE, b"event %d" % i) for i in range(3)]
        assert all(b"event" not in body for body in sealed)
        assert [heard_by.opened(Kind.MESSAGE, body) for body in sealed] == [b"event %d" % i for i in range(3)]


@pytest.mark.parametrize("spoil", ["changed", "repeated", "left out", "own", "of another kind", "in the clear"])
def test_what_somebody_on_the_wire_makes_of_it_does_not_open(spoil: str) -> None:
    one, two = admitted()
    first, second = (one.sealed(Kind.MESSAGE, body) for body in (b"first", b"second"))
    kind, body = Kind.MESSAGE, first
    match spoil:
        case "changed":
            body = bytes((first[0] ^ 1,)) + first[1:]
        case "repeated":
            two.opened(kind, first)
        case "left out":
            body = second
        case "own":
            body = two.sealed(kind, b"mine")
        case "of another kind":
            kind = Kind.CONTROL
        case "in the clear":
            body = encode_control(Ping())
    with pytest.raises(RemoteError, match="changed, left out or repeated"):
        two.opened(kind, body)


SAMPLES: dict[type[Control], Control] = {
    Hello: hello_of("b"),
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

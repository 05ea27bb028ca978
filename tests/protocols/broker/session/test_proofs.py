"""Secrets in tokens, without which no session crosses to another site."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from godwit.protocols.broker.messages import Carried
from godwit.protocols.broker.session.proofs import PROOFS_MAX, is_proven, proof_of, renewed, unite


def test_the_proof_of_a_token_is_found_whatever_the_broker_is_called() -> None:
    assert proof_of("17.42~c0ffee.plant/press.1") == "c0ffee"
    assert proof_of("?17.42~c0ffee.plant/press~x.1") == "c0ffee"
    assert proof_of("17.42.press.1") == ""
    assert proof_of("") == ""
    assert proof_of("anything") == ""


def test_nothing_proves_anything_of_a_session_without_proofs() -> None:
    assert not is_proven(Carried(), "")
    assert not is_proven(Carried(proofs=("x",)), "")


def test_what_is_older_than_what_was_shown_is_of_no_use_any_more() -> None:
    carried, dice = Carried(), Random(1)
    first, second = (renewed(carried, "", dice) for _ in range(2))
    third = renewed(carried, f"1.2~{second}.b1", dice)
    assert [is_proven(carried, one) for one in (first, second, third)] == [False, True, True]


@given(st.lists(st.booleans(), max_size=30))
def test_a_client_that_hears_only_some_answers_can_always_prove_its_session(hears: list[bool]) -> None:
    """It shows the last token that it heard. One among more than it ever lost may be forgotten, but not its own."""
    carried, dice, token = Carried(), Random(1), ""
    for heard in (True, *hears):
        proof = renewed(carried, token, dice)
        if heard:
            token = f"1.2~{proof}.b1"
        assert len(carried.proofs) <= PROOFS_MAX
        lost = [*reversed(hears)].index(True) if True in hears else len(hears)
        assert is_proven(carried, proof_of(token)) or lost >= PROOFS_MAX


def test_of_two_sessions_that_become_one_either_token_is_good() -> None:
    one, other = Carried(proofs=("a", "b")), Carried(proofs=("b", "c"))
    unite(one, other)
    assert all(is_proven(one, proof) for proof in "abc")

"""What a broker carries is bounded, and is offered only to who wants it and lacks it."""

from __future__ import annotations

import pytest
from tests.protocols.adhoc.fields import BLACK, GREY, black

from godwit.protocols.adhoc.carrier import Carrier
from godwit.protocols.adhoc.digest import digest_of
from godwit.protocols.adhoc.messages import Beacon, Data
from godwit.protocols.adhoc.options import Carry

pytestmark = pytest.mark.feature("manet-cbr F24")
NEEDY = Beacon(BLACK, have=digest_of([], 1))


def laden(count: int, options: Carry | None = None) -> Carrier:
    carrier = Carrier(options or Carry())
    for sequence in range(count):
        carrier.keep(Data(black(sequence=sequence), 0, {"x": 30}), float(sequence), is_wanted=False)
    return carrier


def offered(carrier: Carrier, beacon: Beacon, now_s: float = 20.0, to: str = "b") -> list[int]:
    return [data.event.sequence for data in carrier.offers(to, beacon, now_s)]


def test_only_what_is_wanted_and_lacking_is_offered() -> None:
    assert offered(laden(4), Beacon(BLACK, have=digest_of([("s", 1), ("s", 2)], 1))) == [0, 3]
    assert offered(laden(4), Beacon(GREY, have=digest_of([], 1))) == []
    assert offered(laden(4), Beacon(BLACK)) == []


def test_an_offer_tells_others_that_its_receiver_needs_no_more() -> None:
    (data,) = laden(1).offers("b", NEEDY, 20.0)
    assert data.destinations == {"x": 30, "b": 0}


def test_one_beacon_brings_a_batch_and_one_broker_so_many_tries() -> None:
    carrier = laden(5, Carry(batch_max=3, tries=1))
    assert offered(carrier, NEEDY) == [0, 1, 2]
    assert offered(carrier, NEEDY) == [3, 4]
    assert offered(carrier, NEEDY) == []
    assert offered(carrier, NEEDY, to="c") == [0, 1, 2]


def test_age_number_and_bytes_have_their_limits() -> None:
    assert offered(laden(9, Carry(age_max_s=10.0)), NEEDY, now_s=15.0) == [5, 6, 7, 8]
    assert offered(laden(9, Carry(count_max=2)), NEEDY) == [7, 8]
    one = laden(1).bytes
    assert offered(laden(9, Carry(bytes_max=3 * one)), NEEDY) == [6, 7, 8]
    assert laden(9, Carry(bytes_max=3 * one)).bytes == 3 * one


def test_age_counts_from_the_publication_whoever_carried_it_before() -> None:
    carrier = Carrier(Carry(age_max_s=60.0))
    carrier.keep(Data(black(), age_s=40.0), 100.0, is_wanted=False)
    (data,) = carrier.offers("b", NEEDY, 110.0)
    assert data.age_s == pytest.approx(50.0)
    assert offered(carrier, NEEDY, now_s=121.0, to="c") == []


def test_a_digest_names_what_was_wanted_even_where_it_is_not_carried_any_more() -> None:
    carrier = Carrier(Carry(count_max=1))
    for sequence in range(3):
        carrier.keep(Data(black(sequence=sequence)), 0.0, is_wanted=sequence != 1)
    digest = carrier.digest(1.0)
    assert [("s", sequence) in digest for sequence in range(3)] == [True, False, True]

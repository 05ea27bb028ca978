"""Beacons of bounded size: what does not fit takes turns, and what is said of others is no fresher than the truth."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.protocols.adhoc.fields import BLACK, GREY, Ground, black, line

from godwit.filters.filters import FilterSet, attribute, filter_of
from godwit.filters.predicates import equ
from godwit.protocols.adhoc.beacons import Beacons
from godwit.protocols.adhoc.carrier import Carrier
from godwit.protocols.adhoc.messages import Data, Hint
from godwit.protocols.adhoc.options import Carry, Options
from godwit.protocols.adhoc.table import ProximityTable

pytestmark = pytest.mark.feature("manet-cbr F24")

ROOMY = Options(
    hints_max=64,
    hints_relayed=True,
    hint_max_b=80,
    summary_max_b=120,
    beacon_max_b=400,
    tell_period=True,
    beacon_when_empty=True,
    carry=Carry(relay=True),
)


def wanting(colours: int) -> FilterSet:
    return FilterSet(tuple(filter_of(attribute("colour", equ(f"shade {number}"))) for number in range(colours)))


@settings(max_examples=50)
@given(st.integers(0, 60), st.integers(0, 40), st.integers(0, 300), st.integers(260, 1500))
def test_no_beacon_is_longer_than_its_bound(brokers: int, publishers: int, events: int, bound: int) -> None:
    table, carrier = ProximityTable(5.0), Carrier(Carry(relay=True))
    for number in range(brokers):
        table.heard(f"broker {number}", wanting(number % 7), 0.0)
    for number in range(events if publishers else 0):
        carrier.keep(Data(black(f"publisher {number % publishers}", number)), 0.0, is_wanted=True)
    beacons = Beacons(msgspec.structs.replace(ROOMY, beacon_max_b=bound), table, carrier)
    for _ in range(5):
        assert beacons.next(BLACK, 1.0, 5.0).size_b <= bound


def test_everybody_is_told_of_and_every_publisher_named_in_some_beacon() -> None:
    table, carrier = ProximityTable(5.0), Carrier(Carry(relay=True))
    for number in range(30):
        table.heard(f"broker {number}", BLACK, 0.0)
        carrier.keep(Data(black(f"publisher {number}", 1)), 0.0, is_wanted=True)
    beacons = Beacons(ROOMY, table, carrier)
    said = [beacons.next(BLACK, 1.0, 5.0) for _ in range(20)]
    assert {hint.broker for beacon in said for hint in beacon.hints} == {f"broker {n}" for n in range(30)}
    digests = [beacon.have for beacon in said if beacon.have is not None]
    assert {publisher for digest in digests for publisher in digest.runs} == {f"publisher {n}" for n in range(30)}
    assert not any(digest.lacks((f"publisher {n}", 1)) for digest in digests for n in range(30))


def test_hints_widen_what_somebody_wants_and_never_narrow_it() -> None:
    table = ProximityTable(5.0)
    table.heard("b", wanting(40), 0.0)
    (hint,) = Beacons(ROOMY, table, None).next(BLACK, 0.0, 5.0).hints
    assert all(hint.wanted.matches({"colour": f"shade {number}"}) for number in range(40))


@given(st.lists(st.floats(0.0, 30.0), min_size=1, max_size=9))
def test_a_broker_known_by_hearsay_is_forgotten_no_later_than_had_it_been_met(waits: list[float]) -> None:
    """However often it is told from one to the next."""
    tables = [ProximityTable(5.0) for _ in range(len(waits) + 1)]
    tables[0].heard("gone", BLACK, 0.0)
    now = 0.0
    for teller, hearer, wait in zip(tables, tables[1:], waits, strict=False):
        now += wait
        teller.clean(now)
        for hint in teller.hints(now, 10, relayed=True):
            hearer.told(hint, now)
            own, theirs = hearer.proximity("gone", now), teller.proximity("gone", now)
            assert own is None or (theirs is not None and own > theirs)
    for table in tables:
        table.clean(55.01)
        assert table.proximity("gone", 55.01) is None


def test_two_who_tell_each_other_of_a_third_forget_it() -> None:
    net = line("abc", ROOMY)
    net["c"].subscribe(BLACK, "app")
    net.run(12)
    assert net["a"].table.proximity("c", net["a"].host.now()) is not None
    net.air.cut("b", "c")
    net.run(75)
    assert net["a"].table.proximity("c", net["a"].host.now()) is None
    assert net["b"].table.proximity("c", net["b"].host.now()) is None


@pytest.mark.parametrize(("mindful", "delivered"), [(False, ["x"]), (True, ["x", "y"])])
def test_a_mindful_broker_is_silenced_only_by_who_serves_all_it_would(mindful: bool, delivered: list[str]) -> None:
    """L and M hear each other; x is beside L, y beside M."""
    quiet = Options(period_s=1000.0, jitter=0.0, mindful=mindful)
    net = Ground([("s", "l"), ("s", "m"), ("l", "m"), ("l", "x"), ("m", "y")], quiet)
    for name, beside, tenths in (("x", "l", 0), ("y", "m", 1)):
        net[name].subscribe(BLACK, "app")
        net.meet(beside, {name: tenths})
    net["s"].publish(black())
    net.run(3)
    assert sorted(net.delivered()) == delivered


def test_nothing_overtakes_what_its_publisher_said_before() -> None:
    options = Options(period_s=1000.0, in_order=True, jitter=1.0)
    net = line("sab", options)
    net["b"].subscribe(BLACK, "app")
    net.meet("a", {"b": 0})
    for sequence in range(50):
        net["s"].publish(black(sequence=sequence))
    net.run(5)
    assert [event.sequence for _, _, event in net.told] == list(range(50))


def test_what_is_asked_for_beyond_a_relay_crosses_it() -> None:
    """The relay wants nothing, and was away when the event was published."""
    options = Options(hints_max=9, beacon_when_empty=True, carry=Carry(relay=True))
    net = line("abc", options)
    net["c"].subscribe(BLACK, "app")
    net.run(20)
    net.air.cut("a", "b")
    net["a"].publish(black("a"))
    net.run(10)
    assert net.delivered() == []
    net.air.heal("a", "b")
    net.run(30)
    assert net.delivered() == ["c"]


@pytest.mark.parametrize(("thrifty", "senders"), [(False, ["s", "a", "d"]), (True, ["s", "a"])])
def test_a_thrifty_broker_spends_no_credit_where_somebody_is_known(thrifty: bool, senders: list[str]) -> None:
    net = line("sad", Options(period_s=1000.0, credits=1, thrifty=thrifty))
    net["d"].subscribe(BLACK, "app")
    net.meet("a", {"d": 0})
    net["s"].publish(black())
    net.run(3)
    assert net.senders() == senders
    assert net.delivered() == ["d"]


def test_prompt_brokers_tell_news_before_the_period_is_over() -> None:
    hurried = line("abcd", Options(period_s=20.0, beacon_when_empty=True, prompt=True, hints_max=9, hints_relayed=True))
    hurried.run(60)
    hurried["d"].subscribe(GREY, "app")
    hurried.run(18)
    entry = hurried["a"].table.entries.get("d")
    assert entry is not None
    assert entry.wanted == GREY


def test_destinations_are_the_closest_where_there_are_too_many() -> None:
    net = line("sab", Options(period_s=1000.0, destinations_max=3))
    for number in range(10):
        net["s"].table.told(Hint(f"n{number}", number * 10, 1000.0, BLACK), net["s"].host.now())
    net.meet("s", {"close": 0})
    net["s"].publish(black())
    (_, data), *_ = net.sent()
    assert set(data.destinations) == {"close", "n0", "n1"}

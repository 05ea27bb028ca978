"""What a broker keeps of clients."""

from __future__ import annotations

import pytest

from godwit.protocols.gathering.clients import (
    LIFE,
    CareOfStore,
    Cause,
    PointerTable,
    Presence,
    Profile,
    home_key,
    home_keys,
)


@pytest.mark.feature("data-gathering F27")
def test_a_full_table_drops_the_pointer_changed_longest_ago() -> None:
    table = PointerTable(2)
    table.put("a", b"1", 1)
    table.put("b", b"1", 1)
    table.put("a", b"2", 2)
    table.put("c", b"3", 1)
    assert [pointer.client for pointer in table] == ["a", "c"]
    assert table.evictions == 1
    assert not table.put("a", b"9", 2)
    table.remove("a")
    assert not table.has("a")


def test_a_table_without_room_keeps_nothing() -> None:
    table = PointerTable(0)
    assert not table.put("a", b"1", 1)
    assert len(table) == 0


@pytest.mark.feature("data-gathering F21")
def test_of_two_registrations_the_higher_epoch_wins_in_either_order() -> None:
    for order in ((1, 2), (2, 1)):
        store = CareOfStore()
        for epoch in order:
            store.put("a", bytes((epoch,)), epoch)
        found = store.get("a")
        assert found is not None
        assert found.epoch == 2


@pytest.mark.feature("data-gathering F21")
def test_home_keys_are_hashes_of_the_client_and_differ() -> None:
    assert len(set(home_keys("ada", 5))) == 5
    assert home_key("ada", 0).hex() == "4b0726a6e6870f251e7f7fb18709293d", (
        "SHA-1 of the name, a zero byte and the number"
    )
    assert all(len(key) == 16 for key in home_keys("ada", 5))


@pytest.mark.parametrize("presence", list(Presence))
@pytest.mark.parametrize("cause", list(Cause))
def test_a_profile_lives_by_its_table_and_nothing_else_moves_it(presence: Presence, cause: Cause) -> None:
    profile = Profile("a", "phone", 1)
    profile.presence = presence
    if cause in LIFE[presence]:
        profile.become(cause)
        assert profile.presence is LIFE[presence][cause]
    else:
        with pytest.raises(KeyError):
            profile.become(cause)
        assert profile.presence is presence

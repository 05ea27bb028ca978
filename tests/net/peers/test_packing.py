"""What is packed is unpacked, small frames shrink by what came before, and nobody can make us unpack without end."""

from __future__ import annotations

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from godwit.net.peers.packing import Packer
from godwit.protocols.host import RemoteError


@given(st.lists(st.binary(max_size=2_000), max_size=20))
def test_frames_come_out_as_they_went_in(bodies: list[bytes]) -> None:
    here, there = Packer(), Packer()
    for body in bodies:
        assert there.unpack(here.pack(body), 10_000) == body


def test_small_frames_shrink_by_what_came_before() -> None:
    packer = Packer()
    events = [b'{"vehicle": "van-7", "lat": 37.77, "lon": -122.41, "speed": %d}' % number for number in range(100)]
    packed = [len(packer.pack(event)) for event in events]
    assert sum(packed[10:]) < 0.5 * sum(map(len, events[10:]))


def test_a_frame_that_grows_too_large_or_is_nonsense_ends_the_link() -> None:
    bomb = zstandard.ZstdCompressor().compress(b"\0" * 50_000_000)
    with pytest.raises(RemoteError, match="more than 1,000,000 bytes"):
        Packer().unpack(bomb, 1_000_000)
    with pytest.raises(RemoteError, match="cannot be unpacked"):
        Packer().unpack(b"nonsense and more nonsense", 1_000_000)

"""Numbers that are never used twice, though a crash may take along the memory of the last ones.

To write each number before it is used would cost a write for each. A block of 2**32 costs one, and a start skips what
is left of it: 2**30 starts fit below the highest number that frames may carry, which is 2**62.
"""

from __future__ import annotations

from godwit.protocols.broker.store import Store

BLOCK = 2**32

LEAP = 2**48
"""What a disk that was restored from a copy skips: more than the broker can have used since the copy was made."""


class Numbers:
    """Counts upwards. A block is reserved on the disk before any number of it is used; the rest of it a crash skips.

    Nothing numbered may leave before the store has settled once after this was made. From then on the next block is
    written half a block ahead.
    """

    def __init__(self, store: Store, what: str, *, at_least: int = 0, block: int = BLOCK) -> None:
        self.store = store
        self.what = what
        self.block = block
        self.last = max(at_least, reserved(store, what))
        self._reserve_at = 0
        self._reserve()

    def next(self) -> int:
        self.last += 1
        if self.last > self._reserve_at:
            self._reserve()
        return self.last

    def skip_to(self, number: int) -> None:
        """Whatever is counted next is above this number."""
        self.last = max(self.last, number)
        if self.last > self._reserve_at:
            self._reserve()

    def _reserve(self) -> None:
        self._reserve_at = self.last + self.block // 2
        self.store.put("meta", self.what, 0, str(self.last + self.block).encode())


def reserved(store: Store, what: str) -> int:
    """The highest number that may have been used before this start."""
    return next((int(value) for owner, _, value in store.load("meta") if owner == what), 0)

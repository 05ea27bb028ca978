"""Randomness by name: every stream is a function of the root seed and its own name, so adding one shifts no other."""

from __future__ import annotations

from hashlib import blake2b
from random import Random

import numpy as np


class Streams:
    """`Streams(7).stream("mobility", "b3")` is the same stream in every run with seed 7, whoever else draws."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def stream(self, *names: object) -> Random:
        return Random(self._derived(names))

    def generator(self, *names: object) -> np.random.Generator:
        """The same for numpy, where many numbers are drawn at once. PCG64's stream is fixed by numpy's own promise."""
        return np.random.Generator(np.random.PCG64(self._derived(names)))

    def child(self, *names: object) -> Streams:
        return Streams(self._derived(names))

    def _derived(self, names: tuple[object, ...]) -> int:
        path = "\x1f".join(str(name) for name in (self.seed, *names))
        return int.from_bytes(blake2b(path.encode(), digest_size=16).digest(), "big")

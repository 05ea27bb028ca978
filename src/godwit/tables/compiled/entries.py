"""What Python may call of compiled code, and with which types."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Longs = npt.NDArray[np.int64]
Ints = npt.NDArray[np.int32]


class Kernels(NamedTuple):
    """What each does stands at the function that it calls. These types are what they are compiled for."""

    add: Callable[[int, int, int], tuple[int, int]]
    remove: Callable[[int, int], bool]
    knows: Callable[[int, int], bool]
    first_known: Callable[[int, Longs], int]
    new_outer: Callable[[int, int], int]
    drop_outer: Callable[[int, int], None]
    rehash_points: Callable[[int, Ints], int]
    rehash_texts: Callable[[int, Ints], int]
    rehash_compounds: Callable[[int, Ints], int]
    rehash_ids: Callable[[int, Longs, Ints], int]
    unreadable: Callable[[int], int]
    match_slice: Callable[[int, int, int, int, int, int, int, int, Longs], tuple[Longs, Longs, Longs]]
    count_slice: Callable[[int, int, int, int, int, int, int, int], Longs]
    match_few: Callable[[int, int, int, int, int, int, int, int, Longs], tuple[Longs, Longs, Longs]]
    match_event: Callable[[int, int, int, Longs], tuple[Longs, Longs]]
    rows_between: Callable[[int, int, Longs], Longs]

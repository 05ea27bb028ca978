"""An index as a file that many processes share: arrays are mapped into memory, not read.

    save(index, path)
    index = load(path)

Loading costs as much as the names and a table of offsets; pages come in when they are needed and are shared by all who
load the same file. A loaded index can be added to and removed from: what changes is copied, and the file stays as it
was. The head of the file is a pickle, because predicates of one's own may be in it: load only files that you trust.
"""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np

from godwit.tables.matching.index import Index

MAGIC = b"godwit index 1\n\0"
ALIGNMENT = 4096
"""Arrays begin on pages of their own, so that writing to one copies nothing of its neighbor."""


class IndexFileError(ValueError):
    """Not an index, or not a whole one: the message names the file and what is wrong with it."""


def save(index: Index, path: str | os.PathLike[str]) -> None:
    """Write the index under its name only once it is whole."""
    kept = index.__getstate__()
    arrays: dict[str, np.ndarray[Any, Any]] = kept.pop("arrays")
    table, at = {}, 0
    for name, array in arrays.items():
        table[name] = (array.dtype, array.shape, at)
        at += _rounded(array.nbytes)
    head = pickle.dumps({"kept": kept, "table": table, "bytes": at}, protocol=5)
    target = Path(path)
    unfinished = target.with_name(target.name + ".part")
    with unfinished.open("wb") as file:
        file.write(MAGIC + len(head).to_bytes(8, "little") + head)
        file.write(bytes(_rounded(file.tell()) - file.tell()))
        for array in arrays.values():
            file.write(np.ascontiguousarray(array).data)
            file.write(bytes(_rounded(array.nbytes) - array.nbytes))
    unfinished.replace(target)


def load(path: str | os.PathLike[str]) -> Index:
    """Map an index that `save` wrote; `IndexFileError` where the file is none."""
    with Path(path).open("rb") as file:
        start = file.read(len(MAGIC) + 8)
        if start[: len(MAGIC)] != MAGIC:
            raise IndexFileError(f"{path}: this is no index file")
        length = int.from_bytes(start[len(MAGIC) :], "little")
        size = os.fstat(file.fileno()).st_size
        first = _rounded(len(start) + length)
        if first > size:
            raise IndexFileError(f"{path}: the file is cut off; save the index again")
        head = pickle.loads(file.read(length))
    if first + head["bytes"] > size:
        raise IndexFileError(f"{path}: the file is cut off; save the index again")
    arrays = {
        name: np.memmap(path, dtype, "c", first + at, shape) if all(shape) else np.zeros(shape, dtype)
        for name, (dtype, shape, at) in head["table"].items()
    }
    index = Index.__new__(Index)
    index.__setstate__({**head["kept"], "arrays": arrays})
    return index


def _rounded(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT

"""The doors to compiled code. Arguments are addresses of books, numbers and arrays.

A distribution for one kind of machine brings its machine code along, as the module `machine` that its build makes
(deploy/machine.py). Elsewhere, in the checked mode, and in a tree whose sources were changed since, numba compiles the
same functions (`doors`) and keeps them on disk.
"""

from __future__ import annotations

import hashlib
from importlib import import_module
from pkgutil import get_data

from godwit.tables.compiled.books import CHECKED
from godwit.tables.compiled.entries import Kernels

MACHINE = "godwit.tables.compiled.machine"

COMPILED = ("books", "checks", "memory", "layout", "terms", "tree", "filing", "slices", "walk", "columns", "doors")
"""Modules that machine code is made of."""


def digest() -> int:
    """One number for all that machine code is made of: another one, and it is of other sources."""
    sources = [get_data("godwit.filters", "areas.py"), *(get_data(__package__, f"{name}.py") for name in COMPILED)]
    return int(hashlib.sha256(b"".join(filter(None, sources))).hexdigest()[:15], 16)


def ready() -> Kernels | None:
    """The machine code that came with the distribution, if it did, of these very sources."""
    if CHECKED:
        return None
    try:
        machine = import_module(MACHINE)
    except ImportError:
        return None
    if machine.digest() != digest():
        return None
    return Kernels(*(getattr(machine, name) for name in Kernels._fields))


def made() -> Kernels:
    """What numba compiles at the first call, or finds in its cache."""
    try:
        from godwit.tables.compiled import doors
    except ModuleNotFoundError as error:
        if error.name not in ("numba", "llvmlite"):
            raise
        told = "the matcher came without machine code for this machine, and numba is not installed that makes it"
        raise ModuleNotFoundError(f"{told}: pip install 'godwit[jit]'", name=error.name) from None
    return doors.made(digest() + CHECKED)


CAME = ready()
"""The kernels that need no numba, or None."""
KERNELS = CAME or made()

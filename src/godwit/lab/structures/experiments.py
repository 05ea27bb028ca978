"""One setting, run: the work that is spread over processes."""

from __future__ import annotations

from godwit.lab.structures import merging, routing
from godwit.lab.structures.rows import Row
from godwit.lab.structures.settings import Setting

MERGING = ("E12", "E13")


def run(setting: Setting) -> list[Row]:
    """One row for each structure; raises `ViolationError` where a structure turns out wrong."""
    return merging.run(setting) if setting.experiment in MERGING else routing.run(setting)

"""Spark's classes as Java keeps them in memory, on disk, so that the next session need not load and verify them again.

Half of the processor time of a start and of the first small job goes into that. The first session of a user leaves the
archive when its Java ends, which nobody waits for; the sessions that come after map it. Java itself checks that an
archive is of the same Java and of the same jars, and starts without it where it is not.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path

import pyspark

OFF = "GODWIT_SPARK_CLASSES"
"""In the environment, with the value `off`: nothing is kept."""

LEAVING, TAKING = "-XX:ArchiveClassesAtExit=", "-XX:SharedArchiveFile="

_SILENT = "-Xlog:cds=off -Xlog:cds+dynamic=off -Xlog:class+path=off"
"""What Java says of classes that cannot be kept is of no use to anybody, and would go to standard output."""
_WRITING_S = 600.0
"""Whoever writes an archive for longer was killed."""


def option(java: Path, environment: Mapping[str, str] = os.environ) -> str:
    """What the driver's Java is told, or nothing where no archive can be kept.

    With a configuration of the machine's own, Spark has that folder among its jars, which Java keeps no classes of.
    """
    if environment.get(OFF) == "off" or "SPARK_CONF_DIR" in environment or "SPARK_HOME" in environment:
        return ""
    folder, name = cache(environment), _name(java)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = sorted(folder.glob(f"{name}.*.jsa"), key=lambda file: file.stat().st_mtime)
        ready = [file for file in found if _is_whole(file)]
        for file in ready[1:]:
            file.unlink(missing_ok=True)
        being_written = [file for file in found if file not in ready and _is_young(file)]
    except OSError:
        return ""
    if ready:
        return f"{TAKING}{ready[0]} {_SILENT}"
    return "" if being_written else f"{LEAVING}{folder / f'{name}.{os.getpid()}.jsa'} {_SILENT}"


def cache(environment: Mapping[str, str] = os.environ) -> Path:
    """The folder of archives."""
    return Path(environment.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "godwit", "spark")


def _name(java: Path) -> str:
    """Java and Spark decide what is in an archive; another installation of either has one of its own."""
    home = Path(pyspark.__file__).parent
    told = [str(java.resolve()), str(java.stat().st_mtime_ns), pyspark.__version__, str(home)]
    return blake2b("\0".join(told).encode(), digest_size=8).hexdigest()


def _is_whole(file: Path) -> bool:
    """Java writes the beginning last."""
    with file.open("rb") as opened:
        return any(opened.read(4))


def _is_young(file: Path) -> bool:
    """Whether somebody may still be writing it; one that nobody is writing is removed."""
    if time.time() - file.stat().st_mtime < _WRITING_S:
        return True
    file.unlink(missing_ok=True)
    return False

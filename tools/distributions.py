"""Build `godwit-client` and `godwit`, and say what each takes on a disk: `python -m tools.distributions --out dist`.

Wheels are built from one tree by the locked build backend, without a network. What they depend on is taken from this
environment, file by file as its records say, so that an empty environment holds what the lock pins and nothing else.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import venv
import zipfile
from argparse import ArgumentParser
from collections.abc import Iterable, Sequence
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parent.parent
PLACES = {"godwit-client": ROOT / "deploy" / "client", "godwit": ROOT}
"""Where each is built."""
MB = 1e6


def main(arguments: Sequence[str]) -> int:
    parser = ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--out", type=Path, help="keep the wheels here")
    told = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as scratch:
        wheels = build(told.out or Path(scratch))
        for names in (("godwit-client",), ("godwit-client", "godwit"), ("godwit-client", "godwit", "pyarrow")):
            sizes = {name: unpacked(wheels[name]) for name in names if name in wheels}
            sizes |= {one.name: size(one) for one in needed(names)}
            total = sum(sizes.values())
            largest = sorted(sizes.items(), key=lambda item: -item[1])[:6]
            parts = ", ".join(f"{name} {taken / MB:.1f}" for name, taken in largest)
            print(f"{' + '.join(names):32} {total / MB:6.1f} MB: {parts}")
    return 0


def build(out: Path) -> dict[str, Path]:
    """A wheel of each, by name."""
    out.mkdir(parents=True, exist_ok=True)
    made = {}
    for name, place in PLACES.items():
        command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(out.resolve())]
        subprocess.run(command, cwd=place, check=True, capture_output=True)
        (made[name],) = out.glob(f"{name.replace('-', '_')}-[0-9]*.whl")
    return made


def unpacked(wheel: Path) -> int:
    with zipfile.ZipFile(wheel) as packed:
        return sum(one.file_size for one in packed.infolist())


def needed(names: Iterable[str]) -> list[Distribution]:
    """What these depend on, and what that depends on, as installed here; of our own only what they name."""
    found: dict[str, Distribution] = {}
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found[name] = distribution(name)
        lines = map(Requirement, found[name].requires or ())
        waiting += [one.name for one in lines if one.marker is None or one.marker.evaluate({"extra": ""})]
    return [one for name, one in sorted(found.items()) if name not in PLACES]


def size(one: Distribution) -> int:
    """Bytes of its files, those included that Python has compiled."""
    return sum(file.stat().st_size for file in files(one))


def files(one: Distribution) -> list[Path]:
    paths = (Path(str(file.locate())) for file in one.files or ())
    return [path for path in paths if path.is_file()]


def install(wheel_names: Iterable[str], wheels: dict[str, Path], folder: Path) -> Path:
    """An environment that holds these distributions and what they need; its Python."""
    names = list(wheel_names)
    python = environment(needed(names), folder)
    (site,) = (folder / "lib").glob("python*/site-packages")
    for name in names:
        with zipfile.ZipFile(wheels[name]) as packed:
            packed.extractall(site)
    return python


def environment(distributions: Iterable[Distribution], folder: Path) -> Path:
    """One that holds these and nothing else; its Python. Files are linked, not copied."""
    venv.create(folder, with_pip=False, symlinks=True)
    (site,) = (folder / "lib").glob("python*/site-packages")
    for one in distributions:
        base = Path(str(one.locate_file("")))
        for file in files(one):
            if file.is_relative_to(base):
                _link(file, site / file.relative_to(base))
    return folder / "bin" / "python"


def _link(file: Path, place: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(file, place)
    except OSError:  # another disk
        place.symlink_to(file)


def taken(folder: Path) -> int:
    """Bytes below a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

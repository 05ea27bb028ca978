"""What can be said of the dependencies without a network: `python -m tools.audit`, part of `make check`.

- Every file in the lock has a hash, so that nobody can put another one in its place.
- Everything comes from a registry: no address, no branch of somebody's repository.
- What is installed is what is locked; nothing else is installed, and nothing of it is missing.
- No page of the console names an address elsewhere: a script from there would run in an operator's browser.

It cannot know what was found out about a version since it was locked: that takes a list of advisories, which only the
network has. `make audit` asks for it with pip-audit, where there is a network.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parent.parent
OUR_OWN = {"godwit", "godwit-client"}
TOOLS = {"pip", "setuptools", "wheel", "uv"}
"""What makes the environment, and what a machine's Python brings along."""

PAGES = ROOT / "src" / "godwit" / "console" / "static"
ADDRESS = re.compile(r"(?:(?:https?|wss?):|(?<=[\"'(=]))//([\w.-]+)")
HARMLESS = {"127.0.0.1", "localhost", "www.w3.org"}


def main() -> int:
    locked = tomllib.loads((ROOT / "uv.lock").read_text())["package"]
    there = installed()
    found = [*unpinned(locked), *foreign(locked), *astray(locked, there), *missing(wanted(), there), *strange(PAGES)]
    for line in found:
        print(f"audit: {line}", file=sys.stderr)
    if not found:
        print(f"audit: {len(locked)} packages are pinned by hash, and what is installed is what is locked")
    return 1 if found else 0


def unpinned(locked: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    for package in locked:
        files = [*package.get("wheels", ()), *([package["sdist"]] if "sdist" in package else [])]
        if package["name"] not in OUR_OWN and not files:
            yield f"{package['name']}: the lock names no file of it"
        for one in files:
            if not re.fullmatch(r"sha256:[0-9a-f]{64}", one.get("hash", "")):
                yield f"{package['name']}: {one.get('url', '?')} has no hash"


def foreign(locked: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    for package in locked:
        if package["name"] not in OUR_OWN and "registry" not in package.get("source", {}):
            yield f"{package['name']}: comes from {package.get('source')}, not from a registry"


def astray(locked: Iterable[Mapping[str, Any]], there: Mapping[str, str]) -> Iterator[str]:
    versions: dict[str, set[str]] = {}
    for package in locked:
        versions.setdefault(package["name"], set()).add(package.get("version", ""))
    for name, version in sorted(there.items()):
        if name in OUR_OWN | TOOLS:
            continue
        if name not in versions:
            yield f"{name} {version} is installed and not in the lock"
        elif version not in versions[name]:
            yield f"{name} {version} is installed; the lock has {', '.join(sorted(versions[name]))}"


def missing(requirements: Iterable[str], there: Mapping[str, str]) -> Iterator[str]:
    """Of what this machine's environment should have; what is for others is not missed."""
    for line in requirements:
        one = Requirement(line)
        if one.name not in there and (one.marker is None or one.marker.evaluate()):
            yield f"{one} is locked and not installed; right would be `python tools/environment.py dev`"


def wanted() -> Iterator[str]:
    """What the environment for work on the code consists of, as requirements."""
    uv = Path(sys.executable).parent / "uv"
    command = [str(uv), "export", "--quiet", "--frozen", "--offline", "--no-emit-workspace", "--no-header"]
    options = ("--no-annotate", "--no-hashes", "--python", sys.executable, "--group", "dev", "--all-extras")
    said = subprocess.run([*command, *options], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return (line for line in said.splitlines() if line and not line.startswith(("#", " ", "-")))


def strange(folder: Path) -> Iterator[str]:
    """Addresses in web pages that are neither of this machine nor mere names of a notation."""
    for path in sorted(folder.rglob("*")):
        if path.suffix not in (".html", ".js", ".css", ".svg"):
            continue
        for host in sorted(set(ADDRESS.findall(path.read_text()))):
            if host not in HARMLESS:
                yield f"{path.relative_to(folder)}: names the address {host}"


def installed() -> dict[str, str]:
    """By the names that locks use."""
    return {re.sub(r"[-_.]+", "-", one.metadata["Name"]).lower(): one.version for one in distributions()}


if __name__ == "__main__":
    raise SystemExit(main())

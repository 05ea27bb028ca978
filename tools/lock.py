"""Renew uv.lock and take every address out of it: `python tools/lock.py [options of uv lock, such as --upgrade]`.

What is locked are versions and hashes. Where a machine fetches them from is its own affair, so the lock names a host
that cannot exist, and `environment.py` hands pip no addresses at all.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NOWHERE = "https://registry.invalid"
"""RFC 6761 keeps `.invalid` free of hosts for ever."""


def main(arguments: Sequence[str]) -> int:
    uv = Path(sys.executable).with_name("uv")
    status = subprocess.run([uv, "lock", *arguments], cwd=ROOT, check=False).returncode
    if status == 0:
        lock = ROOT / "uv.lock"
        lock.write_text(without_hosts(lock.read_text()))
    return status


def without_hosts(lock: str) -> str:
    """The lock with one and the same host everywhere and of each file's path only the name, which is all uv reads."""
    files = re.sub(r'(url = ")[^"]*/([^"/]+")', rf"\1{NOWHERE}/\2", lock)
    return re.sub(r'(registry = ")[^"]*(")', rf"\1{NOWHERE}/simple\2", files)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

"""Install a broker, as the lock pins it, into one folder: `python tools/image.py FOLDER [EMPTY ...]`, for an image.

The other folders are made, and left empty. Standard library only. Unlike `environment.py` it makes no environment, and
leaves no builder behind.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PIP = (sys.executable, "-m", "pip", "install", "--no-deps", "--quiet")


def main(folder: Path, *empty: Path) -> int:
    for one in empty:
        one.mkdir(parents=True, exist_ok=True)
    sys.path.insert(0, str(ROOT))
    from tools.environment import pinned

    with tempfile.TemporaryDirectory() as scratch:
        lines = Path(scratch) / "lines.txt"
        lines.write_text(pinned("uv"))
        subprocess.run([*PIP, "--require-hashes", "--requirement", lines], check=True)
        for what, place in ((("--only-group", "build"), ()), (("--no-default-groups",), ("--target", str(folder)))):
            lines.write_text(exported(*what))
            subprocess.run([*PIP, "--require-hashes", *place, "--requirement", lines], check=True)
        ours = [str(ROOT / "deploy" / "client"), str(ROOT)]
        subprocess.run([*PIP, "--no-build-isolation", "--target", str(folder), *ours], check=True)
    return 0


def exported(*selection: str) -> str:
    command = [sys.executable, "-m", "uv", "export", "--quiet", "--frozen"]
    command += ["--no-emit-workspace", "--no-header", "--no-annotate"]
    return subprocess.run([*command, *selection], cwd=ROOT, capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    raise SystemExit(main(*map(Path, sys.argv[1:])))

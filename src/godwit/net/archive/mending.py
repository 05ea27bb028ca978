"""`python -m godwit.net.archive.mending STREAM`: finish a file of the archive that a broker has left behind.

A process of its own: what reads a damaged file may be ended by the system, and that must not be the broker.
"""

from __future__ import annotations

import sys
from pathlib import Path

from godwit.net.archive.writer import finish

if __name__ == "__main__":
    finish(Path(sys.argv[1]))

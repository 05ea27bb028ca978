"""The Python of a stream's source, which tells Spark that it is there before it loads what it needs.

Spark gives the process ten seconds to connect. To load pyspark takes half a second of work, which on a busy machine can
be more than that; to connect takes a twentieth of it. So this connects first, and hands the connection to pyspark when
that wants one. `worker.sh` starts it.
"""

from __future__ import annotations

import os
import socket
import sys

Connection = tuple[object, socket.socket]


def connection() -> Connection | None:
    """To the Java that started this, which has been told the secret; None where it has another way to be found."""
    port, secret = (os.environ.get(f"PYTHON_WORKER_FACTORY_{name}", "") for name in ("PORT", "SECRET"))
    if not port or not secret:
        return None
    host = "::1" if os.environ.get("SPARK_PREFER_IPV6", "").lower() == "true" else "127.0.0.1"
    patience_s = int(os.environ.get("SPARK_AUTH_SOCKET_TIMEOUT", "15"))
    opened = socket.create_connection((host, int(port)), patience_s)
    file = opened.makefile("rwb", int(os.environ.get("SPARK_BUFFER_SIZE", "65536")))
    file.write(len(secret.encode()).to_bytes(4, "big") + secret.encode())
    file.flush()
    if file.read(int.from_bytes(file.read(4), "big")) != b"ok":
        raise SystemExit("the Java that started this does not know its own secret")
    return file, opened


def main(module: str) -> None:
    early = connection()

    import runpy

    from pyspark import worker_util

    if early is not None:
        setattr(worker_util, "local_connect_and_auth", lambda where, secret: early)  # noqa: B010
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(sys.argv[2])

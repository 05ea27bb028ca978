"""`godwit ready`: whether a broker can take clients, for scripts, health checks of containers and rolling restarts."""

from __future__ import annotations

import time
from typing import Annotated

import msgspec
import typer

READY, NOT_READY = 0, 1
LOOK_S = 0.5
ANSWER_S = 5.0


class ReadyOptions(msgspec.Struct, frozen=True, kw_only=True):
    address: Annotated[
        str,
        typer.Argument(
            metavar="HOST:PORT", help="Where a broker was told to answer with --status.", envvar="GODWIT_LISTEN__STATUS"
        ),
    ] = "127.0.0.1:9883"
    wait_s: Annotated[
        float, typer.Option("--wait", min=0, metavar="S", help="How long to wait until it is; 0: look once.")
    ] = 0.0


def ready(options: ReadyOptions) -> int:
    """Say whether a broker is ready for clients, or why not.

    Examples:

        godwit ready

        godwit ready north:9883 --wait 60 && systemctl restart south

    Without an address it asks where the environment tells a broker to answer, as in a container.

    Exit status: 0 where it is ready; 1 where it is not, or does not answer.
    """
    until_s = time.monotonic() + options.wait_s
    while True:
        is_ready, text = asked(f"http://{options.address}/ready")
        if is_ready or time.monotonic() >= until_s:
            typer.echo(text, err=not is_ready)
            return READY if is_ready else NOT_READY
        time.sleep(LOOK_S)


def asked(url: str) -> tuple[bool, str]:
    """Whether the broker is ready, and what it says."""
    import urllib.error
    import urllib.request

    try:
        with urllib.request.urlopen(url, timeout=ANSWER_S) as answer:
            return True, answer.read().decode().strip()
    except urllib.error.HTTPError as error:
        return False, f"godwit: {url}: {error.read().decode().strip()}"
    except (OSError, ValueError) as error:
        return False, f"godwit: {url}: {getattr(error, 'reason', error)}"

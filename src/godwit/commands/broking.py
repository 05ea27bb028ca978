"""What `godwit pub` and `godwit sub` share: how they reach a broker, and how they end."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Coroutine
from pathlib import Path

import msgspec

from godwit.commands.reports import InputError
from godwit.net.address import AddressError
from godwit.net.client import Client, ClientError, connect

FINISHED, INTERRUPTED = 0, 130
PASSWORD = "GODWIT_PASSWORD"


class Reaching(msgspec.Struct, frozen=True, kw_only=True):
    """As typed."""

    brokers: list[str]
    client: str = ""
    user: str | None = None
    ca: Path | None = None
    certificate: Path | None = None
    key: Path | None = None
    keep_s: float = 0.0


def client(reaching: Reaching) -> Client:
    try:
        return connect(
            *reaching.brokers,
            client=reaching.client,
            user=reaching.user,
            password=os.environ.get(PASSWORD),
            tls=_context(reaching),
            keep_s=reaching.keep_s,
        )
    except AddressError as error:
        raise InputError(str(error)) from None


def _context(reaching: Reaching) -> ssl.SSLContext | None:
    if reaching.ca is None and reaching.certificate is None:
        return None
    try:
        context = ssl.create_default_context(cafile=None if reaching.ca is None else str(reaching.ca))
        if reaching.certificate is not None:
            context.load_cert_chain(reaching.certificate, reaching.key)
    except (OSError, ssl.SSLError) as error:
        where = error.filename or reaching.certificate or reaching.ca
        raise InputError(f"{where}: cannot be used for TLS: {error.strerror or error}") from None
    return context


def completed(work: Coroutine[None, None, int]) -> int:
    """Run it to its exit status; Ctrl-C ends it quietly."""
    try:
        return asyncio.run(work)
    except KeyboardInterrupt:
        return INTERRUPTED
    except ClientError as error:
        raise InputError(str(error)) from None

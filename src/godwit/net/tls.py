"""TLS contexts from files, with errors that name the file."""

from __future__ import annotations

import ssl
from pathlib import Path

from godwit.net.config import ConfigError, PeersTls, Tls


def for_clients(tls: Tls) -> ssl.SSLContext:
    context = _context(ssl.PROTOCOL_TLS_SERVER, tls.certificate, tls.key, "tls")
    if tls.client_authority is not None:
        _trust(context, tls.client_authority, "tls.client_authority")
        context.verify_mode = ssl.CERT_REQUIRED if tls.client_required else ssl.CERT_OPTIONAL
    return context


def for_peers(tls: PeersTls) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """For accepting and for dialling. Being signed by the cluster's authority is what counts: brokers move, so the
    names of their hosts say nothing."""
    serving, dialling = (
        _context(protocol, tls.certificate, tls.key, "peers.tls")
        for protocol in (ssl.PROTOCOL_TLS_SERVER, ssl.PROTOCOL_TLS_CLIENT)
    )
    for context in (serving, dialling):
        context.check_hostname = False
        context.verify_mode = ssl.CERT_REQUIRED
        _trust(context, tls.authority, "peers.tls.authority")
    return serving, dialling


def _context(protocol: int, certificate: Path, key: Path, table: str) -> ssl.SSLContext:
    context = ssl.SSLContext(protocol)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        # A key that needs a passphrase must not make a service ask a terminal for it.
        context.load_cert_chain(certificate, key, password=lambda: "")
    except (ssl.SSLError, OSError, ValueError) as error:
        raise ConfigError(
            f"{table}: {certificate} and {key} must be a certificate and its key, in PEM without a passphrase: {error}"
        ) from None
    return context


def _trust(context: ssl.SSLContext, authority: Path, key: str) -> None:
    try:
        context.load_verify_locations(authority)
    except (ssl.SSLError, OSError) as error:
        raise ConfigError(f"{key}: {authority} is no certificate in PEM: {error}") from None

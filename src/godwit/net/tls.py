"""TLS contexts from files, with errors that name the file."""

from __future__ import annotations

import ssl
from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path
from weakref import WeakKeyDictionary

from godwit.net.config import ConfigError, PeersTls, Tls

_made: WeakKeyDictionary[ssl.SSLContext, tuple[Path, Path]] = WeakKeyDictionary()
"""The files of each context in use."""


def read_again(pairs: Iterable[tuple[Path, Path]]) -> None:
    """Show the certificates that are in these pairs of files now, to whoever connects from now on. `ConfigError`, and
    nothing has changed, where one of them cannot be used. Whom we trust stays as it was."""
    files = set(pairs)
    for pair in files:
        _context(ssl.PROTOCOL_TLS_SERVER, *pair, "tls")
    for context, (certificate, key) in list(_made.items()):
        if (certificate, key) in files:
            context.load_cert_chain(certificate, key, password=lambda: "")


def for_clients(tls: Tls) -> ssl.SSLContext:
    context = _context(ssl.PROTOCOL_TLS_SERVER, tls.certificate, tls.key, "tls")
    if tls.client_authority is not None:
        _trust(context, tls.client_authority, "tls.client_authority")
        context.verify_mode = ssl.CERT_REQUIRED if tls.client_required else ssl.CERT_OPTIONAL
    return context


def for_pages(certificate: Path, key: Path, table: str = "tls") -> ssl.SSLContext:
    """For browsers, who are asked for no certificate of their own: people log in by name."""
    return _context(ssl.PROTOCOL_TLS_SERVER, certificate, key, table)


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


def problem_of(tls: PeersTls, certificate: bytes) -> str:
    """Why this certificate, in DER, is no broker's though the cluster's authority has signed it; empty where it is."""
    from cryptography import x509
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

    shown = x509.load_der_x509_certificate(certificate)
    called = [str(one.value) for one in shown.subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    try:
        uses = shown.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    except x509.ExtensionNotFound:
        uses = None
    if uses is not None and ExtendedKeyUsageOID.SERVER_AUTH not in uses:
        return f"the certificate of {called} is for clients only, so that it is no broker's"
    try:
        names = shown.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        called += names.get_values_for_type(x509.DNSName)
    except x509.ExtensionNotFound:
        pass
    if tls.names and not any(fnmatchcase(one, pattern) for one in called for pattern in tls.names):
        return f"the certificate of {called} is no broker's; peers.tls.names are {list(tls.names)}"
    return ""


def shared_authority(clients: Path, peers: Path) -> bool:
    """Whether a certificate that signs clients also signs brokers."""
    from cryptography import x509

    try:
        one, other = (set(x509.load_pem_x509_certificates(path.read_bytes())) for path in (clients, peers))
    except (OSError, ValueError):
        return False  # whoever loads them for TLS says what is wrong with them
    return bool(one & other)


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
    _made[context] = certificate, key
    return context


def _trust(context: ssl.SSLContext, authority: Path, key: str) -> None:
    try:
        context.load_verify_locations(authority)
    except (ssl.SSLError, OSError) as error:
        raise ConfigError(f"{key}: {authority} is no certificate in PEM: {error}") from None

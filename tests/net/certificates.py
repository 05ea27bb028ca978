"""A certificate authority for tests."""

from __future__ import annotations

import datetime
import ipaddress
import ssl
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

START = datetime.datetime(2020, 1, 1)
END = datetime.datetime(2099, 1, 1)


class Authority:
    """Signs certificates in a folder: `ca.pem`, and `NAME.pem` with `NAME.key` for each name asked for."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"authority of {folder.name}")])
        builder = self._builder(self.name, self.key.public_key()).add_extension(
            x509.BasicConstraints(ca=True, path_length=None), critical=True
        )
        self.certificate = builder.sign(self.key, hashes.SHA256())
        self.ca = folder / "ca.pem"
        self.ca.write_bytes(self.certificate.public_bytes(serialization.Encoding.PEM))

    def _builder(self, subject: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self.name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(START)
            .not_valid_after(END)
        )

    def files(self, name: str, *, clients_only: bool = False) -> tuple[Path, Path]:
        """Certificate and key of this name, valid for loopback; as long as there is one of it, that."""
        certificate, private = self.folder / f"{name}.pem", self.folder / f"{name}.key"
        if not certificate.exists():
            key = ec.generate_private_key(ec.SECP256R1())
            subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
            names = x509.SubjectAlternativeName(
                [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
            )
            builder = self._builder(subject, key.public_key()).add_extension(names, critical=False)
            if clients_only:
                builder = builder.add_extension(
                    x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False
                )
            signed = builder.sign(self.key, hashes.SHA256())
            certificate.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
            plain = serialization.NoEncryption()
            encoding, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
            private.write_bytes(key.private_bytes(encoding, form, plain))
        return certificate, private

    def context(self, name: str, *, server: bool) -> ssl.SSLContext:
        """For a peer that shows this certificate and wants one of this authority."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if server else ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(self.ca)
        context.load_cert_chain(*self.files(name))
        return context

"""Until when certificates are good."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from godwit.net.admin.certificates import expiry_of


@pytest.mark.parametrize("year", [2031, 2049, 2050, 2100])
def test_the_end_is_what_the_certificate_says(tmp_path: Path, year: int) -> None:
    end = datetime(year, 3, 4, 5, 6, 7, tzinfo=UTC)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "north.example")])
    key = ec.generate_private_key(ec.SECP256R1())
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(7)
        .not_valid_before(end - timedelta(days=400))
        .not_valid_after(end)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path / "one.pem"
    path.write_bytes(b"words before it\n" + made.public_bytes(Encoding.PEM))
    assert expiry_of(path) == end.timestamp()


@pytest.mark.parametrize("text", ["", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"])
def test_what_is_no_certificate_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "one.pem"
    path.write_text(text)
    with pytest.raises(ValueError):
        expiry_of(path)

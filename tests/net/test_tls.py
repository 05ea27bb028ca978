"""Certificates of brokers are told from those of clients, also where one authority signs both."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.net.certificates import Authority

from godwit.net.config import ConfigError, PeersTls, load
from godwit.net.server import club
from godwit.net.tls import problem_of, shared_authority


def written(folder: Path, authority: Authority, clients: Authority, more: str = "") -> Path:
    certificate, key = authority.files("a.brokers")
    path = folder / "godwit.toml"
    path.write_text(
        f"[listen]\nmqtts = ['127.0.0.1:0']\n"
        f"[tls]\ncertificate = '{certificate}'\nkey = '{key}'\nclient_authority = '{clients.ca}'\n"
        f"[peers]\nlisten = '127.0.0.1:0'\n{'secret = ' + repr('x' * 16) if more == 'secret' else ''}\n"
        f"[peers.tls]\ncertificate = '{certificate}'\nkey = '{key}'\nauthority = '{authority.ca}'\n"
        + ("names = ['*.brokers']\n" if more == "names" else "")
    )
    return path


def test_one_authority_for_clients_and_brokers_needs_something_more(tmp_path: Path) -> None:
    ours, fleet = Authority(tmp_path / "ours"), Authority(tmp_path / "fleet")
    with pytest.raises(ConfigError, match="any client could join as a broker"):
        club(load(written(tmp_path, ours, ours), {}))
    for clients, more in ((fleet, ""), (ours, "secret"), (ours, "names")):
        assert club(load(written(tmp_path, ours, clients, more), {})).serving is not None


def test_an_authority_among_several_in_one_file_counts(tmp_path: Path) -> None:
    ours, fleet = Authority(tmp_path / "ours"), Authority(tmp_path / "fleet")
    both = tmp_path / "both.pem"
    both.write_bytes(fleet.ca.read_bytes() + ours.ca.read_bytes())
    assert shared_authority(both, ours.ca)
    assert not shared_authority(fleet.ca, ours.ca)


@pytest.mark.parametrize(
    ("name", "clients_only", "names", "problem"),
    [
        ("a.brokers", False, ("*.brokers",), ""),
        ("a.brokers", False, (), ""),
        ("van-7", False, ("*.brokers",), "is no broker's"),
        ("a.brokers", True, (), "for clients only"),
        ("van-7", False, ("localhost",), ""),
    ],
)
def test_a_certificate_says_whether_it_is_a_brokers(
    tmp_path: Path, name: str, clients_only: bool, names: tuple[str, ...], problem: str
) -> None:
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import Encoding

    ours = Authority(tmp_path / "ours")
    certificate, key = ours.files(name, clients_only=clients_only)
    shown = x509.load_pem_x509_certificate(certificate.read_bytes()).public_bytes(Encoding.DER)
    settings = PeersTls(certificate=certificate, key=key, authority=ours.ca, names=names)
    found = problem_of(settings, shown)
    assert problem in found
    assert bool(found) == bool(problem)

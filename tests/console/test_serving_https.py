"""The console over HTTPS, with certificates made here, in front of brokers whose operators log in over HTTPS."""

from __future__ import annotations

import base64
import hashlib
import os
import signal
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from tests.brokers import START_S, Process, running
from tests.console.eyes import CHROMIUM, Eyes, chromium
from tests.net.certificates import Authority
from typer.testing import CliRunner

from godwit.cli import app
from godwit.net.access import hashed


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("secure") / "authority")


@contextmanager
def broker(folder: Path, authority: Authority, name: str = "north") -> Iterator[Process]:
    """As on a machine of its own: it listens everywhere, so that people and pages reach it over TLS alone."""
    certificate, key = authority.files(name)
    (folder / "users.toml").write_text(f'[users.ann]\npassword = "{hashed("pass", "low")}"\nrole = "operator"\n')
    config = folder / f"{name}.toml"
    config.write_text(
        '[listen]\nmqtt = []\nwss = ["0.0.0.0:0"]\nstatus = "127.0.0.1:0"\nhttp = "0.0.0.0:0"\nconsole = "0.0.0.0:0"\n'
        f'[tls]\ncertificate = "{certificate}"\nkey = "{key}"\nauthority = "{authority.ca}"\n'
        '[access]\nusers = "users.toml"\n'
    )
    one = Process(folder, name, "--config", str(config))
    with running(one):
        yield one


def port_of(where: str) -> int:
    return int(where.rpartition(":")[2])


def pin(certificate: Path) -> str:
    """The number by which Chromium is told to believe this key, and no other."""
    key = x509.load_pem_x509_certificate(certificate.read_bytes()).public_key()
    return base64.b64encode(
        hashlib.sha256(key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).digest()
    ).decode()


def shown_at(port: int) -> bytes:
    return ssl.PEM_cert_to_DER_cert(ssl.get_server_certificate(("127.0.0.1", port)))


def in_file(certificate: Path) -> bytes:
    return x509.load_pem_x509_certificate(certificate.read_bytes()).public_bytes(Encoding.DER)


def renewed(authority: Authority, name: str) -> Path:
    for suffix in ("pem", "key"):
        (authority.folder / f"{name}.{suffix}").unlink()
    return authority.files(name)[0]


def awaited(port: int, certificate: Path) -> None:
    """Until this certificate is shown there."""
    until = time.monotonic() + START_S
    while shown_at(port) != in_file(certificate):
        assert time.monotonic() < until, "the renewed certificate was never shown"
        time.sleep(0.05)


def test_operators_log_in_over_https_and_a_strange_certificate_ends_it(
    tmp_path: Path, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GODWIT_PASSWORD", "pass")
    stranger = Authority(tmp_path / "stranger")
    with broker(tmp_path, authority) as north:
        url = f"https://127.0.0.1:{port_of(north.at('http'))}"
        asked = ["admin", "reload", "--broker", url, "--user", "ann"]
        done = CliRunner().invoke(app, [*asked, "--authority", str(authority.ca)])
        assert (done.exit_code, done.stderr) == (0, "")
        for more in ([], ["--authority", str(stranger.ca)]):
            done = CliRunner().invoke(app, [*asked, *more])
            assert done.exit_code == 2
            assert "its certificate is not believed" in done.stderr
            assert len(done.stderr.splitlines()) == 1
        plain = CliRunner().invoke(app, ["admin", "reload", "--broker", url.replace("https", "http")])
        assert (plain.exit_code, "no answer" in plain.stderr) == (2, True)


def test_a_renewed_certificate_is_shown_by_operators_port_and_console_after_sighup(
    tmp_path: Path, authority: Authority
) -> None:
    with broker(tmp_path, authority, "renewing") as one:
        ports = [port_of(one.at(kind)) for kind in ("http", "console", "wss")]
        first = in_file(authority.files("renewing")[0])
        assert {shown_at(port) for port in ports} == {first}
        certificate = renewed(authority, "renewing")
        one.process.send_signal(signal.SIGHUP)
        for port in ports:
            awaited(port, certificate)
        assert in_file(certificate) != first


def test_a_console_by_itself_reads_its_certificate_again_and_refuses_one_that_is_none(
    tmp_path: Path, authority: Authority
) -> None:
    certificate, key = authority.files("console")
    command = [sys.executable, "-m", "godwit", "console", "--listen", "127.0.0.1:0", "--certificate", str(certificate)]
    told = {**os.environ, "PYTHONUNBUFFERED": "1"}
    wrong = subprocess.run([*command, "--key", str(certificate)], capture_output=True, text=True, timeout=START_S)
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert "must be a certificate and its key" in wrong.stderr
    running = subprocess.Popen(
        [*command, "--key", str(key)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=told
    )
    try:
        assert running.stdout is not None
        where = running.stdout.readline().split()[3].rstrip(";")
        assert where.startswith("https://127.0.0.1:")
        certificate = renewed(authority, "console")
        running.send_signal(signal.SIGHUP)
        awaited(port_of(where), certificate)
    finally:
        running.terminate()
        running.communicate(timeout=START_S)


def in_browser(url: str, *believed: Path) -> Iterator[Eyes]:
    with chromium(f"--ignore-certificate-errors-spki-list={','.join(map(pin, believed))}") as browser:
        yield Eyes(browser, url)


def logged_in(eyes: Eyes) -> None:
    eyes.page.goto(eyes.url)
    eyes.page.get_by_label("User").fill("ann")
    eyes.page.get_by_label("Password").fill("pass")
    eyes.page.get_by_role("button", name="Log in").click()
    eyes.page.locator("#main").get_by_text("delivered a second").wait_for()


@pytest.mark.skipif(not CHROMIUM, reason="Debian's chromium is not here")
@pytest.mark.xdist_group("console")
def test_a_browser_logs_in_looks_and_speaks_mqtt_over_tls_alone(tmp_path: Path, authority: Authority) -> None:
    with broker(tmp_path, authority) as north:
        url = f"https://127.0.0.1:{port_of(north.at('console'))}"
        for eyes in in_browser(url, authority.files("north")[0]):
            logged_in(eyes)
            (cookie,) = eyes.context.cookies()
            assert (cookie["secure"], cookie["httpOnly"], cookie["sameSite"]) == (True, True, "Strict")
            eyes.see("clients", "Clients")
            eyes.see("wire", "Received")
            eyes.page.get_by_label("User").fill("ann")
            eyes.page.get_by_label("Password").fill("pass")
            eyes.page.get_by_role("button", name="Connect").click()
            eyes.page.get_by_text("Connected to wss://").wait_for()
            assert (eyes.hosts, eyes.complaints) == ({"127.0.0.1"}, [])
            eyes.shoot("secure-wire")


@pytest.mark.skipif(not CHROMIUM, reason="Debian's chromium is not here")
@pytest.mark.xdist_group("console")
def test_a_browser_that_does_not_know_the_authority_shows_nothing(tmp_path: Path, authority: Authority) -> None:
    from playwright.sync_api import Error

    with broker(tmp_path, authority) as north:
        for eyes in in_browser(f"https://127.0.0.1:{port_of(north.at('console'))}", authority.files("other")[0]):
            with pytest.raises(Error, match="ERR_CERT_AUTHORITY_INVALID"):
                eyes.page.goto(eyes.url)

"""Asks a broker's port for operators: for `godwit admin` and for the console. It waits, so a loop needs a thread."""

from __future__ import annotations

import base64
import http.client
import ssl
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode, urlsplit

import msgspec

from godwit.net.ops.report import Report

ANSWER_S = 10.0
STATUS_PORT = 9883

REPORTS = msgspec.json.Decoder(Report)
"""Made before any thread uses it. msgspec looks into a type when something is first decoded as that, and two threads
that have it do so at once crash the process (seen with 0.22)."""


class AskError(Exception):
    """No answer, or not the one that was wanted. `status` is HTTP's, 0 where there was no answer at all."""

    def __init__(self, text: str, status: int = 0) -> None:
        super().__init__(text)
        self.status = status


class Login(msgspec.Struct, frozen=True):
    """Without a user: nobody in particular."""

    user: str = ""
    password: str = ""

    def headers(self) -> dict[str, str]:
        if not self.user:
            return {}
        return {"Authorization": "Basic " + base64.b64encode(f"{self.user}:{self.password}".encode()).decode()}


NOBODY = Login()


class Operator:
    """One broker, as one user. `authority` is the file of who has signed the broker's certificate, where that is none
    that the machine knows; `shown` that of the one certificate which is believed, whatever host it names."""

    def __init__(self, url: str, login: Login = NOBODY, authority: str | None = None, shown: str | None = None) -> None:
        self.url = url
        self.login = login
        self.authority = authority
        self.shown = shown

    def get(self, path: str, query: Mapping[str, str] | None = None, *, answer_s: float = ANSWER_S) -> Any:
        asked = f"/v1/{path}" + (f"?{urlencode(query)}" if query else "")
        return _decoded(self._ask("GET", asked, None, answer_s))

    def post(self, path: str, body: object, *, answer_s: float = ANSWER_S) -> Any:
        return _decoded(self._ask("POST", f"/v1/{path}", msgspec.json.encode(body), answer_s))

    def _ask(self, method: str, path: str, body: bytes | None, answer_s: float) -> bytes:
        headers = self.login.headers() | ({} if body is None else {"Content-Type": "application/json"})
        return fetched(self.url, path, method, body, headers, answer_s, self.authority, self.shown)


def fetched(
    url: str,
    path: str,
    method: str = "GET",
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
    answer_s: float = ANSWER_S,
    authority: str | None = None,
    shown: str | None = None,
) -> bytes:
    split = urlsplit(url)
    host, connection = split.hostname or "", _connection(url, answer_s, authority, shown)
    try:
        connection.request(method, path, body, dict(headers or {}))
        answer = connection.getresponse()
        said = answer.read()
    except ssl.SSLCertVerificationError as error:
        raise AskError(f"{url}: its certificate is not believed: {error.verify_message}") from None
    except (OSError, http.client.HTTPException) as error:
        why = (error.strerror if isinstance(error, OSError) else "") or str(error) or type(error).__name__
        raise AskError(f"{split.netloc or host}: no answer: {why}") from None
    finally:
        connection.close()
    if answer.status != 200:
        raise AskError(said.decode("utf-8", "replace").strip()[:500] or answer.reason, answer.status)
    return said


def _connection(url: str, answer_s: float, authority: str | None, shown: str | None) -> http.client.HTTPConnection:
    split = urlsplit(url)
    host, port = split.hostname or "127.0.0.1", split.port
    if split.scheme == "https":
        context = _believing(authority, shown)
        return http.client.HTTPSConnection(host, port or 443, timeout=answer_s, context=context)
    return http.client.HTTPConnection(host, port or 80, timeout=answer_s)


def _believing(authority: str | None, shown: str | None) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=shown or authority)
    except (OSError, ssl.SSLError) as error:
        raise AskError(f"{shown or authority} is no certificate in PEM: {error}") from None
    if shown is not None:
        context.check_hostname = False
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    return context


def _decoded(said: bytes) -> Any:
    try:
        return msgspec.json.decode(said)
    except msgspec.DecodeError:
        raise AskError("the answer is no JSON; is this a broker's port for operators?") from None


def report_at(address: str, answer_s: float = ANSWER_S) -> Report:
    """What `/status` says at `host:port`."""
    said = fetched(f"http://{address}", "/status", answer_s=answer_s)
    try:
        return REPORTS.decode(said)
    except msgspec.DecodeError:
        raise AskError(f"{address}: this is no broker's status") from None


def portal_of(address: str, answer_s: float = ANSWER_S, authority: str | None = None) -> tuple[str, str]:
    """The name and the URL where operators log in, of a broker given by that URL, or by the address of its status."""
    if address.startswith(("http://", "https://")):
        return "", address.rstrip("/")
    where = address if ":" in address else f"{address}:{STATUS_PORT}"
    report = report_at(where, answer_s)
    if not report.http:
        raise AskError(f"{report.name} at {where} has nowhere to log in; give it listen.http")
    return report.name, completed(report.http, urlsplit(f"//{where}").hostname or "")


def completed(url: str, host: str) -> str:
    """The URL with a host where it has none: a broker that listens everywhere does not know its own."""
    split = urlsplit(url)
    return url if split.hostname else f"{split.scheme}://{f'[{host}]' if ':' in host else host}:{split.port}"

"""Asks a broker's port for operators, as a program would."""

from __future__ import annotations

import asyncio
import base64
from typing import Any

import msgspec
from tests.net.servers import port

from godwit.net.server import Server


async def answered(
    one: Server,
    path: str,
    body: object = None,
    *,
    login: str = "",
    headers: dict[str, str] | None = None,
    method: str = "",
) -> tuple[int, bytes]:
    """Status and body; with a body it is posted."""
    data = b"" if body is None else msgspec.json.encode(body)
    told = {"Host": f"127.0.0.1:{port(one, 'http')}"}
    if body is not None:
        told |= {"Content-Type": "application/json", "Content-Length": str(len(data))}
    if login:
        told["Authorization"] = "Basic " + base64.b64encode(login.encode()).decode()
    told |= headers or {}
    verb = method or ("GET" if body is None else "POST")
    head = f"{verb} {path} HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in told.items())
    reader, writer = await asyncio.open_connection("127.0.0.1", port(one, "http"))
    writer.write(head.encode() + b"\r\n" + data)
    said, _, rest = (await reader.read()).partition(b"\r\n\r\n")
    writer.close()
    return int(said.split()[1]), rest


async def asked(one: Server, path: str, body: object = None, **more: Any) -> Any:
    status, rest = await answered(one, path, body, **more)
    assert status == 200, rest
    return msgspec.json.decode(rest)

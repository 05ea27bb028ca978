"""A slow link in user space, where the kernel cannot make one: `python -m tests.net.sites.shaper PORT HOST:PORT`.

What comes to the port on loopback goes on to that address, and back, at 256 kbit/s and 150 ms later each way.
"""

from __future__ import annotations

import asyncio
import sys

RATE_B_S = 256_000 / 8
DELAY_S = 0.15
CHUNK_B = 1_024
DIAL_S = 2.0


async def trickle(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    """In order: each chunk leaves when those before it have, and arrives a while later."""
    loop = asyncio.get_running_loop()
    waiting: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()
    sender = asyncio.create_task(deliver(waiting, target))
    free_s = 0.0
    try:
        while chunk := await source.read(CHUNK_B):
            free_s = max(free_s, loop.time()) + len(chunk) / RATE_B_S
            waiting.put_nowait((free_s + DELAY_S, chunk))
            await asyncio.sleep(max(0.0, free_s - loop.time()))
    finally:
        waiting.put_nowait((loop.time(), b""))
        await sender


async def deliver(waiting: asyncio.Queue[tuple[float, bytes]], target: asyncio.StreamWriter) -> None:
    loop = asyncio.get_running_loop()
    while True:
        due_s, chunk = await waiting.get()
        await asyncio.sleep(max(0.0, due_s - loop.time()))
        if not chunk or target.is_closing():
            target.close()
            return
        target.write(chunk)
        await target.drain()


async def join(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str, port: int) -> None:
    try:
        there, back = await asyncio.wait_for(asyncio.open_connection(host, port), DIAL_S)
    except OSError:
        writer.close()
        return
    await asyncio.gather(trickle(reader, back), trickle(there, writer), return_exceptions=True)
    writer.close()
    back.close()


async def main(port: int, target: str) -> None:
    host, _, there = target.rpartition(":")
    server = await asyncio.start_server(lambda r, w: join(r, w, host, int(there)), "127.0.0.1", port)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), sys.argv[2]))

"""Which broker a client is told to use: what a server's parts have to do with `protocols.broker.balance`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from functools import partial

from godwit.net.address import Address, is_loopback
from godwit.net.config import Config, Redirect, address
from godwit.net.host import AsyncHost
from godwit.net.mqtt.front import Front
from godwit.net.peers.dialler import PORT
from godwit.net.peers.links import Links
from godwit.protocols.broker.api import Reason
from godwit.protocols.broker.balance import Balance, BalanceOptions, Burden
from godwit.protocols.broker.broker import Broker
from godwit.protocols.broker.streams.frames import Load, Loads, Sent, Transport
from godwit.protocols.host import Message, NodeId

log = logging.getLogger("godwit.balance")

WILDCARDS = ("0.0.0.0", "::", "")
TOLD = (Load, Loads, Sent)
"""What brokers tell of themselves, whatever the fabric is."""
PAUSE_MAX_S = 0.05
"""Between two clients that are sent away, at most."""


def balance_of(config: Config, host: AsyncHost, broker: Broker, links: Links) -> Balance:
    """It tells nobody anything yet; what others say of themselves reaches it, and everything else `host`."""
    options = BalanceOptions(
        redirect=config.balance.redirect is Redirect.BALANCE, clients_max=config.balance.clients_max
    )
    balance = Balance(host, options, partial(_burden, broker), links.up.keys)

    def deliver(sender: NodeId, message: Message) -> None:
        if isinstance(message, TOLD):
            host.run(partial(balance.receive, sender, message))
        else:
            host.deliver(sender, message)

    links.on_message, before = deliver, links.on_linked

    def linked(peer: NodeId) -> None:
        before(peer)
        host.run(partial(balance.linked, peer))

    links.on_linked = linked
    return balance


def _burden(broker: Broker) -> Burden:
    counts = broker.counts
    return Burden(counts.connected, sum(counts.published) + sum(counts.delivered) + counts.forwarded + counts.taken)


def steer_with(balance: Balance, front: Front) -> None:
    """Ask `balance` whether a client is let in."""
    knows = front.broker.knows

    def steer(client: str, follows: bool, over: Transport) -> tuple[Reason, str] | None:
        return balance.refusal(client, known=knows(client), follows=follows, over=over)

    front.steer = steer


def advertise(balance: Balance, config: Config, listening: Iterable[tuple[str, Address]]) -> None:
    """From now on others may send clients to where this broker listens: (kind, address) each."""
    found = list(listening)
    balance.address = config.listen.advertise or _reachable(config, "mqtt", found)
    balance.address_tls = config.listen.advertise_tls or _reachable(config, "mqtts", found)
    balance.address_ws = config.listen.advertise_ws or _url(config, "ws", found)
    balance.address_wss = config.listen.advertise_wss or _url(config, "wss", found)
    told = (balance.address, balance.address_tls, balance.address_ws, balance.address_wss)
    if balance.options.redirect and not any(told):
        log.warning("balance.redirect: other brokers cannot send clients here; say where with listen.advertise")
    balance.start()


def _url(config: Config, kind: str, listening: Iterable[tuple[str, Address]]) -> str:
    where = _reachable(config, kind, listening)
    return f"{kind}://{where}/mqtt" if where else ""


def _reachable(config: Config, kind: str, listening: Iterable[tuple[str, Address]]) -> str:
    """The first of this kind that clients of other brokers may reach: those on this machine, where all are."""
    peers = config.peers.listen
    near = bool(peers) and is_loopback(address(peers, "peers.listen", PORT).host)
    for found, where in listening:
        if found == kind and where.host not in WILDCARDS and (near or not is_loopback(where.host)):
            return str(where)
    return ""


async def drain(balance: Balance, front: Front, drain_s: float) -> None:
    """Send clients to other brokers, one after the other, and stay until their sessions have followed them and nothing
    is left here to be passed on; new ones are sent on. Takes no longer than `drain_s`."""
    now = asyncio.get_running_loop().time
    end = now() + drain_s
    balance.leave()
    connections = list(front.connections)
    sent: set[str] = set()
    for connection in connections:
        sent.add(connection.go_elsewhere(balance.elsewhere))
        await asyncio.sleep(min(PAUSE_MAX_S, drain_s / 2 / len(connections)))
    sent.discard("")
    sessions, shadows = front.broker.sessions, front.broker.shadows
    while now() < end and not sent.isdisjoint(sessions.keys() | shadows.keys()):
        await asyncio.sleep(PAUSE_MAX_S)
    log.info("%d clients were sent to other brokers, and %d sessions are still here", len(sent), len(sessions))

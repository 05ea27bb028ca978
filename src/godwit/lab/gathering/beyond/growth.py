"""The pages of what goes beyond the published sizes: how the ring grows, churn of real cores, recorded movement."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence

import msgspec

from godwit.lab.gathering.beyond.churn import Survived
from godwit.lab.gathering.beyond.recorded import Driven
from godwit.lab.gathering.beyond.scale import Grown
from godwit.lab.pages import Page, Table
from godwit.lab.provenance import Provenance


class Scaled(msgspec.Struct, frozen=True, kw_only=True):
    """What `--scale` measured, as it is kept beside its page."""

    command: str
    made: Provenance
    sizes: Sequence[Grown]
    survived: Survived


class Drives(msgspec.Struct, frozen=True, kw_only=True):
    """What `--data` measured, by the name of the run."""

    command: str
    made: Provenance
    runs: Mapping[str, Driven]


GROWTH: Sequence[tuple[str, Callable[[Grown], str]]] = (
    ("brokers", lambda one: f"{one.brokers:,}"),
    ("clients", lambda one: f"{one.clients:,}"),
    ("peers a broker (most)", lambda one: f"{one.links_mean:.1f} ({one.links_max})"),
    ("hops to a place (most)", lambda one: f"{one.place_hops:.2f} ({one.place_hops_max})"),
    ("hops to a key (most)", lambda one: f"{one.key_hops:.2f} ({one.key_hops_max})"),
    ("cells of an area, radius 1", lambda one: f"{one.cells:.2f}"),
    ("of one that shrinks as they do", lambda one: f"{one.cells_scaled:.2f}"),
    ("home entries a broker", lambda one: f"{one.homes_mean:.1f}"),
    ("most, times the mean", lambda one: f"{one.homes_max / one.homes_mean:.1f}"),
    ("brokers without any", lambda one: f"{one.homes_none:.1%}"),
    ("handoffs", lambda one: f"{one.handoffs:,}"),
    ("handover messages each", lambda one: f"{one.handover_sent:.2f}"),
    ("registering each", lambda one: f"{one.register_sent:.2f}"),
    ("seconds", lambda one: f"{one.wall_s:.0f}"),
    ("of a processor", lambda one: f"{one.cpu_s:.0f}"),
    ("peak memory, MB", lambda one: f"{one.memory_mb:,.0f}"),
)


def scale_page(scaled: Scaled) -> Page:
    rows = [tuple(told(one) for _, told in GROWTH) for one in scaled.sizes]
    note = (
        "Walks as arrays, which tests show equal to the real core's hop by hop up to 1,000 brokers. Clients are spread"
        " evenly; each moves one unit of a square of 100, and a handoff is a client with another nearest broker."
    )
    growth = Table("Growth", note, tuple(name for name, _ in GROWTH), rows)
    return Page("The ring at scale", _lead(scaled), [], [growth, _churned(scaled.survived)])


def _lead(one: Scaled | Drives) -> str:
    return f"Made by `{one.command}`: {one.made}."


def _churned(one: Survived) -> Table:
    rows = [
        ("brokers in the end", f"{one.brokers:,}"),
        ("joined", str(one.joined)),
        ("messages a join", f"{one.join_sent:.0f}"),
        ("regions taken over", str(one.taken_over)),
        ("handoffs", f"{one.handoffs:,}"),
        ("handover messages each", f"{one.handover_sent:.1f}"),
        ("notices wanted", f"{one.wanted:,}"),
        ("notices received", f"{one.received:,}"),
        ("places without exactly one server, of 500", str(one.owners_wrong)),
        ("peers a broker knows", f"{one.peers_mean:.1f}"),
        ("seconds", f"{one.wall_s:.0f}"),
        ("of a processor", f"{one.cpu_s:.0f}"),
    ]
    note = "Real cores with keep-alives and replicas: brokers join at once, brokers crash at once, phones move."
    return Table("Churn with real cores", note, ("", ""), rows)


RECORDED: Sequence[tuple[str, Callable[[Driven], str]]] = (
    ("brokers", lambda one: f"{one.brokers}"),
    ("taxis, sensors, readings", lambda one: f"{one.taxis}, {one.sensors}, {one.events:,}"),
    ("handoffs", lambda one: f"{one.handoffs:,}"),
    ("notices wanted", lambda one: f"{one.wanted:,}"),
    ("lost", lambda one: f"{one.lost}"),
    ("still buffered for taxis out of reach", lambda one: f"{one.buffered:,}"),
    ("hops from a sensor's broker to a taxi's", lambda one: f"{one.hops:.2f}"),
    ("messages a handover, once for each hop", lambda one: f"{one.handover_sent:.2f}"),
    ("registering, or stating interest, the same", lambda one: f"{one.register_sent:.2f}"),
    ("durable items a handover", lambda one: f"{one.items:,.0f}" if one.items else "none"),
    ("subscriptions a broker knows", lambda one: f"{one.stored_mean:.1f}"),
    ("seconds", lambda one: f"{one.wall_s:.0f}"),
    ("of a processor", lambda one: f"{one.cpu_s:.0f}"),
)


def recorded_page(drives: Drives) -> Page:
    rows = [(head, *(told(one) for one in drives.runs.values())) for head, told in RECORDED]
    note = (
        "Ring: the published protocol. Tree: deployed brokers, which keep sessions on disks and their order; reactive"
        " handoffs. The two columns of equal size had the same taxis, readings and brokers. A tree of all brokers would"
        " write 5 n - 2 durable items for each handoff, too many to simulate."
    )
    table = Table("Recorded movement", note, ("", *drives.runs), rows)
    return Page("The ring on recorded movement", _lead(drives), [], [table])


def drawn(sizes: Sequence[Grown]) -> bytes:
    """Hops, peers and messages over the number of brokers."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 4.0), layout="constrained")
    axes = figure.subplots()
    brokers = [one.brokers for one in sizes]
    lines: dict[str, list[float]] = {
        "hops to a place": [one.place_hops for one in sizes],
        "hops to a key": [one.key_hops for one in sizes],
        "handover messages each": [one.handover_sent for one in sizes],
        "registering each": [one.register_sent for one in sizes],
        "peers a broker": [one.links_mean for one in sizes],
    }
    for label, values in lines.items():
        axes.plot(brokers, values, "o-", label=label, ms=4)
    axes.set_xscale("log")
    axes.set_xlabel("brokers")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=110, metadata={"Software": None})
    return out.getvalue()

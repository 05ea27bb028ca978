"""What can be typed: `godwit` and its commands. The work is in `godwit.commands`, imported when a command runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from godwit import __version__
from godwit.commands.lab.experiments import lab
from godwit.commands.neighbors import neighbors
from godwit.commands.pipeline.jobs import jobs

app = typer.Typer(
    name="godwit",
    help="Content-based publish/subscribe for things that move.",
    epilog="Begin with: godwit demo",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
filters = typer.Typer(help="Look into filters.", no_args_is_help=True)
app.add_typer(filters, name="filter")
app.add_typer(lab, name="lab")
app.add_typer(jobs, name="pipeline")
app.add_typer(neighbors, name="neighbors")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"godwit {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and leave.")
    ] = False,
) -> None: ...


@filters.command()
def explain(
    text: Annotated[str, typer.Argument(metavar="FILTER", help="A condition, as in `kind = 'taxi' AND speed > 50`.")],
    against: Annotated[
        str | None, typer.Option(metavar="FILTER", help="Another filter: which covers which, and do they overlap?")
    ] = None,
    event: Annotated[
        str | None, typer.Option(metavar="JSON", help="An event as a flat JSON object: does it match, and if not, why?")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object for programs to read.")] = False,
) -> None:
    """Say what a filter means: its canonical form, how it relates to another, and its Spark SQL condition.

    Examples:

        godwit filter explain "pm25 > 150 AND within(lat, lon, 39.92, 116.42, 5km)"

        godwit filter explain "speed > 50" --against "speed BETWEEN 60 AND 90"

        godwit filter explain "kind IN ('bus', 'tram') OR delay > 300" --event '{"kind": "taxi", "delay": 20}'

    Exit status: 0, or 2 where a filter or the event is not well formed.
    """
    from godwit.commands.console import errors_told
    from godwit.commands.explain import run

    with errors_told():
        run(text, against, event, as_json)


@app.command()
def match(
    subscriptions: Annotated[
        str,
        typer.Argument(
            metavar="SUBS",
            help='JSON lines {"id": ..., "filter": "..."} (.jsonl), Parquet with these columns (.parquet), or one'
            " filter a line (.txt). Without an id the line number is the id.",
        ),
    ],
    events: Annotated[
        str,
        typer.Argument(
            metavar="EVENTS",
            help="Flat JSON lines (.jsonl, or - for stdin), .csv or .tsv with a header, or .parquet, a file or a"
            " directory. Text files may be gzipped (.gz).",
        ),
    ],
    out: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write deliveries to a .jsonl or .parquet file, or - for stdout.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=0, metavar="N", help="Stop after so many events.")] = None,
) -> None:
    """Match every event of one file with every subscription of another, and say who gets what.

    Examples:

        godwit match subscriptions.jsonl events.jsonl

        godwit match wishes.txt flights.parquet --out deliveries.parquet

        zcat readings.jsonl.gz | godwit match alerts.jsonl - --out - | head

    A delivery names the event by its line or row, from 1, and by its `id` where it has one. Nulls, and empty cells of
    CSV, are missing attributes. Timestamps are seen as seconds since 1970.

    Exit status: 0; 1 where some lines were bad and left out; 2 where a file could not be read or written to its end;
    130 after Ctrl-C. In the last two cases what was finished stays beside FILE, in NAME.partial.SUFFIX.
    """
    from godwit.commands.console import errors_told
    from godwit.commands.match.match import run

    with errors_told():
        status = run(subscriptions, events, out, limit)
    raise typer.Exit(status)


@app.command()
def city(
    seconds: Annotated[float, typer.Option(min=0.1, help="How long events stream.")] = 20.0,
    subscriptions: Annotated[int, typer.Option(min=1, help="How many people subscribe.")] = 100_000,
    seed: Annotated[int, typer.Option(help="Another seed, another city.")] = 1,
) -> None:
    """Watch a city's worth of subscriptions being matched, live.

    Taxis drive, sensors measure and people write; each event goes to whoever asked for its content and place. The speed
    is measured as you watch, and a random sample of events is checked against a matcher too simple to be wrong.

    Examples:

        godwit city

        godwit city --seconds 5 --subscriptions 1000000
    """
    from godwit.commands.city.cityshow import run
    from godwit.commands.console import errors_told

    with errors_told():
        status = run(seconds, subscriptions, seed)
    raise typer.Exit(status)


@app.command()
def demo(
    seconds: Annotated[float, typer.Option(min=2, help="How long taxis report.")] = 20.0,
    walkers: Annotated[int, typer.Option(min=1, help="How many people walk from broker to broker.")] = 20,
    seed: Annotated[int, typer.Option(help="Another seed, another town.")] = 1,
) -> None:
    """Watch subscribers roam between three real brokers, one of which is killed, and see whether anything is lost.

    Taxis report where they are; people walk from broker to broker without a word and want some of it, by content and by
    place. The account at the end is drawn up from what was published, what each wanted and what each got.

    Examples:

        godwit demo

        godwit demo --walkers 100 --seconds 40 --seed 7

    Exit status: 0 where nothing was lost, came twice or out of order; 1 where something was.
    """
    from godwit.commands.console import errors_told
    from godwit.commands.demo.demo import run
    from godwit.commands.demo.play import Plan

    with errors_told():
        status = run(Plan(seconds=seconds, walkers=walkers, seed=seed))
    raise typer.Exit(status)


Brokers = Annotated[
    list[str] | None,
    typer.Option("--broker", "-b", metavar="HOST:PORT", help="Where to connect; tried in their order."),
]
ClientName = Annotated[
    str, typer.Option("--client", "-i", metavar="NAME", help="Client id; the same name finds its session anywhere.")
]
User = Annotated[str | None, typer.Option(metavar="NAME", help="The password is taken from GODWIT_PASSWORD.")]
Authority = Annotated[Path | None, typer.Option("--ca", metavar="FILE", help="TLS, trusting this authority.")]
Certificate = Annotated[Path | None, typer.Option("--cert", metavar="FILE", help="Certificate of this client.")]
Key = Annotated[Path | None, typer.Option(metavar="FILE", help="Its key, if it is not in the same file.")]


@app.command()
def pub(
    topic: Annotated[str, typer.Argument(help="Where to publish, as in air/beijing.")],
    payload: Annotated[
        str | None, typer.Argument(help="What; a JSON object can be asked about by content. - reads stdin.")
    ] = None,
    lines: Annotated[
        str | None, typer.Option(metavar="FILE", help="Publish every line of a file (may be .gz; - for stdin).")
    ] = None,
    qos: Annotated[int, typer.Option(min=0, max=2, help="0 at most once, 1 at least once, 2 exactly once.")] = 2,
    retain: Annotated[bool, typer.Option(help="Keep the last one for those who subscribe later.")] = False,
    broker: Brokers = None,
    client: ClientName = "",
    user: User = None,
    ca: Authority = None,
    cert: Certificate = None,
    key: Key = None,
) -> None:
    """Publish; ends when a broker has it safely.

    Examples:

        godwit pub air/beijing '{"station": "Dongsi", "pm25": 163.5}'

        godwit pub fleet/van-7 --lines positions.jsonl.gz --broker 127.0.0.1:1884
    """
    from godwit.commands.console import errors_told
    from godwit.commands.pubsub import Reaching, publish

    with errors_told():
        reaching = Reaching(brokers=broker or [], client=client, user=user, ca=ca, certificate=cert, key=key)
        status = publish(reaching, topic, payload, lines, qos, retain)
    raise typer.Exit(status)


@app.command()
def sub(
    condition: Annotated[str, typer.Argument(metavar="FILTER", help="A condition on the content; none: all.")] = "",
    topic: Annotated[str, typer.Option("--topic", "-t", help="Topic filter.")] = "#",
    qos: Annotated[int, typer.Option(min=0, max=2, help="0 at most once, 1 at least once, 2 exactly once.")] = 2,
    count: Annotated[int | None, typer.Option(min=1, metavar="N", help="Leave after so many.")] = None,
    keep_s: Annotated[
        float,
        typer.Option("--keep", min=0, metavar="S", help="With --client: how long it may be away and miss nothing."),
    ] = 0.0,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
    broker: Brokers = None,
    client: ClientName = "",
    user: User = None,
    ca: Authority = None,
    cert: Certificate = None,
    key: Key = None,
) -> None:
    """Print every event that matches, as it comes.

    Examples:

        godwit sub "pm25 > 150 AND within(lat, lon, 39.92, 116.42, 5km)" --topic 'air/#'

        godwit sub "speed > 50" --client desk --keep 3600 --broker 127.0.0.1:1883 --broker 127.0.0.1:1884
    """
    from godwit.commands.console import errors_told
    from godwit.commands.pubsub import Reaching, listen

    with errors_told():
        reaching = Reaching(
            brokers=broker or [], client=client, user=user, ca=ca, certificate=cert, key=key, keep_s=keep_s
        )
        status = listen(reaching, condition, topic, qos, count, as_json)
    raise typer.Exit(status)


@app.command()
def top(
    address: Annotated[
        str, typer.Argument(metavar="HOST:PORT", help="Where a broker was told to answer with --status.")
    ] = "127.0.0.1:9883",
    every_s: Annotated[float, typer.Option("--every", min=0.1, metavar="S", help="How often to look.")] = 1.0,
    once: Annotated[bool, typer.Option(help="Look once, and leave.")] = False,
) -> None:
    """Look into a running broker: clients, interest, tree, rates.

    Examples:

        godwit top 127.0.0.1:9883
    """
    from godwit.commands.console import errors_told
    from godwit.commands.top import run

    with errors_told():
        status = run(address, every_s, once)
    raise typer.Exit(status)


@app.command()
def password() -> None:
    """Turn a password into what the users file of a broker wants; it is asked for, or read from a pipe."""
    import sys

    from godwit.net.access import hashed

    text = typer.prompt("Password", hide_input=True, confirmation_prompt=True) if sys.stdin.isatty() else input()
    typer.echo(hashed(text))


@app.command()
def serve(
    config: Annotated[
        Path | None, typer.Option("--config", "-c", metavar="FILE", help="A .toml file; flags win over it.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="Of this broker; made up at the first start and kept.")] = None,
    listen: Annotated[
        list[str] | None, typer.Option(metavar="HOST:PORT", help="MQTT over TCP; 127.0.0.1:1883. May be repeated.")
    ] = None,
    mqtts: Annotated[list[str] | None, typer.Option(metavar="HOST:PORT", help="MQTT over TLS.")] = None,
    ws: Annotated[list[str] | None, typer.Option(metavar="HOST:PORT", help="MQTT over WebSocket.")] = None,
    wss: Annotated[list[str] | None, typer.Option(metavar="HOST:PORT", help="MQTT over WebSocket and TLS.")] = None,
    peers_listen: Annotated[str | None, typer.Option(metavar="HOST:PORT", help="Other brokers connect here.")] = None,
    peer: Annotated[
        list[str] | None,
        typer.Option(metavar="HOST:PORT", help="Another broker; it tells of all others. May be repeated."),
    ] = None,
    mdns: Annotated[bool, typer.Option("--mdns", help="Find brokers on the local network.")] = False,
    secret_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="What all brokers of the cluster know and nobody else.")
    ] = None,
    fabric: Annotated[
        list[str] | None,
        typer.Option(metavar="tree|adhoc", help="Links, or UDP broadcast without infrastructure; both: a bridge."),
    ] = None,
    interface: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="adhoc: where to broadcast, as wlan0. May be repeated.")
    ] = None,
    key_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="adhoc: what all nodes in the air know and nobody else.")
    ] = None,
    insecure: Annotated[
        bool, typer.Option("--insecure", help="adhoc: without a key; anybody in range may speak.")
    ] = False,
    data: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where this broker, and no other, remembers.")
    ] = None,
    sync: Annotated[
        str | None, typer.Option(help="process: survive a crash of the broker; power: of the machine too.")
    ] = None,
    handoff: Annotated[
        str | None,
        typer.Option(
            help="How sessions follow clients that move: durable, reactive or proactive, which is the default."
        ),
    ] = None,
    users: Annotated[Path | None, typer.Option(metavar="FILE", help="Who may connect, and may do what.")] = None,
    status: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Metrics, health and status, by HTTP.")
    ] = None,
    archive: Annotated[Path | None, typer.Option(metavar="DIR", help="Keep what is published as Parquet.")] = None,
    archive_listen: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Data jobs elsewhere follow the archive here.")
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Say whether a broker could start like this, and leave.")
    ] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log more.")] = False,
) -> None:
    """Run a broker.

    Examples:

        godwit serve

        godwit serve --name south --listen 127.0.0.1:1884 --peers-listen 127.0.0.1:7002 --peer 127.0.0.1:7001

        godwit serve --config /etc/godwit.toml --check

        godwit serve --fabric adhoc --interface wlan0 --key-file air.key

    SIGTERM or Ctrl-C stops it in order, twice at once; SIGHUP reads users and grants again.

    Exit status: 0 where it was asked to stop; 2 where it cannot start as it is told to.
    """
    from godwit.commands.console import errors_told
    from godwit.commands.serve import run

    given = {
        "name": name,
        "data": data,
        "sync": sync,
        "handoff": handoff,
        "listen.mqtt": listen,
        "listen.mqtts": mqtts,
        "listen.ws": ws,
        "listen.wss": wss,
        "listen.status": status,
        "peers.listen": peers_listen,
        "peers.connect": peer,
        "peers.mdns": mdns or None,
        "peers.secret_file": secret_file,
        "fabric": fabric,
        "adhoc.interfaces": interface,
        "adhoc.key_file": key_file,
        "adhoc.insecure": insecure or None,
        "access.users": users,
        "archive.folder": archive,
        "archive.listen": archive_listen,
    }
    flags = {key: value for key, value in given.items() if value is not None and value != []}
    with errors_told():
        status_code = run(config, flags, check_only=check, verbose=verbose)
    raise typer.Exit(status_code)


@app.command()
def sim(
    scenario: Annotated[Path, typer.Argument(metavar="SCENARIO", help="A .toml file; see examples/scenarios.")],
    seed: Annotated[int, typer.Option(min=0, help="Decides everything that chance decides.")] = 1,
    until: Annotated[float | None, typer.Option(metavar="S", help="Stop at this simulated second.")] = None,
    trace: Annotated[Path | None, typer.Option(metavar="FILE", help="Write every recorded fact as Parquet.")] = None,
    watch: Annotated[bool, typer.Option("--watch", help="Draw nodes, tree and messages as they move.")] = False,
    inspect: Annotated[
        str | None, typer.Option(metavar="NODE", help="Show this broker's tables R and T and queues Q.")
    ] = None,
    animation: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write an .html animation that needs nothing but a browser.")
    ] = None,
) -> None:
    """Play a scenario in virtual time; the same seed always gives the same digest.

    Examples:

        godwit sim examples/scenarios/partition.toml --seed 7

        godwit sim examples/scenarios/walking.toml --watch --inspect b3

        godwit sim examples/scenarios/c8.toml --trace c8.parquet --animation c8.html

        godwit sim examples/ring.toml --watch --animation ring.html

    Exit status: 0; 2 where the scenario or an option is wrong; 130 after Ctrl-C, with the trace up to then.
    """
    from godwit.commands.console import errors_told
    from godwit.commands.sim.sim import Options, run

    with errors_told():
        status = run(
            Options(
                scenario=scenario,
                seed=seed,
                until_s=until,
                trace=trace,
                watch=watch,
                inspect=inspect,
                animation=animation,
            )
        )
    raise typer.Exit(status)


def main() -> None:
    """The console script."""
    app()

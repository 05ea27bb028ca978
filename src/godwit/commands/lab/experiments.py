"""`godwit lab EXPERIMENT --help`: what can be typed for each; `commands.lab.lab` and `.structures` do the work."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from importlib import import_module
from typing import Annotated, Any

import typer

lab = typer.Typer(help="Experiments that reproduce published results.", no_args_is_help=True, rich_markup_mode=None)

Quick = Annotated[bool, typer.Option("--quick", help="Short runs and few cells: some minutes.")]
Seeds = Annotated[int | None, typer.Option(min=1, metavar="N", help="Runs of each cell.")]
Seconds = Annotated[float | None, typer.Option(min=1.0, metavar="S", help="How long is measured.")]
Out = Annotated[str, typer.Option(metavar="DIR", help="Where results and pages go; found again by the next run.")]
ReportOnly = Annotated[bool, typer.Option("--report-only", help="Write the report again, run nothing.")]
OnSpark = Annotated[
    bool | None,
    typer.Option(
        "--spark/--no-spark", help="Runs as tasks of Spark, or one by one. Spark, if all is not over at once."
    ),
]
Master = Annotated[
    str | None, typer.Option(metavar="URL", help="Where Spark runs: local[N], spark://, yarn, k8s://; local[*].")
]
Conf = Annotated[
    list[str] | None, typer.Option("--conf", metavar="NAME=VALUE", help="A setting of Spark; may come several times.")
]


LAB, STRUCTURES = "godwit.commands.lab.lab", "godwit.commands.lab.structures"

FUNCTIONS: dict[str, tuple[str, str]] = {}
"""By the name of an experiment the module and the function that do it, imported when it is run."""


def experiment(name: str, module: str = LAB) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a command of a function that has only a signature and a docstring.

    The function of the same name in the module gets what was typed, by name, with what is about Spark as
    `where`, and returns the exit status.
    """

    def made(signature: Callable[..., None]) -> Callable[..., None]:
        FUNCTIONS[name] = module, signature.__name__

        @wraps(signature)
        def command(**typed: Any) -> None:
            from godwit.commands.console import errors_told

            with errors_told():
                status = function(name)(**_with_where(typed))
            raise typer.Exit(status)

        return lab.command(name)(command)

    return made


def function(name: str) -> Callable[..., int]:
    """What does this experiment, or exit status 2 where a part of the installation is missing."""
    module, attribute = FUNCTIONS[name]
    try:
        found: Callable[..., int] = getattr(import_module(module), attribute)
    except ModuleNotFoundError as missing:
        typer.echo(f"godwit: lab {name} needs {missing.name}, which comes with godwit[lab]", err=True)
        raise typer.Exit(2) from None
    return found


def _with_where(typed: dict[str, Any]) -> dict[str, Any]:
    if "spark" not in typed:
        return typed
    from godwit.commands.pipeline.sweeping import Where

    spark, master, conf = (typed.pop(name) for name in ("spark", "master", "conf"))
    return {**typed, "where": Where(spark=spark, master=master, settings=tuple(conf or ()))}


@experiment("structures", STRUCTURES)
def structures(
    quick: Quick = False,
    only: Annotated[list[str] | None, typer.Option(metavar="E", help="One experiment; may be repeated.")] = None,
    replications: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="In place of the published 10, 60 (E12) and 20 (E13).")
    ] = None,
    seed: Annotated[int, typer.Option(metavar="S", help="Decides all filters and events.")] = 1,
    out: Out = "out/structures",
    spark: OnSpark = None,
    master: Master = None,
    conf: Conf = None,
) -> None:
    """Judge published claims on posets, forests and merging by counting covering operations.

    Examples:

        godwit lab structures --quick

        godwit lab structures --only E1 --only E13 --replications 5 --out results

    DIR gets structures.md (the table shown here, and how it came about), structures.parquet (one row for each structure
    and replication) and the figures. Called again with the same DIR, it runs only what is missing.

    Exit status: 0 whatever the verdicts; 1 where a structure was wrong or another run failed; 2 where DIR cannot be
    used; 130 after Ctrl-C. What had finished is kept and reported on.
    """


@experiment("mft")
def mft(
    quick: Quick = False,
    sizes: Annotated[str | None, typer.Option(metavar="LIST", help="Of 2,4,8,16,32 brokers; all of them.")] = None,
    speeds: Annotated[str | None, typer.Option(metavar="LIST", help="Metres per second; 2,4,6,8,10.")] = None,
    seeds: Seeds = None,
    protocols: Annotated[str | None, typer.Option(metavar="LIST", help="Of mft,hardened,aodv; all of them.")] = None,
    workload: Annotated[str, typer.Option(help="unicast: an event to one subscriber; multicast: to all.")] = "unicast",
    seconds: Annotated[
        float | None, typer.Option(min=1.0, metavar="S", help="How long publishers publish; 500. Then two fifths more.")
    ] = None,
    out: Out = "lab-mft",
    report_only: ReportOnly = False,
    spark: OnSpark = None,
    master: Master = None,
    conf: Conf = None,
) -> None:
    """MFT-PubSub beside AODV: the published grid of sizes and speeds, ten runs of each cell, claim by claim.

    Examples:

        godwit lab mft --quick

        godwit lab mft --sizes 2,8,32 --speeds 2,8 --seeds 3 --out mine

        godwit lab mft --master spark://host:7077

    Writes results.parquet, one row for each run, summary.parquet with confidence intervals, report.html and report.md.
    The same command goes on where an interrupted one stopped: what this version has finished is not run again.

    Exit status: 0, whatever the verdicts are; 1 where runs failed; 2 for bad options; 130 after Ctrl-C.
    """


@experiment("trees")
def compare_trees(
    sizes: Annotated[str | None, typer.Option(metavar="LIST", help="Of 2,4,8,16,32 brokers; 8,16.")] = None,
    speeds: Annotated[str | None, typer.Option(metavar="LIST", help="Metres per second; 4,8.")] = None,
    seeds: Seeds = None,
    seconds: Annotated[
        float | None, typer.Option(min=1.0, metavar="S", help="How long publishers publish; 60. Then two fifths more.")
    ] = None,
    out: Out = "lab-trees",
    spark: OnSpark = None,
    master: Master = None,
    conf: Conf = None,
) -> None:
    """Steadier broker trees beside the published one: migrations, deliveries and messages in the same three worlds.

    Examples:

        godwit lab trees

        godwit lab trees --sizes 8 --speeds 4 --seeds 2

    Exit status: 0; 1 where runs failed; 2 for bad options; 130 after Ctrl-C. The same command goes on where an
    interrupted one stopped.
    """


@experiment("adhoc")
def adhoc(
    quick: Quick = False,
    seeds: Seeds = None,
    seconds: Seconds = None,
    out: Out = "lab-adhoc",
    report_only: ReportOnly = False,
    spark: OnSpark = None,
    master: Master = None,
    conf: Conf = None,
) -> None:
    """Brokers without infrastructure: proximity-driven routing beside gossip, claim by claim, and what goes beyond.

    Ten runs of each setting, 300 s measured, unless told otherwise.

    Examples:

        godwit lab adhoc --quick

        godwit lab adhoc --seeds 5 --seconds 200 --out mine

    Writes results.parquet, one row for each run, summary.parquet with confidence intervals, report.html and report.md.
    The same command goes on where an interrupted one stopped.

    Exit status: 0, whatever the verdicts are; 1 where runs failed; 2 for bad options; 130 after Ctrl-C.
    """


@experiment("convergence")
def convergence(
    seeds: Annotated[int, typer.Option(min=1, metavar="N", help="Trials of each kind.")] = 400,
    out: Out = "lab-convergence",
    spark: OnSpark = None,
    master: Master = None,
    conf: Conf = None,
) -> None:
    """Random moves, splits and merges: do the routing tables converge, rule set by rule set?

    Examples:

        godwit lab convergence

        godwit lab convergence --seeds 40 --out short

    Exit status: 0; 1 where runs failed; 2 for bad options; 130 after Ctrl-C. The same command goes on where an
    interrupted one stopped.
    """


@experiment("handoff")
def handoff(
    quick: Quick = False,
    experiments: Annotated[
        str | None, typer.Option(metavar="LIST", help="Of X1 to X10, X12 and X13, as in X2,X10; all of them.")
    ] = None,
    subscribers: Annotated[str | None, typer.Option(metavar="LIST", help="How many; 10,50,100,150,200.")] = None,
    base: Annotated[
        int | None,
        typer.Option(
            min=1, max=1000, metavar="K", help="How many where something else varies (X4 to X8, X12, X13); 200."
        ),
    ] = None,
    seeds: Seeds = None,
    schemes: Annotated[
        str | None,
        typer.Option(
            metavar="LIST",
            help="Of durable,reactive,proactive,ours,memory and, if asked for, literal,home,prefetch,announced,oracle.",
        ),
    ] = None,
    seconds: Seconds = None,
    out: Out = "lab-handoff",
    report_only: ReportOnly = False,
    deployed: Annotated[
        bool, typer.Option("--deployed", help="X2 and X10 with real brokers and clients on this machine; 10 minutes.")
    ] = False,
    spark: OnSpark = None,
    master: Master = None,
    conf: Conf = None,
) -> None:
    """Durable, reactive and pro-active handoff in one testbed: the published experiments, claim by claim.

    Five runs of each cell, 300 s measured, unless told otherwise.

    Examples:

        godwit lab handoff --quick

        godwit lab handoff --experiments X2,X10 --subscribers 10,100 --seeds 2 --out mine

        godwit lab handoff --deployed --quick --out deployed

    Writes results.parquet, one row for each run, summary.parquet with confidence intervals, report.html and report.md.
    The same command goes on where an interrupted one stopped: what this version has finished is not run again.

    Exit status: 0, whatever the verdicts are; 1 where runs failed; 2 for bad options; 130 after Ctrl-C.
    """


@experiment("races")
def races(
    seeds: Annotated[int, typer.Option(min=1, metavar="N", help="Runs of each cell.")] = 100,
    out: Out = "lab-races",
    spark: OnSpark = None,
    master: Master = None,
    conf: Conf = None,
) -> None:
    """Moves faster than messages: what each set of handoff rules loses, repeats and leaves behind.

    Examples:

        godwit lab races --seeds 5

    Exit status: 0; 1 where runs failed; 2 for bad options; 130 after Ctrl-C. The same command goes on where an
    interrupted one stopped.
    """


@experiment("gathering", "godwit.commands.lab.gathering")
def gathering(
    quick: Quick = False,
    sizes: Annotated[str | None, typer.Option(metavar="LIST", help="Brokers; 8,16,24,32,40,48,56,64.")] = None,
    seeds: Seeds = None,
    defects: Annotated[
        bool, typer.Option("--defects", help="Only races and joins: what each rule of the protocol repairs.")
    ] = False,
    scale: Annotated[
        bool, typer.Option("--scale", help="Only growth: up to 10,000 brokers and a million clients; 1,000 real ones.")
    ] = False,
    data: Annotated[
        str | None, typer.Option(metavar="DIR", help="Only recorded movement: taxis, cells, stations and readings.")
    ] = None,
    minutes: Annotated[float, typer.Option(min=1.0, metavar="M", help="How much of the recording.")] = 30.0,
    out: Out = "lab-gathering",
    report_only: ReportOnly = False,
    spark: OnSpark = None,
    master: Master = None,
    conf: Conf = None,
) -> None:
    """Sensors and phones over a ring of brokers: the published experiments and baselines, claim by claim.

    Ten maps of each size, digits of 1, 2 and 4 bits, 1000 requests each, unless told otherwise.

    Examples:

        godwit lab gathering --quick

        godwit lab gathering --sizes 8,24,64 --seeds 5 --out mine

        godwit lab gathering --defects --out defects

        godwit lab gathering --scale --out scale

    Writes results.parquet, one row for each run, report.html and report.md; --defects, --scale and --data write their
    own tables.
    The same command goes on where an interrupted one stopped: what this version has finished is not run again.

    Exit status: 0, whatever the verdicts are; 1 where runs failed; 2 for bad options; 130 after Ctrl-C.
    """


@experiment("recorded", "godwit.commands.lab.recorded")
def recorded(
    moves: Annotated[str, typer.Argument(metavar="DIR", help="What `godwit pipeline mobility --out DIR` wrote.")],
    learn: Annotated[
        float, typer.Option(min=0.0, metavar="H", help="Brokers learn habits from the first H hours.")
    ] = 24,
    skip: Annotated[float, typer.Option(min=0.0, metavar="H", help="Hours left out between the two.")] = 0,
    hours: Annotated[float, typer.Option(min=0.01, metavar="H", help="How much is measured.")] = 1,
    out: Out = "lab-recorded",
    spark: OnSpark = None,
    master: Master = None,
    conf: Conf = None,
) -> None:
    """Handoff schemes on recorded movement: what they lose, how fast they are, and how many stand-ins they need.

    Examples:

        godwit lab recorded moves --learn 24 --skip 8 --hours 1

    Exit status: 0; 1 where runs failed; 2 for bad options; 130 after Ctrl-C. The same command goes on where an
    interrupted one stopped.
    """


@experiment("models")
def models() -> None:
    """The analytical models of handoff: costs, bounds, populations and throughput, beside the printed numbers.

    Examples:

        godwit lab models > models.md
    """

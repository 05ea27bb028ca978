"""`godwit lab EXPERIMENT --help`: a struct of what can be typed and a function for each; the work is imported late."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from godwit.commands.command import Json, command

if TYPE_CHECKING:
    from godwit.commands.pipeline.sweeping import Where

lab = typer.Typer(help="Experiments that reproduce published results.", no_args_is_help=True, rich_markup_mode=None)

Quick = Annotated[bool, typer.Option("--quick", help="Short runs and few cells: some minutes.")]
Seeds = Annotated[int | None, typer.Option(min=1, metavar="N", help="Runs of each cell.", show_default="as published")]
Seconds = Annotated[
    float | None, typer.Option(min=1.0, metavar="S", help="How long is measured.", show_default="as published")
]
Out = Annotated[str, typer.Option(metavar="DIR", help="Where results and pages go; found again by the next run.")]
ReportOnly = Annotated[bool, typer.Option("--report-only", help="Write the report again, run nothing.")]


class SparkOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Who runs, and who reads what comes of it: options that all sweeps share."""

    spark: Annotated[
        bool | None,
        typer.Option(
            "--spark/--no-spark",
            help="Runs as tasks of Spark, or one by one.",
            show_default="Spark, if all is not over at once",
        ),
    ] = None
    master: Annotated[
        str | None,
        typer.Option(
            metavar="URL", help="Where Spark runs: local[N], spark://, yarn, k8s://, sc://.", show_default="local[*]"
        ),
    ] = None
    conf: Annotated[
        list[str] | None,
        typer.Option("--conf", metavar="NAME=VALUE", help="A setting of Spark. May be repeated."),
    ] = None
    as_json: Json = False

    @property
    def where(self) -> Where:
        from godwit.commands.pipeline.sweeping import Where

        return Where(spark=self.spark, master=self.master, settings=tuple(self.conf or ()))


class EverythingOptions(msgspec.Struct, frozen=True, kw_only=True):
    only: Annotated[
        list[str] | None, typer.Option(metavar="STUDY", help="One study. May be repeated.", show_default="all")
    ] = None
    size: Annotated[str, typer.Option(help="quick: minutes; short: an hour of a core; published: many.")] = "short"
    out: Out = "results"
    plan: Annotated[bool, typer.Option("--plan", help="Say what would be run and what it would cost; run nothing.")] = (
        False
    )
    report_only: ReportOnly = False
    any_code: Annotated[
        bool, typer.Option("--any-code", help="Rows that other code left count too; the pages say which code it was.")
    ] = False
    vouch: Annotated[
        bool,
        typer.Option("--vouch", help="Run some rows of other code again; where all are equal, its other rows count."),
    ] = False
    documents: Annotated[
        str | None, typer.Option(metavar="DIR", help="Also write the pages as Markdown, as in docs/results.")
    ] = None
    where: SparkOptions = SparkOptions()


@command(lab, "all", extra="lab")
def everything(options: EverythingOptions) -> int:
    """Every published claim: run all studies, and write one site with all verdicts.

    Examples:

        godwit lab all --plan --size published

        godwit lab all --out results

        godwit lab all --only handoff --size published --master spark://host:7077

        godwit lab all --size published --vouch --out results

    DIR gets index.html with every claim and its verdict, a page for each study, and STUDY/results.parquet with one row
    for each run. The same command goes on where an interrupted one stopped. Rows of other code are not reused, unless
    --vouch has found them equal to what this code gives, or --any-code asks for them as they are.

    Exit status: 0, whatever the verdicts are; 1 where runs failed; 2 for bad options; 130 after Ctrl-C.
    """
    from godwit.commands.lab import everything as work

    return work.everything(options)


class LastingOptions(msgspec.Struct, frozen=True, kw_only=True):
    quick: Quick = False
    out: Out = "lab-lasting"
    report_only: ReportOnly = False
    where: SparkOptions = SparkOptions()


@command(lab, "lasting", extra="lab")
def lasting(options: LastingOptions) -> int:
    """What it costs that things and questions both last: the double forest, plain and with bounds, beside sets.

    Examples:

        godwit lab lasting --quick

        godwit lab lasting --out lasting

    DIR gets index.html with the verdicts on C20 to C23, a page with the tables, and lasting/results.parquet. The same
    command goes on where an interrupted one stopped; without --quick it takes about ten minutes of a core.

    Exit status: 0, whatever the verdicts are; 1 where runs failed; 2 for bad options; 130 after Ctrl-C.
    """
    from godwit.commands.lab import everything as work

    size = "quick" if options.quick else "published"
    return work.everything(
        EverythingOptions(
            only=["lasting"], size=size, out=options.out, report_only=options.report_only, where=options.where
        )
    )


class StructuresOptions(msgspec.Struct, frozen=True, kw_only=True):
    quick: Quick = False
    only: Annotated[
        list[str] | None, typer.Option(metavar="E", help="One experiment. May be repeated.", show_default="all")
    ] = None
    seeds: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", help="Runs of each cell.", show_default="as published: 10; 60 of E12, 20 of E13"
        ),
    ] = None
    seed: Annotated[int, typer.Option(metavar="SEED", help="Decides all filters and events.")] = 1
    out: Out = "out/structures"
    where: SparkOptions = SparkOptions()


@command(lab, "structures", extra="lab")
def structures(options: StructuresOptions) -> int:
    """Judge published claims on posets, forests and merging by counting covering operations.

    Examples:

        godwit lab structures --quick

        godwit lab structures --only E1 --only E13 --seeds 5 --out results

    DIR gets structures.md (the table shown here, and how it came about), structures.parquet (one row for each structure
    and replication) and the figures. Called again with the same DIR, it runs only what is missing.

    Exit status: 0 whatever the verdicts; 1 where a structure was wrong or another run failed; 2 where DIR cannot be
    used; 130 after Ctrl-C. What had finished is kept and reported on.
    """
    from godwit.commands.lab import structures as work

    return work.structures(options)


class MftOptions(msgspec.Struct, frozen=True, kw_only=True):
    quick: Quick = False
    sizes: Annotated[
        str | None, typer.Option(metavar="LIST", help="Of 2,4,8,16,32 brokers.", show_default="all of them")
    ] = None
    speeds: Annotated[
        str | None, typer.Option(metavar="LIST", help="Metres per second.", show_default="2,4,6,8,10")
    ] = None
    seeds: Seeds = None
    protocols: Annotated[
        str | None, typer.Option(metavar="LIST", help="Of mft,hardened,aodv.", show_default="all of them")
    ] = None
    workload: Annotated[str, typer.Option(help="unicast: an event to one subscriber; multicast: to all.")] = "unicast"
    seconds: Annotated[
        float | None,
        typer.Option(
            min=1.0, metavar="S", help="How long publishers publish; then two fifths more.", show_default="500"
        ),
    ] = None
    out: Out = "lab-mft"
    report_only: ReportOnly = False
    where: SparkOptions = SparkOptions()


@command(lab, "mft", extra="lab")
def mft(options: MftOptions) -> int:
    """MFT-PubSub beside AODV: the published grid of sizes and speeds, ten runs of each cell, claim by claim.

    Examples:

        godwit lab mft --quick

        godwit lab mft --sizes 2,8,32 --speeds 2,8 --seeds 3 --out mine

        godwit lab mft --master spark://host:7077

    Writes results.parquet, one row for each run, summary.parquet with confidence intervals, report.html and report.md.
    The same command goes on where an interrupted one stopped: what this version has finished is not run again.

    Exit status: 0, whatever the verdicts are; 1 where runs failed; 2 for bad options; 130 after Ctrl-C.
    """
    from godwit.commands.lab import lab as work

    return work.mft(options)


class CompareTreesOptions(msgspec.Struct, frozen=True, kw_only=True):
    sizes: Annotated[str | None, typer.Option(metavar="LIST", help="Of 2,4,8,16,32 brokers.", show_default="8,16")] = (
        None
    )
    speeds: Annotated[str | None, typer.Option(metavar="LIST", help="Metres per second.", show_default="4,8")] = None
    seeds: Seeds = None
    seconds: Annotated[
        float | None,
        typer.Option(
            min=1.0, metavar="S", help="How long publishers publish; then two fifths more.", show_default="60"
        ),
    ] = None
    out: Out = "lab-trees"
    where: SparkOptions = SparkOptions()


@command(lab, "trees", extra="lab")
def compare_trees(options: CompareTreesOptions) -> int:
    """Steadier broker trees beside the published one: migrations, deliveries and messages in the same three worlds.

    Examples:

        godwit lab trees

        godwit lab trees --sizes 8 --speeds 4 --seeds 2

    Exit status: 0; 1 where runs failed; 2 for bad options; 130 after Ctrl-C. The same command goes on where an
    interrupted one stopped.
    """
    from godwit.commands.lab import lab as work

    return work.compare_trees(options)


class AdhocOptions(msgspec.Struct, frozen=True, kw_only=True):
    quick: Quick = False
    seeds: Seeds = None
    seconds: Seconds = None
    out: Out = "lab-adhoc"
    report_only: ReportOnly = False
    where: SparkOptions = SparkOptions()


@command(lab, "adhoc", extra="lab")
def adhoc(options: AdhocOptions) -> int:
    """Brokers without infrastructure: proximity-driven routing beside gossip, claim by claim, and what goes beyond.

    Ten runs of each setting, 300 s measured, unless told otherwise.

    Examples:

        godwit lab adhoc --quick

        godwit lab adhoc --seeds 5 --seconds 200 --out mine

    Writes results.parquet, one row for each run, summary.parquet with confidence intervals, report.html and report.md.
    The same command goes on where an interrupted one stopped.

    Exit status: 0, whatever the verdicts are; 1 where runs failed; 2 for bad options; 130 after Ctrl-C.
    """
    from godwit.commands.lab import lab as work

    return work.adhoc(options)


class ConvergenceOptions(msgspec.Struct, frozen=True, kw_only=True):
    seeds: Annotated[int, typer.Option(min=1, metavar="N", help="Trials of each kind.")] = 400
    out: Out = "lab-convergence"
    where: SparkOptions = SparkOptions()


@command(lab, "convergence", extra="lab")
def convergence(options: ConvergenceOptions) -> int:
    """Random moves, splits and merges: do the routing tables converge, rule set by rule set?

    Examples:

        godwit lab convergence

        godwit lab convergence --seeds 40 --out short

    Exit status: 0; 1 where runs failed; 2 for bad options; 130 after Ctrl-C. The same command goes on where an
    interrupted one stopped.
    """
    from godwit.commands.lab import lab as work

    return work.convergence(options)


class HandoffOptions(msgspec.Struct, frozen=True, kw_only=True):
    quick: Quick = False
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="E", help="One experiment, of X1 to X10, X12 and X13. May be repeated.", show_default="all"
        ),
    ] = None
    subscribers: Annotated[
        str | None, typer.Option(metavar="LIST", help="How many.", show_default="10,50,100,150,200")
    ] = None
    base: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=1000,
            metavar="K",
            help="How many where something else varies (X4 to X8, X12, X13).",
            show_default="200",
        ),
    ] = None
    seeds: Seeds = None
    schemes: Annotated[
        str | None,
        typer.Option(
            metavar="LIST",
            help="Of durable,reactive,proactive,ours,memory,literal,home,prefetch,announced,oracle.",
            show_default="the first five",
        ),
    ] = None
    seconds: Seconds = None
    out: Out = "lab-handoff"
    report_only: ReportOnly = False
    deployed: Annotated[
        bool, typer.Option("--deployed", help="X2 and X10 with real brokers and clients on this machine; 10 minutes.")
    ] = False
    where: SparkOptions = SparkOptions()


@command(lab, "handoff", extra="lab")
def handoff(options: HandoffOptions) -> int:
    """Durable, reactive and pro-active handoff in one testbed: the published experiments, claim by claim.

    Five runs of each cell, 300 s measured, unless told otherwise.

    Examples:

        godwit lab handoff --quick

        godwit lab handoff --only X2 --only X10 --subscribers 10,100 --seeds 2 --out mine

        godwit lab handoff --deployed --quick --out deployed

    Writes results.parquet, one row for each run, summary.parquet with confidence intervals, report.html and report.md.
    The same command goes on where an interrupted one stopped: what this version has finished is not run again.

    Exit status: 0, whatever the verdicts are; 1 where runs failed; 2 for bad options; 130 after Ctrl-C.
    """
    from godwit.commands.lab import lab as work

    return work.handoff(options)


class RacesOptions(msgspec.Struct, frozen=True, kw_only=True):
    seeds: Annotated[int, typer.Option(min=1, metavar="N", help="Runs of each cell.")] = 100
    out: Out = "lab-races"
    where: SparkOptions = SparkOptions()


@command(lab, "races", extra="lab")
def races(options: RacesOptions) -> int:
    """Moves faster than messages: what each set of handoff rules loses, repeats and leaves behind.

    Examples:

        godwit lab races --seeds 5

    Exit status: 0; 1 where runs failed; 2 for bad options; 130 after Ctrl-C. The same command goes on where an
    interrupted one stopped.
    """
    from godwit.commands.lab import lab as work

    return work.races(options)


class GatheringOptions(msgspec.Struct, frozen=True, kw_only=True):
    quick: Quick = False
    sizes: Annotated[
        str | None, typer.Option(metavar="LIST", help="Brokers.", show_default="8,16,24,32,40,48,56,64")
    ] = None
    seeds: Seeds = None
    defects: Annotated[
        bool, typer.Option("--defects", help="Only races and joins: what each rule of the protocol repairs.")
    ] = False
    scale: Annotated[
        bool, typer.Option("--scale", help="Only growth: up to 10,000 brokers and a million clients; 1,000 real ones.")
    ] = False
    data: Annotated[
        str | None, typer.Option(metavar="DIR", help="Only recorded movement: taxis, cells, stations and readings.")
    ] = None
    minutes: Annotated[float, typer.Option(min=1.0, metavar="M", help="How much of the recording.")] = 30.0
    out: Out = "lab-gathering"
    report_only: ReportOnly = False
    where: SparkOptions = SparkOptions()


@command(lab, "gathering", extra="lab")
def gathering(options: GatheringOptions) -> int:
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
    from godwit.commands.lab import gathering as work

    return work.gathering(options)


class RelocationOptions(msgspec.Struct, frozen=True, kw_only=True):
    quick: Quick = False
    seeds: Seeds = None
    handovers: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Moves of each run.", show_default="100")
    ] = None
    trials: Annotated[
        bool, typer.Option("--trials", help="Only random trials: which ways to move lose events, which networks do.")
    ] = False
    out: Out = "lab-relocation"
    report_only: ReportOnly = False
    where: SparkOptions = SparkOptions()


@command(lab, "relocation", extra="lab")
def relocation(options: RelocationOptions) -> int:
    """Subscribers that move in a routing network: every published way, its cost, its latency, and what it loses.

    Ten topologies of a hundred brokers, a hundred moves each, replayed by each protocol; beside them random trials of
    every safe and unsafe variant, and the deployed handoff.

    Examples:

        godwit lab relocation --quick

        godwit lab relocation --seeds 3 --handovers 40 --out mine

        godwit lab relocation --trials --out trials

    Writes results.parquet, one row for each run, report.html and report.md; --trials writes trials.md.
    The same command goes on where an interrupted one stopped: what this version has finished is not run again.

    Exit status: 0, whatever the verdicts are; 1 where runs failed; 2 for bad options; 130 after Ctrl-C.
    """
    from godwit.commands.lab import relocation as work

    return work.relocation(options)


class RecordedOptions(msgspec.Struct, frozen=True, kw_only=True):
    moves: Annotated[str, typer.Argument(metavar="DIR", help="What `godwit pipeline mobility --out DIR` wrote.")]
    learn: Annotated[float, typer.Option(min=0.0, metavar="H", help="Brokers learn habits from the first H hours.")] = (
        24
    )
    skip: Annotated[float, typer.Option(min=0.0, metavar="H", help="Hours left out between the two.")] = 0
    hours: Annotated[float, typer.Option(min=0.01, metavar="H", help="How much is measured.")] = 1
    out: Out = "lab-recorded"
    where: SparkOptions = SparkOptions()


@command(lab, "recorded", extra="lab")
def recorded(options: RecordedOptions) -> int:
    """Handoff schemes on recorded movement: what they lose, how fast they are, and how many stand-ins they need.

    Examples:

        godwit lab recorded moves --learn 24 --skip 8 --hours 1

    Exit status: 0; 1 where runs failed; 2 for bad options; 130 after Ctrl-C. The same command goes on where an
    interrupted one stopped.
    """
    from godwit.commands.lab import recorded as work

    return work.recorded(options)


class ModelsOptions(msgspec.Struct, frozen=True, kw_only=True):
    as_json: Json = False


@command(lab, "models", extra="lab")
def models(options: ModelsOptions) -> int:
    """The analytical models of handoff: costs, bounds, populations and throughput, beside the printed numbers.

    Examples:

        godwit lab models > models.md

        godwit lab models --json
    """
    from godwit.commands.lab import lab as work

    return work.models(options)

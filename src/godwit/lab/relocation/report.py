"""What a plan's runs have shown: claims with verdicts, table 5.4 beside ours, costs, trials, the deployed handoff."""

from __future__ import annotations

from collections.abc import Sequence

from godwit.lab.intervals import Interval
from godwit.lab.pages import Page, Table
from godwit.lab.relocation.evidence import Evidence, direct, latency, signalling
from godwit.lab.relocation.networks import WIRINGS
from godwit.lab.relocation.plan import DEPLOYED_BROKERS, TABLE
from godwit.lab.relocation.runs import DEPLOYED, FILTERS, MOBILITY, PROTOCOLS, Configuration, Result
from godwit.lab.relocation.trials import VARIANTS
from godwit.lab.relocation.verdicts import PUBLISHED_MS, findings, uppers


def page(evidence: Evidence, rows: int, command: str) -> Page:
    plan = evidence.plan
    lead = (
        f"{'The quick plan: few seeds and short runs, a first look. ' if plan.quick else ''}{rows} of"
        f" {len(plan.runs())} runs of real protocol cores; intervals of 95 % over topologies. Made by `{command}`."
    )
    if plan.only_trials:
        return Page("Moves and networks, tried at random", lead, [], [trials(evidence), networks(evidence)])
    tables = [_latencies(evidence), _costs(evidence), _subscribers(evidence), _publishers(evidence), deployed(evidence)]
    return Page(
        "Relocation in routing networks", lead, findings(evidence), [*tables, trials(evidence), networks(evidence)]
    )


def _told(mean: Interval | None) -> str:
    return "" if mean is None else str(mean)


def _latencies(evidence: Evidence) -> Table:
    rows = []
    for protocol in PROTOCOLS:
        told = "{} ± {}".format(*PUBLISHED_MS[protocol]) if protocol in PUBLISHED_MS else ""
        means = [_told(evidence.mean(latency, evidence.plan.cell(protocol, mobility))) for mobility in MOBILITY]
        spread = _told(evidence.mean(lambda one: 1000 * one.latency_std_s, evidence.plan.cell(protocol)))
        rows.append((protocol, told, means[0], spread, means[1]))
    note = (
        "Milliseconds from the client's arrival until all that it missed is there; ours with the interval of the mean,"
        " and beside it the deviation of single handovers, which is what was published."
    )
    header = ("protocol", "table 5.4", "ours, border", "deviation", "ours, full")
    return Table("Latency", note, header, rows)


def _costs(evidence: Evidence) -> Table:
    rows: list[Sequence[str]] = []
    for protocol in PROTOCOLS:
        cells = [evidence.plan.cell(protocol, mobility, filters) for filters in FILTERS for mobility in MOBILITY]
        bound = uppers(evidence, protocol, cells[0]) if protocol in TABLE else ""
        withdrawn = evidence.mean(lambda one: one.withdrawals, cells[0])
        rows.append(
            (
                protocol,
                *(_told(evidence.mean(signalling, cell)) for cell in cells),
                bound,
                _told(withdrawn),
                _told(evidence.mean(direct, cells[0])),
            )
        )
    note = (
        "Messages a handover that install or ask for something. Left out, as in the bounds: withdrawals, which stand"
        " beside, and the transfer itself. 'Direct': the share of handovers that no broker in between heard of."
    )
    header = (
        "protocol",
        "one, border",
        "one, full",
        "ranges, border",
        "ranges, full",
        "bound",
        "withdrawals",
        "direct",
    )
    return Table("Cost", note, header, rows)


def _curve(evidence: Evidence, cells: Sequence[Configuration]) -> Sequence[str]:
    return [_told(evidence.mean(signalling, cell)) for cell in cells]


def _subscribers(evidence: Evidence) -> Table:
    plan = evidence.plan
    rows = [
        (
            protocol,
            filters,
            *_curve(evidence, [plan.cell(protocol, "border", filters, subscribers=n) for n in plan.subscribers]),
        )
        for protocol in TABLE
        for filters in FILTERS
    ]
    header = ("protocol", "want", *map(str, plan.subscribers))
    return Table("E8: more subscribers", "Messages a handover between border brokers.", header, rows)


def _publishers(evidence: Evidence) -> Table:
    plan = evidence.plan
    rows = [
        (protocol, *_curve(evidence, [plan.cell(protocol, publishers=n) for n in plan.publishers]))
        for protocol in TABLE
    ]
    note = "Messages a handover between border brokers, 50 subscribers."
    return Table("E9: more publishers", note, ("protocol", *map(str, plan.publishers)), rows)


def deployed(evidence: Evidence) -> Table:
    rows = []
    for protocol in (*PROTOCOLS, *DEPLOYED):
        cell = evidence.plan.small(protocol)
        if evidence.results(cell):
            kinds = [signalling, _withdrawals, _transfers, latency, _flaws]
            rows.append((protocol, *(_told(evidence.mean(kind, cell)) for kind in kinds)))
    note = (
        f"The same scripts at {DEPLOYED_BROKERS} brokers, a size that the deployed tree is made for. Of its messages"
        " those count that carry something from broker to broker, each hop, during a handover; heartbeats and"
        " confirmations do not. Its promises are wider: order, restarts and partitions are covered too. In a ring"
        " the links are those that its brokers keep, each as slow as the network below; a message takes several."
    )
    header = ("protocol", "signalling", "withdrawals", "transfers", "latency ms", "flaws")
    return Table("The deployed handoff beside the published ones", note, header, rows)


def _withdrawals(result: Result) -> float:
    return result.withdrawals


def _transfers(result: Result) -> float:
    return result.transfers


def _flaws(result: Result) -> float:
    return float(result.flaws)


def trials(evidence: Evidence) -> Table:
    rows = []
    for name, variant in VARIANTS.items():
        bad, runs = evidence.trials(name)
        if runs:
            rows.append((name, "safe" if variant.safe else "unsafe", f"{bad} of {runs:,}", variant.published))
    note = (
        "Random trees of 3 to 8 brokers, 3 subscribers and 2 publishers, 8 moves and 30 events within 15 mean delays. A"
        " trial is bad if an event is lost, comes twice, or somebody waits for ever. The spec's simulator was another."
    )
    return Table("Ways to move, tried", note, ("way to move", "", "bad", "the spec counted"), rows)


def networks(evidence: Evidence) -> Table:
    rows = []
    for name in WIRINGS:
        bad, runs = evidence.trials(name)
        if runs:
            messages = sum(one.messages for one in evidence.results(evidence.plan.trial(name)))
            rows.append((name, f"{bad} of {runs:,}", f"{messages / runs:,.0f}"))
    note = (
        "Random trees of 3 to 8 brokers, 60 operations while 60 events are published, and then one event of each kind"
        " from everywhere. Bad: not what flooding gives, a link that holds something else, or an event missed then."
    )
    return Table("Networks, tried", note, ("network", "bad", "messages a tree"), rows)

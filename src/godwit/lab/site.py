"""All studies as one site: an index of every claim with its verdict, a page a study, and the raw rows beside them.

The same content goes to `docs/results` as Markdown. Both are functions of rows: nothing in them is written by hand.
"""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

import msgspec

from godwit.lab.claims import Finding, Verdict
from godwit.lab.pages import STYLE, class_of, html_table, markdown_table
from godwit.lab.studies import Outcome, Study, origins

TITLE = "Godwit: every published claim, measured again"
MEANINGS = {
    Verdict.REPRODUCED: "holds, with the interval on its side",
    Verdict.NOT_REPRODUCED: "fails, with power enough to say so",
    Verdict.DEPENDS: "holds for some values of something that the text does not report",
    Verdict.NOT_DECIDABLE: "the runs that there are cannot tell; the page says what is missing and what it costs",
    Verdict.ARITHMETIC: "published constants give the published digits; nothing is measured",
}


HOLDS = {True: "holds", False: "fails", None: "open"}


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """A study with the rows that there are and what it says about them."""

    study: Study
    rows: Sequence[Any]
    outcome: Outcome
    size: str
    wanted: int

    @property
    def command(self) -> str:
        """What gives this page again."""
        return f"godwit lab all --only {self.study.name} --size {self.size} --out results"

    @property
    def counts(self) -> Counter[Verdict]:
        return Counter(finding.verdict for finding in self.outcome.findings)

    @property
    def origin(self) -> str:
        found = origins(self.rows)
        commits = ", ".join(dict.fromkeys(one.commit for one in found))
        codes = ", ".join(dict.fromkeys(one.code for one in found))
        machines = "; ".join(dict.fromkeys(one.machine for one in found))
        mixed = " Rows of several codes are mixed here." if len({one.code for one in found}) > 1 else ""
        return f"commits {commits}; code {codes}; {machines}.{mixed}"


def told(study: Study, kept: Any, size: str) -> Told | None:
    """None where no run of this size is there."""
    wanted = study.runs(size)
    rows = kept.of(wanted)
    return (
        Told(study=study, rows=rows, outcome=study.outcome(rows, size), size=size, wanted=len(wanted)) if rows else None
    )


def write(folder: Path, every: Sequence[Told]) -> list[Path]:
    """The HTML site; the raw Parquet is where the runs left it, in a folder a study."""
    pages = [_written(folder / f"{one.study.name}.html", page(one)) for one in every]
    return [_written(folder / "index.html", index(every)), *pages]


def _written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def _document(title: str, body: str, *, home: bool = False) -> str:
    nav = "" if home else '<nav><a href="index.html">all claims</a></nav>'
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>{escape(title)}</title><style>{STYLE}</style>{nav}<h1>{escape(title)}</h1>{body}</html>\n"
    )


def index(every: Sequence[Told]) -> str:
    total = sum((one.counts for one in every), Counter[Verdict]())
    specs = [(one.study.spec, *_numbers(one.counts)) for one in every]
    claims = "".join(_index_rows(one) for one in every)
    body = (
        f"<p>{sum(total.values())} statements of {len(every)} studies.</p>{_counted(total)}"
        f"<h2>By specification</h2>{html_table(('specification', *Verdict, 'all'), specs)}"
        f"<h2>What the verdicts mean</h2>{html_table(('verdict', 'means'), list(MEANINGS.items()))}"
        '<h2>All claims</h2><table class="claims index"><thead><tr><th>specification</th><th>claim</th>'
        "<th>published</th><th>verdict</th>"
        f"</tr></thead><tbody>{claims}</tbody></table>"
    )
    return _document(TITLE, body, home=True)


def _numbers(counts: Mapping[Verdict, int]) -> list[str]:
    return [*(str(counts.get(verdict, 0)) for verdict in Verdict), str(sum(counts.values()))]


def _counted(counts: Mapping[Verdict, int]) -> str:
    return '<p class="counts">' + "".join(
        f'<span class="{class_of(verdict)}"><b>{counts.get(verdict, 0)}</b> {verdict}</span>' for verdict in Verdict
    ) + "</p>"  # fmt: skip


def _index_rows(one: Told) -> str:
    name = one.study.name
    return "".join(
        f'<tr><td>{escape(one.study.spec)}</td><td><a href="{name}.html#c{i}">{escape(finding.claim.name)}</a></td>'
        f"<td>{escape(finding.claim.text)}</td>{_verdict_cell(finding)}</tr>"
        for i, finding in enumerate(one.outcome.findings)
    )


def page(one: Told) -> str:
    outcome = one.outcome
    pictures = "".join(
        f'<figure><img alt="{escape(caption)}" src="data:image/png;base64,{base64.b64encode(png).decode()}">'
        f"<figcaption>{escape(caption)}</figcaption></figure>"
        for caption, png in outcome.figures().items()
    )
    tables = "".join(
        f"<h2>{escape(table.title)}</h2><p>{escape(table.note)}</p>{html_table(table.header, table.rows)}"
        for table in outcome.tables
    )
    body = (
        f"<p>{escape(outcome.lead)}</p>{_counted(one.counts)}"
        f"<p>Run it again: <code>{escape(one.command)}</code>. Seeds: {escape(outcome.seeds)}. {len(one.rows)} of"
        f" {one.wanted} rows are there: {escape(one.origin)} Raw:"
        f' <a href="{one.study.name}/results.parquet">{one.study.name}/results.parquet</a>.</p>'
        '<h2>Claims</h2><table class="claims"><thead><tr><th>claim</th><th>published</th><th>verdict</th>'
        "<th>numbers</th></tr></thead>"
        f"<tbody>{''.join(_claim_row(i, finding) for i, finding in enumerate(outcome.findings))}</tbody></table>"
        f"<h2>Figures</h2>{pictures}{tables}"
        f"<h2>Parameters</h2>{html_table(('parameter', 'value', 'source'), _parameters(outcome))}"
    )
    return _document(one.study.title, body)


def _parameters(outcome: Outcome) -> list[tuple[str, str, str]]:
    return [(one.name, one.value, one.source) for one in outcome.parameters]


def _verdict_cell(finding: Finding) -> str:
    """The verdict itself stands out; what it hangs on or lacks follows in plain letters."""
    head, colon, rest = finding.told.partition(": ")
    plain = f'<span class="rest">{escape(colon + rest)}</span>' if rest else ""
    return f'<td class="{class_of(finding.verdict)}">{escape(head)}{plain}</td>'


def _claim_row(number: int, finding: Finding) -> str:
    claim = finding.claim
    beside = f"<details><summary>tolerance</summary>{escape(claim.place)}: {escape(claim.tolerance)}</details>"
    curve = ""
    if finding.depends is not None:
        points = [(p.at, HOLDS[p.holds], p.numbers) for p in finding.depends.curve]
        curve = f"<details><summary>curve</summary>{html_table((finding.depends.on, '', 'numbers'), points)}</details>"
    return (
        f'<tr id="c{number}"><td>{escape(claim.name)}</td><td>{escape(claim.text)}{beside}</td>'
        f"{_verdict_cell(finding)}"
        f'<td class="numbers">{escape(finding.numbers)}{curve}</td></tr>'
    )


GENERATED = "<!-- Generated by `godwit lab all --documents`; do not edit. -->"


def documents(every: Sequence[Told]) -> dict[str, str]:
    """The same as Markdown, by file name, without figures."""
    found = {"index.md": _index_markdown(every)}
    for one in every:
        found[f"{one.study.name}.md"] = _page_markdown(one)
    return found


def _index_markdown(every: Sequence[Told]) -> str:
    total = sum((one.counts for one in every), Counter[Verdict]())
    specs = [
        (
            f"[{one.study.spec}]({one.study.name}.md)",
            *(str(one.counts[v]) for v in Verdict),
            str(sum(one.counts.values())),
        )
        for one in every
    ]
    specs.append(("all", *(str(total[v]) for v in Verdict), str(sum(total.values()))))
    parts = [
        f"# {TITLE.removeprefix('Godwit: ').capitalize()}",
        GENERATED,
        "A claim has one of five verdicts. What was to be run was [fixed before](../experiment-plan.md).",
        markdown_table(("specification", *Verdict, "all"), specs),
        markdown_table(("verdict", "means"), list(MEANINGS.items())),
    ]
    for one in every:
        rows = [(finding.claim.name, finding.claim.text, finding.told) for finding in one.outcome.findings]
        parts += [f"## {one.study.title}", markdown_table(("claim", "published", "verdict"), rows)]
    return "\n\n".join(parts) + "\n"


def _page_markdown(one: Told) -> str:
    outcome = one.outcome
    claims = [(f.claim.name, f.claim.text, f.told, f.numbers, f.claim.tolerance) for f in outcome.findings]
    parts = [
        f"# {one.study.title}",
        GENERATED,
        outcome.lead,
        f"Run it again with `{one.command}`. Seeds: {outcome.seeds}. {len(one.rows)} of {one.wanted} rows are there:"
        f" {one.origin}",
        "## Claims",
        markdown_table(("claim", "published", "verdict", "numbers", "tolerance"), claims),
        *_curves(outcome.findings),
    ]
    for table in outcome.tables:
        parts += [f"## {table.title}", table.note, markdown_table(table.header, table.rows)]
    parts += ["## Parameters", markdown_table(("parameter", "value", "source"), _parameters(outcome))]
    return "\n\n".join(parts) + "\n"


def _curves(found: Sequence[Finding]) -> list[str]:
    rows = [
        (finding.claim.name, finding.depends.on, point.at, HOLDS[point.holds])
        for finding in found
        if finding.depends is not None
        for point in finding.depends.curve
    ]
    if not rows:
        return []
    return ["## On what they depend", markdown_table(("claim", "depends on", "at", ""), rows)]

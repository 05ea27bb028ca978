"""All studies as one site: an index of every claim with its verdict, a page a study, and the raw rows beside them.

The same content goes to `docs/results` as Markdown. Both are functions of rows: nothing in them is written by hand.
"""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from html import escape
from pathlib import Path
from typing import Any

import msgspec

from godwit.lab import vouchers
from godwit.lab.claims import Finding, Point, Verdict
from godwit.lab.pages import STYLE, class_of, curves, html_table, markdown_table
from godwit.lab.studies import SIZES, Awaited, Outcome, Study, duration, origins
from godwit.lab.vouchers import Voucher

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
    smaller: Told | None = None
    """The next smaller size that has rows, if claims were taken from there."""
    vouchers: Sequence[Voucher] = ()
    """What is known of rows of several codes beside one another."""

    @property
    def command(self) -> str:
        """What gives this page again."""
        return f"godwit lab all --only {self.study.name} --size {self.size} --out results"

    @property
    def sizes(self) -> list[Told]:
        """This and those that claims were taken from."""
        return [self, *(self.smaller.sizes if self.smaller is not None else ())]

    @property
    def all_rows(self) -> list[Any]:
        return [row for one in self.sizes for row in one.rows]

    @property
    def share(self) -> str:
        """How many of the runs that its plans want are there."""
        return ", ".join(f"{one.runs} of {one.wanted} runs of size {one.size}" for one in self.sizes)

    @property
    def runs(self) -> int:
        return len(set(map(self.study.ran, self.rows)))

    @property
    def counts(self) -> Counter[Verdict]:
        return Counter(finding.verdict for finding in self.outcome.findings)

    @property
    def cost_s(self) -> float:
        """What all that its plans want would take."""
        return sum(self.study.cost_s(run) for one in self.sizes for run in self.study.runs(one.size))

    @property
    def again(self) -> list[str]:
        """What gives this page: smaller sizes first, since the last command writes it."""
        return [one.command for one in reversed(self.sizes)]

    @property
    def raw(self) -> str:
        """Where its rows are, from where the page is."""
        return f"{self.study.name}/results.parquet"

    @property
    def origin(self) -> dict[str, str]:
        """What made the rows, and what is known of those of other code."""
        found = origins(self.all_rows)
        codes = list(dict.fromkeys(one.code for one in found))
        mixed = " Rows of several codes are mixed here." if len(codes) > 1 else ""
        vouched = "".join(f" {one}" for one in self.vouchers if one.code in codes)
        return {
            "seeds": self.outcome.seeds,
            "runs that are there": self.share,
            "the whole plan takes": f"about {duration(self.cost_s)} of a core",
            "commits": ", ".join(dict.fromkeys(one.commit for one in found)),
            "code": f"{', '.join(codes)}.{mixed}{vouched}",
            "machine": "; ".join(dict.fromkeys(one.machine for one in found)),
        }


def told(study: Study, kept: Any, size: str) -> Told | None:
    """Each claim from the largest size up to this one that decides it; None where no run of any is there."""
    own = _told(study, kept, size)
    return msgspec.structs.replace(own, vouchers=vouchers.read(kept.path.parent)) if own is not None else None


def _told(study: Study, kept: Any, size: str) -> Told | None:
    place = SIZES.index(size)
    wanted = study.runs(size)
    rows = kept.of(wanted)
    if not rows:
        return _told(study, kept, SIZES[place - 1]) if place else None
    own = Told(study=study, rows=rows, outcome=study.outcome(rows, size), size=size, wanted=len(wanted))
    smaller = _told(study, kept, SIZES[place - 1]) if place and own.counts[Verdict.NOT_DECIDABLE] else None
    return _with_smaller(own, smaller) if smaller is not None else own


def _with_smaller(own: Told, smaller: Told) -> Told:
    """A size that was run in part leaves open what a smaller one has decided."""
    beside = {finding.claim: finding for finding in smaller.outcome.findings}
    findings = [_larger(finding, beside.get(finding.claim), smaller.size) for finding in own.outcome.findings]
    if findings == list(own.outcome.findings):
        return own
    tables = [msgspec.structs.replace(t, title=_of_size(t.title, smaller.size)) for t in smaller.outcome.tables]
    both = zip(findings, own.outcome.findings, strict=True)
    taken = [finding.claim.name for finding, before in both if finding != before]
    outcome = msgspec.structs.replace(
        own.outcome,
        lead=f"{own.outcome.lead} This size leaves {', '.join(taken)} open: they are taken from size {smaller.size}.",
        findings=findings,
        tables=[*own.outcome.tables, *tables],
        figures=partial(_both, own, smaller),
    )
    return msgspec.structs.replace(own, outcome=outcome, smaller=smaller)


def _both(own: Told, smaller: Told) -> Mapping[str, bytes]:
    beside = {_of_size(caption, smaller.size): png for caption, png in smaller.outcome.figures().items()}
    return {**own.outcome.figures(), **beside}


def _of_size(title: str, size: str) -> str:
    """Unless it names a size already, which is then a smaller one."""
    return title if "(size " in title else f"{title} (size {size})"


def _larger(own: Finding, smaller: Finding | None, size: str) -> Finding:
    if own.verdict is not Verdict.NOT_DECIDABLE or smaller is None or smaller.verdict is Verdict.NOT_DECIDABLE:
        return own
    prefix = "" if smaller.numbers.startswith("size ") else f"size {size}: "
    return msgspec.structs.replace(smaller, numbers=prefix + smaller.numbers)


def write(folder: Path, every: Sequence[Told], known: Sequence[Awaited] = ()) -> list[Path]:
    """The HTML site; the raw Parquet is where the runs left it, in a folder a study."""
    pages = [_written(folder / f"{one.study.name}.html", page(one)) for one in every]
    return [_written(folder / "index.html", index(every, known)), *pages]


def _written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def _document(title: str, body: str, *, home: bool = False) -> str:
    nav = "" if home else '<nav><a href="index.html">all claims</a></nav>'
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>{escape(title)}</title><style>{STYLE}</style>{nav}<h1>{escape(title)}</h1>{body}</html>\n"
    )


def awaited(every: Sequence[Told], known: Sequence[Awaited]) -> list[Awaited]:
    """Those of them that nothing here judges; a study that is in the catalogue may simply not have been asked for."""
    judged = {(one.study.spec, finding.claim.name) for one in every for finding in one.outcome.findings}
    return [one for one in known if (one.spec, one.name) not in judged]


def index(every: Sequence[Told], known: Sequence[Awaited] = ()) -> str:
    total = sum((one.counts for one in every), Counter[Verdict]())
    specs = "".join(_spec_row(one) for one in every)
    head = "".join(f"<th>{escape(name)}</th>" for name in ("specification", "study", *Verdict, "all"))
    claims = "".join(_index_rows(one) for one in every)
    body = (
        f"<p>{sum(total.values())} statements of {len({one.study.spec for one in every})} published works, run again in"
        f" {len(every)} studies. The number of a claim leads to what was found, the name of a study to all of it.</p>"
        f"{_counted(total)}"
        f"<h2>By specification</h2><table><thead><tr>{head}</tr></thead><tbody>{specs}</tbody></table>"
        f"<h2>What the verdicts mean</h2>{html_table(('verdict', 'means'), list(MEANINGS.items()))}"
        '<h2>All claims</h2><table class="claims index"><thead><tr><th>specification</th><th>claim</th>'
        "<th>published</th><th>verdict</th>"
        f"</tr></thead><tbody>{claims}</tbody></table>"
    )
    if repaired := _repaired(every):
        body += f"<h2>Judges that were repaired</h2><p>{REPAIRED}</p>{html_table(REPAIRED_HEADER, repaired)}"
    if dropped := _left_out(every):
        body += f"<h2>Left out</h2><p>{LEFT_OUT}</p>{html_table(LEFT_OUT_HEADER, dropped)}"
    if waiting := awaited(every, known):
        body += f"<h2>Judged elsewhere</h2><p>{ELSEWHERE}</p>{html_table(AWAITED_HEADER, _awaited_rows(waiting))}"
    return _document(TITLE, body, home=True)


REPAIRED = "Earlier verdicts on these were wrong, or not worth having, for the reason beside them."
REPAIRED_HEADER = ("specification", "claim", "published", "its judge", "verdict now")


def _repaired(every: Sequence[Told]) -> list[tuple[str, ...]]:
    return [
        (one.study.spec, finding.claim.name, finding.claim.text, finding.claim.was, finding.verdict.value)
        for one in every
        for finding in one.outcome.findings
        if finding.claim.was
    ]


LEFT_OUT = "These are not judged, and in none of the counts."
LEFT_OUT_HEADER = ("specification", "claim", "published", "why it is left out")


def _left_out(every: Sequence[Told]) -> list[tuple[str, ...]]:
    return [(told.study.spec, one.name, one.text, one.why) for told in every for one in told.outcome.left_out]


ELSEWHERE = "No rows are here for these; each names the study that judges it. They are in none of the counts."
AWAITED_HEADER = ("specification", "claim", "published", "study")


def _awaited_rows(waiting: Sequence[Awaited]) -> list[tuple[str, ...]]:
    return [(one.spec, one.name, one.text, one.study) for one in waiting]


def _numbers(counts: Mapping[Verdict, int]) -> list[str]:
    return [*(str(counts.get(verdict, 0)) for verdict in Verdict), str(sum(counts.values()))]


def _counted(counts: Mapping[Verdict, int]) -> str:
    return '<p class="counts">' + "".join(
        f'<span class="{class_of(verdict)}"><b>{counts.get(verdict, 0)}</b> {verdict}</span>' for verdict in Verdict
    ) + "</p>"  # fmt: skip


def _spec_row(one: Told) -> str:
    link = f'<a href="{one.study.name}.html">{escape(one.study.title)}</a>'
    counts = "".join(f"<td>{number}</td>" for number in _numbers(one.counts))
    return f"<tr><td>{escape(one.study.spec)}</td><td>{link}</td>{counts}</tr>"


def _index_rows(one: Told) -> str:
    name = one.study.name
    return "".join(
        f'<tr><td>{escape(one.study.spec)}</td><td><a href="{name}.html#c{i}">{escape(finding.claim.name)}</a></td>'
        f"<td>{escape(finding.claim.text)}</td>{_verdict_cell(finding)}</tr>"
        for i, finding in enumerate(one.outcome.findings)
    )


def page(one: Told) -> str:
    outcome = one.outcome
    pictures = "".join(_figure(*both) for both in {**outcome.figures(), **curves(outcome.findings)}.items())
    tables = "".join(
        f"<h2>{escape(table.title)}</h2><p>{escape(table.note)}</p>{html_table(table.header, table.rows)}"
        for table in outcome.tables
    )
    body = (
        f"<p>{escape(outcome.lead)}</p>{_counted(one.counts)}{_how(one)}"
        '<h2>Claims</h2><table class="claims"><thead><tr><th>claim</th><th>published</th><th>verdict</th>'
        "<th>numbers</th></tr></thead>"
        f"<tbody>{''.join(_claim_row(i, finding) for i, finding in enumerate(outcome.findings))}</tbody></table>"
        f"<h2>Figures</h2>{pictures}{tables}"
        f"<h2>Parameters</h2>{html_table(('parameter', 'value', 'source'), _parameters(outcome))}"
    )
    return _document(one.study.title, body)


def _figure(caption: str, png: bytes) -> str:
    """A picture of many panels has the whole width; its own is in the head of the file."""
    wide = ' class="wide"' if int.from_bytes(png[16:20]) > WIDE_PX else ""
    return (
        f'<figure{wide}><img alt="{escape(caption)}" src="data:image/png;base64,{base64.b64encode(png).decode()}">'
        f"<figcaption>{escape(caption)}</figcaption></figure>"
    )


WIDE_PX = 900


def _how(one: Told) -> str:
    """What it takes to have this page again, and where it comes from."""
    commands = "<br>".join(f"<code>{escape(command)}</code>" for command in one.again)
    rows = {
        "run it again": commands,
        **{name: escape(text) for name, text in one.origin.items()},
        "raw rows": f'<a href="{one.raw}">{one.raw}</a>',
    }
    lines = "".join(f"<tr><th>{name}</th><td>{text}</td></tr>" for name, text in rows.items())
    return f'<table class="how"><tbody>{lines}</tbody></table>'


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
        f'<td class="numbers">{escape(finding.numbers).replace("; ", ";<br>")}{curve}</td></tr>'
    )


GENERATED = "<!-- Generated by `godwit lab all --documents`; do not edit. -->"


def documents(every: Sequence[Told], known: Sequence[Awaited] = ()) -> dict[str, str]:
    """The same as Markdown, by file name, without figures."""
    found = {"index.md": _index_markdown(every, known)}
    for one in every:
        found[f"{one.study.name}.md"] = _page_markdown(one)
    return found


def _index_markdown(every: Sequence[Told], known: Sequence[Awaited]) -> str:
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
        f"{sum(total.values())} statements, each with one of five verdicts: {_told_counts(total)}. What was to be run"
        " was [fixed before](../experiment-plan.md).",
        markdown_table(("specification", *Verdict, "all"), specs),
        markdown_table(("verdict", "means"), list(MEANINGS.items())),
    ]
    for one in every:
        rows = [(finding.claim.name, finding.claim.text, finding.told) for finding in one.outcome.findings]
        parts += [f"## {one.study.title}", markdown_table(("claim", "published", "verdict"), rows)]
    if repaired := _repaired(every):
        parts += ["## Judges that were repaired", REPAIRED, markdown_table(REPAIRED_HEADER, repaired)]
    if dropped := _left_out(every):
        parts += ["## Left out", LEFT_OUT, markdown_table(LEFT_OUT_HEADER, dropped)]
    if waiting := awaited(every, known):
        parts += ["## Judged elsewhere", ELSEWHERE, markdown_table(AWAITED_HEADER, _awaited_rows(waiting))]
    return "\n\n".join(parts) + "\n"


def _told_counts(counts: Mapping[Verdict, int]) -> str:
    return ", ".join(f"{counts.get(verdict, 0)} {verdict}" for verdict in Verdict)


def _page_markdown(one: Told) -> str:
    outcome = one.outcome
    claims = [(f.claim.name, f.claim.text, f.told, f.numbers, f.claim.tolerance) for f in outcome.findings]
    parts = [
        f"# {one.study.title}",
        GENERATED,
        outcome.lead,
        f"Run it again with {', then '.join(f'`{command}`' for command in one.again)}.",
        markdown_table(("", ""), [*one.origin.items(), ("raw rows", f"[{one.raw}]({one.raw})")]),
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
        (finding.claim.name, finding.depends.on, point.at, HOLDS[point.holds], _margins(point))
        for finding in found
        if finding.depends is not None
        for point in finding.depends.curve
    ]
    if not rows:
        return []
    header = ("claim", "depends on", "at", "", "smallest margin")
    return ["## On what they depend", markdown_table(header, rows)]


def _margins(point: Point) -> str:
    """The part that decides, or what else there is to say."""
    if not point.margins:
        return point.numbers if len(point.numbers) <= SHORT else ""
    least = min(point.margins, key=lambda margin: margin.by.mean)
    return f"{least.of} {least.by}"


SHORT = 100
"""Characters; longer numbers are on the HTML page."""

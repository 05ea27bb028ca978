"""A trial as a sequence of messages: lines of text, and an HTML picture with a lane for each client and broker."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path

from godwit.sim.exploration.findings import Finding
from godwit.sim.exploration.plan import Plan
from godwit.sim.exploration.trial import Note, Trial, Verdict

LANE_PX, ROW_PX, LEFT_PX, TOP_PX = 250, 22, 90, 46
NOTES_MAX = 1_500
LABEL_MAX = 42

STYLE = """
body { font: 14px system-ui, sans-serif; margin: 24px; color: #1d2433; background: #fff }
h1 { font-size: 20px; margin: 0 0 4px } p { margin: 4px 0; max-width: 900px; line-height: 1.45 }
.finding { color: #a3171b; font-weight: 600 }
svg { margin-top: 16px } text { font: 11px ui-monospace, monospace; fill: #1d2433 }
text { paint-order: stroke; stroke: #fff; stroke-width: 3px }
.lane { stroke: #c9d0dc } .name { font-weight: 700; font-size: 13px }
.client { stroke: #1769c2 } .broker { stroke: #3f7d3a }
.time { fill: #78829a } .fault { fill: #a3171b; font-weight: 600 }
.band { fill: #fdecec } details { margin: 12px 0 } li { font: 12px ui-monospace, monospace }
"""


def told(plan: Plan, verdict: Verdict, story: Sequence[Note]) -> str:
    """As text: what was found, what was done, and who said what to whom."""
    lines = [headline(plan, verdict), *(f"  {finding}" for finding in verdict.findings), "", "what was done"]
    lines += [f"  {step.at_s:8.3f} s  {described(step)}" for step in plan.steps]
    lines += ["", "what was said"]
    lines += [f"  {note.time_s:8.3f} s  {_line(note)}" for note in story]
    return "\n".join(lines) + "\n"


def headline(plan: Plan, verdict: Verdict) -> str:
    return (
        f"seed {plan.seed}, {plan.fabric}, {plan.handoff}: {len(plan.brokers)} brokers, {len(plan.clients)} clients,"
        f" {len(plan.steps)} steps, sessions waited for {plan.session_wait_s:g} s;"
        f" {len(verdict.findings)} findings"
    )


def described(step: object) -> str:
    fields = {name: getattr(step, name) for name in type(step).__struct_fields__ if name != "at_s"}  # type: ignore[attr-defined]
    return f"{type(step).__name__.lower()} " + " ".join(f"{key}={_plain(value)}" for key, value in fields.items())


def _plain(value: object) -> str:
    return "+".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _line(note: Note) -> str:
    return f"{note.who} -> {note.to}: {note.text}" if note.to else f"[{note.who} {note.text}]"


def page(plan: Plan, verdict: Verdict, story: Sequence[Note]) -> str:
    """As HTML that needs nothing but a browser. Long stories show their end: that is where it went wrong."""
    shown = list(story)[-NOTES_MAX:]
    lanes = [*plan.brokers, *(card.name for card in plan.clients)]
    before = len(story) - len(shown)
    left_out = f"<p>{before:,} messages before these are left out.</p>" if before else ""
    findings = "".join(f'<p class="finding">{escape(str(finding))}</p>' for finding in verdict.findings)
    steps = "".join(f"<li>{step.at_s:.3f} s {escape(described(step))}</li>" for step in plan.steps)
    return (
        f"<!doctype html><html lang='en'><meta charset='utf-8'><title>Exploration {plan.seed}</title>"
        f"<style>{STYLE}</style><h1>Exploration of seed {plan.seed}</h1><p>{escape(headline(plan, verdict))}</p>"
        f"{findings}<details open><summary>What was done, {len(plan.steps)} steps</summary><ol>{steps}</ol></details>"
        f"{left_out}{_picture(lanes, shown)}</html>\n"
    )


def _picture(lanes: Sequence[str], story: Sequence[Note]) -> str:
    at = {name: LEFT_PX + number * LANE_PX + 40 for number, name in enumerate(lanes)}
    height, width = TOP_PX + ROW_PX * (len(story) + 1), LEFT_PX + LANE_PX * len(lanes) + 120
    parts = [
        f"<svg width='{width}' height='{height}' role='img' aria-label='sequence of messages'>"
        "<defs><marker id='tip' viewBox='0 0 8 8' refX='7' refY='4' markerWidth='7' markerHeight='7' orient='auto'>"
        "<path d='M0 0 L8 4 L0 8 z' fill='#5b6478'/></marker></defs>"
    ]
    for name, x in at.items():
        parts.append(f"<line class='lane' x1='{x}' x2='{x}' y1='{TOP_PX - 12}' y2='{height}'/>")
        parts.append(f"<text class='name' x='{x}' y='20' text-anchor='middle'>{escape(name)}</text>")
    for row, note in enumerate(story):
        parts.append(_drawn(at, TOP_PX + ROW_PX * row + 10, note))
    return "".join(parts) + "</svg>"


def _drawn(at: dict[str, int], y: int, note: Note) -> str:
    time = f"<text class='time' x='4' y='{y + 4}'>{note.time_s:.3f} s</text>"
    text = escape(note.text if len(note.text) <= LABEL_MAX else note.text[: LABEL_MAX - 1] + "…")
    here = at.get(note.who, LEFT_PX)
    if not note.to:
        band = f"<rect class='band' x='{LEFT_PX}' y='{y - 10}' width='{LANE_PX * len(at)}' height='{ROW_PX - 2}'/>"
        return f"{band}{time}<text class='fault' x='{here + 6}' y='{y + 4}'>{escape(note.who)} {text}</text>"
    there = at.get(note.to, here)
    side = "broker" if note.who.startswith("b") and note.to.startswith("b") else "client"
    middle, tip = (here + there) / 2, there - 5 if there > here else there + 5
    return (
        f"{time}<line class='{side}' x1='{here}' x2='{tip}' y1='{y + 3}' y2='{y + 3}' marker-end='url(#tip)'/>"
        f"<text x='{middle}' y='{y - 1}' text-anchor='middle'>{text}<title>{escape(note.text)}</title></text>"
    )


def write(plan: Plan, stem: Path) -> Verdict:
    """Carry the plan out once more, watched, and write STEM.txt and STEM.html."""
    trial = Trial(plan, watched=True)
    verdict = trial.run()
    story = trial.story or []
    stem.with_suffix(".txt").write_text(told(plan, verdict, story), encoding="utf-8")
    stem.with_suffix(".html").write_text(page(plan, verdict, story), encoding="utf-8")
    return verdict


__all__ = ["Finding", "headline", "page", "told", "write"]

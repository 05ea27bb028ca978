"""What goes wrong for reasons that the user can change, and what to tell of errors that come from far away."""

from __future__ import annotations

import re


class PipelineError(Exception):
    """The job cannot go on: the message names what, where and what would be right."""


class SchemaError(PipelineError):
    """A dataset lacks a column, or has it in another type: the message names the file and the column."""


_TRACEBACK = re.compile(r"Traceback \(most recent call last\):\n(?:[ \t].*\n)+((?:(?!\tat )\S.*(?:\n|$))+)")
_OWN = re.compile(r"^(?:\S+: )?godwit\.[\w.]+Error: ((?:.|\n)*)$")


def reason(told: str) -> str:
    """What an error of a worker said, whole, out of the traces of all the machines that it went through."""
    raised = [found.strip() for found in _TRACEBACK.findall(told) if found.strip()]
    own = [match.group(1).strip() for one in raised if (match := _OWN.match(one))]
    if own:
        return " ".join(own[-1].split("\n"))
    if raised:
        return " ".join(raised[-1].split("\n"))
    plain = re.findall(r"^(?:\S+: )?godwit\.[\w.]+Error: (.*)$", told, re.MULTILINE)
    return plain[-1] if plain else (told.strip().splitlines() or ["Spark failed"])[0]

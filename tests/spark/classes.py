"""Spark's classes for Javas of tests that are killed, and could leave none themselves (`godwit.pipeline.classes`)."""

from __future__ import annotations

from godwit.pipeline import classes
from godwit.pipeline.session import java


def kept() -> str:
    """What a Java is told that takes those that another one has left; nothing where there are none."""
    taken = java()
    told = "" if taken is None else classes.option(taken)
    return told if told.startswith(classes.TAKING) else ""

"""What goes wrong for reasons that the user can change."""

from __future__ import annotations


class PipelineError(Exception):
    """The job cannot go on: the message names what, where and what would be right."""


class SchemaError(PipelineError):
    """A dataset lacks a column, or has it in another type: the message names the file and the column."""

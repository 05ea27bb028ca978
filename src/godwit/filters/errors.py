"""The one error of this package's callers."""

from __future__ import annotations


class FilterError(ValueError):
    """A filter that cannot be: the message names what is wrong and what would be right."""

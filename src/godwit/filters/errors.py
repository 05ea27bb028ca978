"""The one error of this package's callers."""

from __future__ import annotations

from godwit.errors import GodwitError


class FilterError(GodwitError, ValueError):
    """A filter that cannot be: the message names what is wrong and what would be right."""

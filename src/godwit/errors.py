"""The one family of errors: whoever catches `GodwitError` has them all."""

from __future__ import annotations


class GodwitError(Exception):
    """What was asked for cannot be, or not now; the text names what was wrong and what would be right."""

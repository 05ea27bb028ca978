"""Filters made fewer: merging rules and what a broker states of its interest."""

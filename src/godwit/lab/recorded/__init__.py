"""Handoff schemes on recorded movement: one stretch of time to learn from, another to be measured in."""

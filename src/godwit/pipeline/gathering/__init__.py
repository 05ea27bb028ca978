"""Readings of sensors by areas and windows of time."""

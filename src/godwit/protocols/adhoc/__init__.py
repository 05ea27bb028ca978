"""Protocols that need no infrastructure at all, only whoever is within earshot."""

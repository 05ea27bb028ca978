"""Experiments and the claims they check."""

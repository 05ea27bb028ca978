"""Pastry: a ring of names on which every key has one node in charge, reached in a logarithmic number of hops."""

"""Temporal subspace matching on trial (spec content-routing 2.12, E10 and E11): what it costs that both things and
questions last."""

"""Clients that move in routing networks: the published evaluation, trials of every variant, the deployed handoff."""

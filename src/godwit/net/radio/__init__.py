"""Brokers over one-hop datagrams: antenna, fragments, seals."""

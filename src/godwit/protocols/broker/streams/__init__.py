"""Numbered streams from broker to broker: in order, once, kept until confirmed."""

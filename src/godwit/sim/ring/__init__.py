"""Brokers on a ring in the simulator: the network below them, the world, and a scenario that can be watched."""

"""State machines without I/O: what brokers, clients and radios say, and what they do when they hear it."""

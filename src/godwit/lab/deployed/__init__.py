"""Real broker processes and real clients that move among them, on one machine."""

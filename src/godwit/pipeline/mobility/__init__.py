"""How subscribers move, and what a broker can learn from it."""

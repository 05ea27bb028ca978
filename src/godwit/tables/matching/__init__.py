"""Which filters an event matches: the compiled index and its baselines."""

"""The published evaluation of data gathering over a ring, its baselines, and what goes beyond."""

"""The analytical models of spec proactive-handoff 3: pure functions from parameters to numbers."""

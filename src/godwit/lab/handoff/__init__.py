"""The published evaluation of handoff schemes, run again (spec proactive-handoff 4)."""

"""The words in which changes are told: names of user properties, and signs."""

CHANGE = "lasting"
NUMBER = "lasting-number"
VIEW = "lasting-view"
PENDING = "lasting-pending"
BECAUSE = "lasting-because"
MATCHES = "lasting-matches"
REPLAYED = "replayed"
"""Of what comes from an archive: when it was published."""
OURS = (CHANGE, NUMBER, VIEW, PENDING, BECAUSE)
"""User properties that only the broker says."""

APPEARED, CHANGED, GONE = "+", "~", "-"

"""Filters ordered by covering: the poset and the forests of the specification."""

"""Experiment grids on Spark."""

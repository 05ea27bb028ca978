"""Whole-system fault exploration: a seed makes a plan, a trial carries it out, judges outside say what was wrong."""

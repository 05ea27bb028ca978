"""Traces -> delivery figures."""

"""Radios beyond the plain one: with the slots of 802.11, and with a battery."""

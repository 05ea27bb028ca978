"""Data gathering over a ring of brokers: subscriptions live where their area is, and follow their clients.

`docs/ring.md` has the glossary, the message table and the pictures.
"""

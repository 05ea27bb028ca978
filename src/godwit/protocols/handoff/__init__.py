"""Subscribers that change brokers: durable, reactive and pro-active schemes, without I/O (spec proactive-handoff 2)."""

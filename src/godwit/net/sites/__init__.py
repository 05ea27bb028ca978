"""Uplinks to other sites, and to MQTT brokers of others (docs/sites.md)."""

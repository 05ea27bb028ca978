"""How a session moves from broker to broker; docs/broker.md is its protocol page."""

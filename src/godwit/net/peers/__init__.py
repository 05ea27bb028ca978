"""Links between brokers: finding, greeting, framing, keeping up."""

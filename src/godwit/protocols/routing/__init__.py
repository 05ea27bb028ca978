"""How brokers carry events to whoever wants them: Simple Routing, Phoenix, the recursive approach, MFT-PubSub."""

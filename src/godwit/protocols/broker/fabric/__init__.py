"""What carries events between brokers: the tree, the air, and a bridge between them."""

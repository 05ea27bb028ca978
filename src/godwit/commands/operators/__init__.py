"""Commands of those who run brokers and log in to them."""

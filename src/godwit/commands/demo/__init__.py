"""`godwit demo`: people who roam between three real brokers."""

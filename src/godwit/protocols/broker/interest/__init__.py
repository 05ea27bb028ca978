"""Who wants what: local subscriptions, what is stated to other brokers, what was heard from them."""

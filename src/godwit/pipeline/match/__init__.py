"""Events x subscriptions -> deliveries."""

"""What operators look at: status, metrics, and the services around a broker."""

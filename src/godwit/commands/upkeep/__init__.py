"""Around a broker: what is done before it starts, and what scripts ask while it runs."""

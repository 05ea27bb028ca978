"""The filter algebra: what can be said about events, and which saying includes which."""

"""`godwit demo --matching`: a city of subscriptions, and how fast it is matched."""

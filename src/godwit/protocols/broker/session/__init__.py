"""One client at one broker: its state, its queue, its rows on the disk."""

"""The published evaluation of proximity-driven routing beside gossip (spec manet-cbr 3 and 4), and what goes beyond."""

"""Where clients go from here: the neighbor graph, foresight and nearness."""

"""What clients that move cost a hierarchical network: the doubling of its capacity that the text quotes (C30)."""

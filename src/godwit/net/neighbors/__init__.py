"""The neighbor graph as files: read, written, left for a running broker."""

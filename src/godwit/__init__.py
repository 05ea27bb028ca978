"""Content-based publish/subscribe for things that move."""

"""Commands for what lasts: query, get, collect."""

"""Arrays and machine code under the index: what it knows, how it is filed, and how events are matched against it."""

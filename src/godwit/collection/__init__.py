"""Collections: objects with a context, queries that gather them, and folders in step (spec content-routing 2.13)."""

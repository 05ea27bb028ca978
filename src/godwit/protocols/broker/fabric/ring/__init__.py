"""The ring fabric (docs/ring.md): each broker owns a cell, and matches what is published for it."""

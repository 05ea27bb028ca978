"""What is on the disk, in SQLite."""

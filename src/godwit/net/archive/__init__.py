"""The event archive: written as Arrow and Parquet, read back, served and followed."""

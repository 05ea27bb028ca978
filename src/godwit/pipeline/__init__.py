"""Data on Spark: sessions, schemas, reading and writing, and one module for each job."""

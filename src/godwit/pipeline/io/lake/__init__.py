"""Tables of other formats, Iceberg and Delta: read as sources of jobs, and written from what jobs leave."""

"""`godwit pipeline`: the data jobs."""

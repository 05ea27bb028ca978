"""`godwit match`: who gets what, from files."""

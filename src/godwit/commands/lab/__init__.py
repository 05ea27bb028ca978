"""`godwit lab`: the experiments."""

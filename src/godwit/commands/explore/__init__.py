"""`godwit explore`: faults in whole systems, found by seeds."""

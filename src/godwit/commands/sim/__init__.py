"""`godwit sim`: scenarios in virtual time, shown and replayed."""

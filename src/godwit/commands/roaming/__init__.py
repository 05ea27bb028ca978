"""`godwit demo`: three real brokers, subscribers that walk between them, one broker killed; then the account."""

"""What `godwit.connect` is made of."""

"""What streams of jobs share."""

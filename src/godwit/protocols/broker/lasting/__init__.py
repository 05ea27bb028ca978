"""What lasts: subscriptions that are told what is and what changes."""

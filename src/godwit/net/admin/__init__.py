"""What operators see and do over HTTP, with a login: views of one broker, its actions, and who has done what."""

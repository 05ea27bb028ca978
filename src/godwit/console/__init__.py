"""The console: one web page for all brokers. It keeps nothing but logins, and asks brokers whatever it shows."""

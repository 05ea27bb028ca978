"""What goes in and out of a job: files, live brokers, folders of tables."""

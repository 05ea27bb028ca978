"""Kafka as a source and a sink of jobs: through Spark's connector where the session has it, else by librdkafka."""

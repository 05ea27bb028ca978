"""Beyond the published sizes: growth to 10,000 brokers, churn of real cores, recorded movement."""

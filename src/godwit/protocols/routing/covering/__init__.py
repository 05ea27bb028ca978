"""Content-based routing between brokers (spec content-routing 2.1 to 2.8): what each broker tells its neighbors of what
is wanted and what is offered, and which way events go.

    strategies       how much is told: flooding, simple, identity, covering, merging
    configurations   the published combinations of tables, matchers and mergers
    scopes           to whom it is told: everybody, towards advertisements, the master, a rendezvous point
    router           the tables of one broker, without messages
    broker           the router with messages and clients
"""

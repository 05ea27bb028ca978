"""How clients move between the brokers of a routing network (spec content-routing 2.11), safely and as published.

    lifecycle    the states of a session at one broker, as a table
    rules        the published variants by name, and which of them lose events
    broker       a broker whose clients may move: sessions, buffers, markers
    subscribers  acyclic graphs and rendezvous points: an update behind the subscription, back to the source
    publishers   the same for adverts, with an acknowledgement
    pings        generic mobility: only publish and subscribe, by ping and pong
    checks       is a subscription complete up to the rendezvous point?
    costs        the bounds of spec 2.11.8
    audits       completeness of a network, and mobility safety of a trace

The deployed broker moves sessions by its own protocol: `protocols/broker/handoff`.
"""

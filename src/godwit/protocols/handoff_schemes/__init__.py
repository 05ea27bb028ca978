"""The published handoff schemes, for the laboratory. The deployed handoff is in `protocols.broker.handoff`."""

"""The product's broker, without I/O: sessions over interest over a fabric. docs/broker.md tells how it works."""

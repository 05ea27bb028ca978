"""The MQTT front: 5, 3.1.1 and 3.1, over TCP, TLS and WebSocket."""

"""The real world around the broker: sockets, disk, MQTT."""

"""MQTT-SN over UDP: sensors, and the sinks of sensor networks, as clients of the broker (docs/sensors.md)."""

"""Draw the dashboard for Grafana again: `python -m tools.dashboard`, after a change of the panels below."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

PLACE = Path(__file__).resolve().parent.parent / "deploy" / "grafana" / "godwit.json"
WIDTH, HEIGHT = 8, 8
BROKER = '{instance=~"$broker"}'

PANELS: tuple[tuple[str, str, tuple[tuple[str, str], ...]], ...] = (
    ("Ready", "short", ((f"godwit_healthy{BROKER}", "{{instance}}"),)),
    ("Clients connected", "short", ((f"godwit_connected{BROKER}", "{{instance}}"),)),
    ("Published", "ops", ((f"sum by (instance) (rate(godwit_published_total{BROKER}[1m]))", "{{instance}}"),)),
    ("Delivered", "ops", ((f"sum by (instance) (rate(godwit_delivered_total{BROKER}[1m]))", "{{instance}}"),)),
    ("Between brokers", "ops", ((f"rate(godwit_forwarded_total{BROKER}[1m])", "{{instance}} sent"),
                                (f"rate(godwit_taken_total{BROKER}[1m])", "{{instance}} received"))),
    ("Dropped, by reason", "ops", ((f"sum by (reason) (rate(godwit_dropped_total{BROKER}[1m]))", "{{reason}}"),)),
    ("Waiting for clients", "short", ((f"godwit_waiting{BROKER}", "{{instance}}"),)),
    ("Unconfirmed by other brokers", "short",
     ((f"sum by (instance) (godwit_unconfirmed{BROKER})", "{{instance}}"),)),
    ("Links", "short", ((f"godwit_links{BROKER}", "{{instance}}"),)),
    *((f"{title}, 50 % and 99 %", "s", tuple(
        (f"histogram_quantile({share}, sum by (le) (rate(godwit_{name}_seconds_bucket{BROKER}[5m])))", f"{share:.0%}")
        for share in (0.5, 0.99)))
      for title, name in (("Delivery", "delivery"), ("Handoff", "handoff"), ("Disk", "commit"), ("Matching", "match"))),
    ("Sessions that move", "ops", ((f"sum by (direction) (rate(godwit_moved_total{BROKER}[5m]))", "{{direction}}"),)),
    ("Handoffs that found a copy", "percentunit", ((f"godwit_handoff_hit_rate{BROKER}", "{{instance}}"),)),
    ("Refusals", "ops", ((f"sum by (reason) (rate(godwit_refused_total{BROKER}[5m]))", "{{reason}}"),
                         (f"sum by (result) (rate(godwit_clients_total{BROKER}[5m]))", "clients {{result}}"))),
    ("Processor", "percentunit", ((f"rate(process_cpu_seconds_total{BROKER}[1m])", "{{instance}}"),)),
    ("Memory", "bytes", ((f"process_resident_memory_bytes{BROKER}", "{{instance}}"),)),
)  # fmt: skip
"""Title, unit, and questions with their legends."""


def dashboard() -> dict[str, Any]:
    return {
        "title": "Godwit",
        "uid": "godwit",
        "tags": ["godwit", "mqtt"],
        "schemaVersion": 39,
        "time": {"from": "now-1h", "to": "now"},
        "refresh": "10s",
        "templating": {"list": [_datasource(), _brokers()]},
        "panels": [_panel(number, *panel) for number, panel in enumerate(PANELS)],
    }


def _datasource() -> dict[str, Any]:
    return {"name": "source", "type": "datasource", "query": "prometheus"}


def _brokers() -> dict[str, Any]:
    return {
        "name": "broker",
        "type": "query",
        "datasource": {"type": "prometheus", "uid": "$source"},
        "query": "label_values(godwit_healthy, instance)",
        "multi": True,
        "includeAll": True,
        "current": {"text": "All", "value": "$__all"},
        "refresh": 2,
    }


def _panel(number: int, title: str, unit: str, asked: tuple[tuple[str, str], ...]) -> dict[str, Any]:
    across = 24 // WIDTH
    return {
        "id": number + 1,
        "type": "timeseries",
        "title": title,
        "datasource": {"type": "prometheus", "uid": "$source"},
        "gridPos": {"x": number % across * WIDTH, "y": number // across * HEIGHT, "w": WIDTH, "h": HEIGHT},
        "fieldConfig": {"defaults": {"unit": unit, "min": 0}, "overrides": []},
        "targets": [
            {"refId": chr(ord("A") + at), "expr": question, "legendFormat": legend}
            for at, (question, legend) in enumerate(asked)
        ],
    }


def main() -> int:
    PLACE.write_text(json.dumps(dashboard(), indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

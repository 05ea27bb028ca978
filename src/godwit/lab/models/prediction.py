"""Predicted beside measured: populations, brokers one by one and all together (spec proactive-handoff 3.8)."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from godwit.lab.models.curve import Curve
from godwit.lab.models.populations import Places, Population


class Predicted(msgspec.Struct, frozen=True):
    """One broker's: subscribers connected, throughput, and its bounds where the normal approximation applies."""

    subscribers: float
    throughput_per_s: float
    bounds: tuple[float, float] | None
    extrapolated: bool
    dummies: float = 0.0


def predict(
    places: Places, subscribers: int, curve: Curve, dummies: Mapping[str, float] | None = None
) -> dict[str, Predicted]:
    """Broker by broker, from the long-run shares and a curve."""
    return {
        name: _broker(Population(subscribers, share), curve, (dummies or {}).get(name, 0.0))
        for name, share in places.connected.items()
    }


def _broker(population: Population, curve: Curve, dummies: float) -> Predicted:
    x = population.mean
    low, high = population.bounds
    bounds = (curve(low, dummies), curve(high, dummies)) if population.applicable else None
    return Predicted(x, curve(x, dummies), bounds, curve.extrapolates(x), dummies)


def overall(predicted: Mapping[str, Predicted]) -> float:
    """The system's throughput: the sum of its brokers'."""
    return sum(one.throughput_per_s for one in predicted.values())


def difference(predicted: float, measured: float) -> float:
    """Relative to what was measured: +0.12 where the model is 12 % high."""
    return predicted / measured - 1

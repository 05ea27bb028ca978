"""How near brokers are to each other: for ways that nobody has gone yet."""

from __future__ import annotations

from collections.abc import Mapping
from math import cos, exp, hypot, radians, remainder

import msgspec

from godwit.filters.areas import EARTH_RADIUS_M
from godwit.protocols.host import NodeId

NEAR_M = 1_500.0
"""Over which closeness falls to a third."""


class Site(msgspec.Struct, frozen=True):
    """Where a broker stands, in degrees."""

    lat: float
    lon: float


def closeness(here: NodeId, sites: Mapping[NodeId, Site], near_m: float = NEAR_M) -> dict[NodeId, float]:
    """Of all others; of none where nobody knows where `here` is. Whoever is far off has 0."""
    own = sites.get(here)
    if own is None:
        return {}
    return {name: exp(-_metres(own, site) / near_m) for name, site in sites.items() if name != here}


def _metres(a: Site, b: Site) -> float:
    """On a plane; whoever is too far off for that to be right is not near anyway."""
    east = radians(remainder(a.lon - b.lon, 360.0)) * cos(radians((a.lat + b.lat) / 2))
    return EARTH_RADIUS_M * hypot(radians(a.lat - b.lat), east)

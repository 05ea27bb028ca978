"""The published combinations of tables, matchers and mergers, each in networks against flooding."""

from __future__ import annotations

import pytest

from godwit.lab.relocation.networks import Wiring, routed
from godwit.protocols.routing.covering.configurations import PUBLISHED

SCOPES = {"4.13c": "hierarchical", "8.2b": "hierarchical", "RP": "rendezvous"}


@pytest.mark.parametrize("number", [number for number in PUBLISHED if "published" not in number])
@pytest.mark.feature("content-routing F22")
def test_a_published_configuration_routes_as_flooding_would(number: str) -> None:
    wiring = Wiring(scope=SCOPES.get(number, "everywhere"), configuration=PUBLISHED[number])
    for seed in range(5):
        assert not routed(wiring, seed).bad, seed

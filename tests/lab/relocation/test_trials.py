"""Random moves among random trees: who is safe loses nothing, who is not is seen to lose."""

from __future__ import annotations

import pytest

from godwit.lab.relocation.trials import VARIANTS, bad

FEATURES = {"ping": "F34", "acyclic, pub": "F36", "acyclic": "F35", "rendezvous": "F37", "make": "F38"}
SEEDS = range(20)
"""`godwit lab relocation --trials` runs 1,500 of each."""


def marked(name: str) -> object:
    feature = next(feature for start, feature in FEATURES.items() if name.startswith(start))
    return pytest.param(name, id=name, marks=pytest.mark.feature(f"content-routing {feature}", "content-routing F39"))


@pytest.mark.parametrize("name", [marked(name) for name, variant in VARIANTS.items() if variant.safe])
def test_a_safe_variant_loses_nothing_and_leaves_nobody_waiting(name: str) -> None:
    assert [seed for seed in SEEDS if bad(VARIANTS[name], seed)] == []


@pytest.mark.parametrize("name", [marked(name) for name, variant in VARIANTS.items() if not variant.safe])
def test_an_unsafe_variant_is_seen_to_lose_events(name: str) -> None:
    assert any(bad(VARIANTS[name], seed) for seed in range(60))

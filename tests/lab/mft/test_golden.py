"""The worked examples, as the lab runs them for its report."""

from __future__ import annotations

import pytest

from godwit.lab.mft import golden


@pytest.mark.feature("mft-pubsub F36", "mft-pubsub F7", "mft-pubsub F10")
def test_migrations_cost_what_was_published() -> None:
    assert golden.simple_migration(golden.first_approach()) == 13
    assert golden.simple_migration(golden.mft()) == 2
    assert golden.double_migration(golden.first_approach()) == 12
    assert golden.double_migration(golden.mft()) == 13

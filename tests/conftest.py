"""How hard hypothesis tries: HYPOTHESIS_PROFILE=dev (the default), ci (what `make test` runs) or deep.

`ci` draws the same examples every time, so that a red run means a change and not the luck of the day.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

# Timing says more about the neighbours on a shared machine than about the code.
settings.register_profile("dev", deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("dev"), derandomize=True, database=None, max_examples=100)
settings.register_profile("deep", settings.get_profile("dev"), max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))

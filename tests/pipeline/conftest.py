"""Tests of the pipeline are for whoever has Spark."""

from __future__ import annotations

import pytest

pytest.importorskip("pyspark")

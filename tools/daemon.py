"""Spark's daemon of Python workers that has loaded what they need, for the session of all tests.

A worker loads pandas, Arrow and the matcher before its first row, and Spark ends those that had nothing to do for a
minute. Here workers are forks of a process that has loaded all that, and has one thread: a setting of Spark,
`spark.python.daemon.module`, names this module. It must be found from the folder that Spark's Java stands in.
"""

from __future__ import annotations

import gc
import importlib
import os
import sys
from contextlib import suppress

from tools.zygote import ALONE

MODULES = (
    *("pyspark.worker", "pandas", "pyarrow.parquet", "scipy.stats", "scipy.spatial"),
    *("godwit.pipeline.match.job", "godwit.pipeline.mobility.job", "godwit.pipeline.gathering.job"),
    *("godwit.pipeline.audit.job", "godwit.pipeline.ingest", "godwit.pipeline.sweep.runs"),
    *("godwit.tables.matching.index", "godwit.tables.matching.batch", "godwit.filters.text"),
)
"""What workers of tests load sooner or later. To import these must start no thread: a fork would lack it."""


def main() -> None:
    os.environ.update(ALONE)
    for name in MODULES:
        with suppress(ModuleNotFoundError):
            importlib.import_module(name)
    threads = os.listdir("/proc/self/task")
    if len(threads) > 1:
        sys.exit(f"daemon: importing has started {len(threads) - 1} threads, which a worker would not have")
    gc.collect()
    gc.freeze()
    importlib.import_module("pyspark.daemon").manager()


if __name__ == "__main__":
    main()

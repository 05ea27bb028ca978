"""The results of a grid on disk."""

from __future__ import annotations

from pathlib import Path

from godwit.lab import results
from godwit.lab.mft.runs import Configuration, Result
from godwit.lab.results import ResultsError

__all__ = ["Results", "ResultsError", "Row"]

Row = results.Row[Configuration, Result]


class Results(results.Results[Configuration, Result]):
    def __init__(self, path: Path) -> None:
        super().__init__(path, Configuration, Result)

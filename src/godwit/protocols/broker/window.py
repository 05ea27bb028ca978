"""Figures of the last while."""

from __future__ import annotations

from collections import deque

STEPS = 60
"""The window moves in so many steps."""


class Window:
    """Sums of several figures over the last `window_s`, exact to a step."""

    def __init__(self, window_s: float, figures: int) -> None:
        self.step_s = window_s / STEPS
        self.figures = figures
        self._steps: deque[tuple[int, list[int]]] = deque()

    def add(self, now_s: float, *figures: int) -> None:
        step = self._trimmed(now_s)
        if not self._steps or self._steps[-1][0] != step:
            self._steps.append((step, [0] * self.figures))
        sums = self._steps[-1][1]
        for at, figure in enumerate(figures):
            sums[at] += figure

    def sums(self, now_s: float) -> list[int]:
        self._trimmed(now_s)
        return [sum(column) for column in zip(*(sums for _, sums in self._steps), strict=True)] or [0] * self.figures

    def _trimmed(self, now_s: float) -> int:
        step = int(now_s // self.step_s)
        while self._steps and self._steps[0][0] <= step - STEPS:
            self._steps.popleft()
        return step

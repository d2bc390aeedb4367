"""Run updates, keep their figures, report progress, and stop cleanly when asked to."""

from collections.abc import Callable, Mapping

import numpy as np

from farthing.methods.base import Progress
from farthing.traces.arrays import FloatArray

REPORT_EVERY = 25
"""Updates between two reports of progress."""


class Recorder:
    """Keeps every update's figures as training curves."""

    def __init__(self, progress: Progress, updates: int) -> None:
        self._progress, self._updates = progress, updates
        self._figures: list[Mapping[str, float]] = []

    def run(self, update: Callable[[], Mapping[str, float]]) -> bool:
        """Run all updates; return whether Ctrl-C ended them early, with what there is kept."""
        try:
            for done in range(1, self._updates + 1):
                self._figures.append(update())
                if done % REPORT_EVERY == 0 or done == self._updates:
                    self._progress.update(done, self._updates, self._recent())
        except KeyboardInterrupt:
            return True
        return False

    def curves(self) -> dict[str, FloatArray]:
        """Return one array a figure, one value an update."""
        if not self._figures:
            return {}
        return {name: np.array([f[name] for f in self._figures]) for name in self._figures[0]}

    def _recent(self) -> dict[str, float]:
        recent = self._figures[-REPORT_EVERY:]
        return {name: float(np.mean([f[name] for f in recent])) for name in recent[0]}

"""The functions of `ft.*` that the laboratory brings."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from farthing.api.arguments import names_of, path_of, whole_of
from farthing.api.questions import Traces, traces_of
from farthing.api.rendering import drawn
from farthing.api.wording import worded
from farthing.errors import InputError
from farthing.promises.base import Promise
from farthing.promises.levels import Level, level_of
from farthing_lab.comparison.compare import compare as compare_methods
from farthing_lab.comparison.plan import Plan

if TYPE_CHECKING:
    from farthing.recommendation.base import Comparison
import numpy as np

from farthing.api.arguments import text_of
from farthing.methods.base import Dataset
from farthing.traces.arrays import TraceArrays
from farthing_lab.generator.generate import generate as generate_questions
from farthing_lab.generator.presets import preset
from farthing_lab.promises import weighted


def Shift(level: Level, target: Traces | TraceArrays) -> weighted.Shift:  # noqa: N802 - a promise's name
    """Ask for coverage in another mix of questions, which differs only in what round 1 shows.

    Args:
        level: the probability of being covered.
        target: a sample of that mix, of the kind that trained the policy; grades are not read.

    Raises:
        InputError: the level is no probability, or the target holds no questions.
    """
    if isinstance(target, TraceArrays):
        return weighted.Shift(level, target)
    return weighted.Shift(level, traces_of(target, "the questions of the new mix").arrays)


def generate(name: str, n: int, *, seed: int = 0) -> Traces:
    """Make up questions of a preset, whose cheapest policy is known.

    Raises:
        UnknownNameError: there is no such preset.
        InputError: `n` is below 1.
    """
    config = preset(text_of(name, "the preset", "hotpotqa-llama2-7b")).config
    n, seed = whole_of(n, "the number of questions", 1), whole_of(seed, "seed", 0)
    questions = generate_questions(config, n, np.random.default_rng(seed))
    return Traces(Dataset(name, questions, config, name))


@dataclass(frozen=True)
class MethodComparison:
    """Methods on the same splits of the same questions; printed, it is a table."""

    comparison: "Comparison"

    @property
    def rows(self) -> list[dict[str, Any]]:
        """One row a method and alpha: means and standard errors of every metric."""
        from farthing_lab.comparison.rows import results  # noqa: PLC0415

        return [dict(row) for row in results(self.comparison)]

    def report(self, folder: str | Path) -> Path:
        """Write `results.json`, `table.md` and `report.html`; return the page."""
        from farthing_lab.reports.page import write_report  # noqa: PLC0415

        *_, page = write_report(self.comparison, path_of(folder, "the report"))
        return page

    def __str__(self) -> str:
        from farthing_lab.reports.tables import render_tables  # noqa: PLC0415

        return drawn(render_tables(self.comparison))


@worded
def compare(
    traces: Traces,
    methods: Sequence[str] | None = None,
    *,
    alpha: Level = Fraction(1, 10),
    promise: Promise | None = None,
    splits: int = 100,
    seed: int = 0,
) -> MethodComparison:
    """Compare methods on many splits of the same questions.

    Trainings run in processes of their own, so a script calls this under
    `if __name__ == "__main__":`.

    Args:
        traces: the questions.
        methods: their names; None: those that can win here; `"all"`: all that can run.
        alpha: the promised share of misses; with a promise that has none, what is trained for.
        promise: what is proved on each calibration part and held against the test part; None:
            coverage at `alpha`. One of coverage or selective brings its own level.
        splits: times that calibration and test are drawn anew.
        seed: of the divisions and of the training.

    Raises:
        UnknownNameError: there is no such method.
        InputError: they cannot run on these questions, or an argument is wrong.
    """
    if promise is not None and promise.of_alpha:
        alpha = promise.alpha
    names = None if methods is None else names_of(methods, "methods")
    if names == ():
        raise InputError("no method is named; name some, or leave `methods` out for all")
    plan = Plan(
        (level_of(alpha, "alpha"),),
        names,
        splits=whole_of(splits, "splits", 1),
        seed=whole_of(seed, "seed", 0),
        promise=promise,
    )
    return MethodComparison(compare_methods(traces_of(traces, "the questions").dataset, plan))

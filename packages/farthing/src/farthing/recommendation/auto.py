"""`auto` in place of a method's name: the one that is likely to keep a promise for the least money.

It is what `recommend` would choose, of training questions alone.
"""

from dataclasses import replace
from fractions import Fraction

from farthing.methods.base import Dataset, Progress
from farthing.promises.kinds.agreement import Agreement
from farthing.promises.kinds.coverage import Coverage
from farthing.promises.kinds.parity import Parity
from farthing.recommendation import splits
from farthing.recommendation.recommend import best_method
from farthing.traces.arrays import TraceArrays
from farthing.traces.grades.overlay import check_graded, reference_of
from farthing.traces.pool import is_pool

AUTO = "auto"


def choose_method(
    dataset: Dataset, alpha: Fraction, *, seed: int = 0, progress: Progress | None = None
) -> str:
    """Return the name of the method for these training questions.

    What it is to keep is, of questions in rounds, coverage of 1 - alpha; of a pool parity with
    the model that most is paid for minus two points or, where answers are judged by one of its
    models, agreement with that one.

    Args:
        dataset: training questions; of coverage half of them train methods, and the others choose.
        alpha: the share of misses to train for.
        seed: of the division and of every training.
        progress: is told how many methods were tried.
    """
    check_graded(dataset.traces)
    return best_method(dataset, _aim(dataset.traces, alpha), seed=seed, progress=progress)


def in_training(
    dataset: Dataset,
    alpha: Fraction,
    split: splits.Split = splits.DEFAULT,
    progress: Progress | None = None,
) -> str:
    """Return the name of the method for the training part of questions; see `choose_method`."""
    rows = splits.split_bundle_questions(dataset.traces, split).train
    train = replace(dataset, traces=dataset.traces.take(rows))
    return choose_method(train, alpha, seed=split.seed, progress=progress)


def _aim(train: TraceArrays, alpha: Fraction) -> Coverage | Parity | Agreement:
    if not is_pool(train):
        return Coverage(1 - alpha)
    reference = reference_of(train.grade)
    return Parity() if reference is None else Agreement(reference)

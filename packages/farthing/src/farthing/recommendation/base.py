"""The records of a comparison: who took part, on what, and how each one did."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Literal

from farthing.methods.base import Calibration, Learner, Method, Variant
from farthing.promises.base import Promise

OPTIMUM = "optimum"
"""The candidate that knows what no policy can know: it takes part, but is nobody's rival."""

NOBODY_ASKED = (
    "No model was asked. Random and UALA agree with the paper because the generator was fitted to "
    "them."
)
"""What a comparison on a preset's questions says before any of its figures."""

METRICS = (
    "cost_usd",
    "total_cost_usd",
    "coverage",
    "coverage_solvable",
    "in_set",
    "solvable",
    "accuracy",
    "avg_len",
    "set_size",
    "set_size_leaves",
    "empty",
)
"""What is measured on each test part: mean cost a question and total cost in USD, coverage =
Pr[y* in C or y* not in Y(q)], coverage given solvable, Pr[y* in C], the solvable share, accuracy of
the single best answer, deepest round, distinct answers, leaves, share of empty sets."""

TIMES_OPTIMUM = "times_optimum"
"""Cost over the known optimum's at the same coverage, with each split's threshold, both on fresh
questions of the generator; only where the optimum is known."""

FELL_BACK = "fell_back"
"""1 where calibration proved nothing, so that the reference answered, or nobody."""

How = Calibration | Literal["proved"]
"""How a row's threshold is set; `proved`: at a point that calibration proved to keep a promise."""


@dataclass(frozen=True)
class Candidate:
    """One line of a comparison: a method, as it takes part on some questions.

    Candidates that share one learner object share its trainings: CPO is trained once for three.
    """

    method: Method
    variant: Variant

    @property
    def name(self) -> str:
        """What the command line calls it, such as `ccpo` or `fixed-2`."""
        return self.variant.name

    @property
    def label(self) -> str:
        """What tables call it."""
        return self.variant.label

    @property
    def learner(self) -> Learner | None:
        """Trains it; None where it cannot run on these questions, and `note` says why."""
        return self.variant.learner

    @property
    def note(self) -> str:
        """What a reader must know, or why it cannot run."""
        return self.variant.note

    @property
    def calibration(self) -> Calibration:
        """How its threshold is set."""
        return self.method.calibration

    @property
    def empty(self) -> Literal["argmax", "allow"]:
        """Whether its sets may be empty."""
        return self.method.empty

    @property
    def varies_with(self) -> frozenset[Literal["alpha", "seed"]]:
        """What its training depends on."""
        return self.method.varies_with

    def learning_by(self, learner: Learner) -> "Candidate":
        """Return the same with another learner."""
        return replace(self, variant=replace(self.variant, learner=learner))


@dataclass(frozen=True)
class Event:
    """How far a comparison has come."""

    stage: Literal["train", "evaluate", "optimum"]
    """`optimum`: policies are played on fresh questions, beside the known optimum."""
    name: str
    """Which training it is about, such as `ccpo, alpha 0.1, seed 0`; else empty."""
    done: int
    total: int
    figures: Mapping[str, float] = field(default_factory=dict)
    """The present figures of a training: `cost`, `coverage`, `kappa`, ..."""


Watch = Callable[[Event], None]
"""Is told of every event, in the calling process."""


def ignore(event: Event) -> None:
    """Watch nothing."""


@dataclass(frozen=True)
class Row:
    """How one candidate did at one alpha, over all splits and seeds."""

    policy: str
    label: str
    alpha: Fraction
    calibration: How
    per_split: Mapping[str, list[float]] = field(default_factory=dict)
    """Metric to one value per split (seeds one after another); empty where it could not run.
    Beside `METRICS` it holds `TIMES_OPTIMUM`, `SAVED` and `GAINED`, where they are known; of
    another promise than coverage it holds `PROMISE_METRICS` in their place."""
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """95 % intervals of the means of `SAVED` and `GAINED`, as those of paired differences."""
    kappa: list[float] = field(default_factory=list)
    """Threshold of each split."""
    frontier: list[tuple[float, float]] = field(default_factory=list)
    """(cost_usd, coverage) on all questions outside training, as the threshold sweeps down; for a
    pointwise policy its one point. Of another promise than coverage its figure (`plots`)."""
    curve: list[tuple[float, float]] = field(default_factory=list)
    """(cost_usd, accuracy of the single best answer) at each operating point of the first seed, on
    all questions outside training; empty where accuracy is not known."""
    router_figures: Mapping[str, float] = field(default_factory=dict)
    """`ROUTER_FIGURES`, as far as they exist; no splits and no errors."""
    curves: Mapping[str, list[float]] = field(default_factory=dict)
    """Training curves of the first seed."""
    note: str = ""
    """Why it could not run, or what a reader must know (`no replies recorded`)."""
    instead: str = ""
    """A single model that is cheaper, and right as often as the sets hold a right answer; empty
    where none is known to be."""
    for_one_answer: str = ""
    """A single model that is cheaper, and right as often as the best answer; empty likewise."""


@dataclass(frozen=True)
class Difference:
    """The paired difference of a metric between two candidates over the same splits."""

    alpha: Fraction
    policy: str
    other: str
    metric: str
    mean: float
    low: float
    high: float
    """95 % interval, corrected for splits that share questions (Nadeau and Bengio 2003)."""


@dataclass(frozen=True)
class Alone:
    """What one model alone came to on the same test parts."""

    role: str
    cost_usd: float
    """US dollars a question."""
    accuracy: float
    """NaN where not all its answers are graded."""


@dataclass(frozen=True)
class Comparison:
    """Everything that a report needs to draw."""

    source: str
    """Name of the trace file or preset."""
    fingerprint: str
    """SHA-256 of the traces' arrays."""
    sizes: Mapping[str, int]
    """Questions in `train`, `calibrate` and `test`."""
    horizon: int
    roles: tuple[str, ...]
    splits: int
    """Number of times that calibration and test were drawn anew."""
    seeds: list[int]
    rows: list[Row]
    differences: list[Difference] = field(default_factory=list)
    optimum: list[tuple[float, float]] = field(default_factory=list)
    """(cost_usd, coverage) of the known optimum, where the source is a generator."""
    published: list[Mapping[str, float | str]] = field(default_factory=list)
    """Rows of the paper's table that belong to the preset; costs in USD a question."""
    notes: list[str] = field(default_factory=list)
    reference: str = ""
    """The single model that savings are against; empty where none was recorded alone."""
    today: Alone | None = None
    """What that model costs and gets right; None where none was recorded alone."""
    promise: Promise | None = None
    """What calibration proved, with its reference named; None: coverage of each row's alpha."""
    made_up: str = ""
    """What made the questions up; empty where they were recorded."""
    lede: str = ""
    """What to know before the figures are read; empty: nothing more than they say."""

    @property
    def title(self) -> str:
        """The source, and what made its questions up."""
        return f"{self.source}: {self.made_up}" if self.made_up else self.source

    @property
    def origin(self) -> str:
        """The title and, of a preset, what that means for figures of the paper."""
        return f"{self.title}. {NOBODY_ASKED}" if self.published else self.title

"""What a method is: a learner that makes a policy, and a card that says what both are for."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from importlib import import_module
from typing import Any, Literal, Protocol, Self, runtime_checkable

from numpy.typing import NDArray

from farthing.process.base import Policy
from farthing.promises.certificate import AskedOf
from farthing.traces.arrays import FloatArray, TraceArrays
from farthing.traces.eligibility import Missing, common
from farthing.traces.grades.overlay import reference_of
from farthing.traces.pool import cascade, is_pool
from farthing.traces.system import System

Kind = Literal["policy", "allocator", "pacer", "bandit", "planner", "estimator", "agent", "thinker"]
"""What decides about one question; shares a budget in a batch; prices money over time; learns from
grades as they come; simulates before it acts; says how likely a reply is right; uses tools; trains
how long a model thinks."""
Need = Literal["rounds", "pool", "independent calls", "confidences", "replies", "text", "generator"]
"""What recorded questions must have for a method to be of use there."""
Space = Literal["rounds", "cascade", "calls", "pool", "cuts", "text", "steps"]
"""Whole rounds; the models of a pool in a fixed order; single calls of any role; the models of a
pool in any order; the cuts of one thought, in turn or one alone; whatever a controller writes; one
of two models at each step of a task."""
Gives = Literal["one", "set"]
"""A single answer, or a set of them."""
Calibration = Literal["none", "online", "split"]
"""How a comparison sets the threshold. `none`: it acts as it is, by lot where it is stochastic;
`online`: it keeps that of its training; `split`: by exact split conformal calibration."""


@dataclass(frozen=True)
class Fitted:
    """What training leaves behind."""

    policy: Policy
    kappa: float | None = None
    """The threshold at the end of training, where one was trained along with the policy."""
    curves: Mapping[str, FloatArray] = field(default_factory=dict)
    """Name to one value per update: `cost`, `coverage`, `kappa`, `violation`, ..."""
    stopped_early: bool = False
    """Whether training was interrupted; the policy is the one that it had reached."""


class Progress(Protocol):
    """Where a learner reports to while it works."""

    def update(self, done: int, total: int, figures: Mapping[str, float]) -> None:
        """Say how many updates of how many are done, and the present figures."""
        ...


class Silent:
    """Reports nothing."""

    def update(self, done: int, total: int, figures: Mapping[str, float]) -> None:
        """Ignore the report."""


class Learner(Protocol):
    """Fits a policy to recorded questions."""

    def fit(self, train: TraceArrays, alpha: Fraction, seed: int, progress: Progress) -> Fitted:
        """Train on `train` for miscoverage `alpha`; the same seed gives the same result."""
        ...


@runtime_checkable
class Saveable(Policy, Protocol):
    """A policy that a bundle can hold."""

    def to_state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return its arrays by name, and its settings as JSON values.

        A policy that reads features keeps their description under `features`.
        """
        ...

    @classmethod
    def from_state(cls, arrays: Mapping[str, NDArray[Any]], settings: Mapping[str, Any]) -> Self:
        """Rebuild the policy from what `to_state` returned."""
        ...


@dataclass(frozen=True)
class Dataset:
    """What a method is trained on, and what is known about it."""

    name: str
    """Name of the trace file or of the preset."""
    traces: TraceArrays
    generator: Any = None
    """What made the questions up, for methods that know it; None: nothing did."""
    preset: str | None = None
    """Name of the preset, where the paper published figures to lay beside ours."""
    features: tuple[str, ...] = ()
    """Recorded numbers that policies are to see beside the built-in features."""
    reference: str | None = None
    """The model that parity is about and that rows of models end in; None: each method its own."""
    system: System | None = None
    """What the traces were made with; None where nobody knows."""
    missing: Missing | None = None
    """What to take of calls that were not made; None: what the traces say."""
    asked_of: AskedOf | None = None
    """Which of the recorded questions these are, where others lack calls; None: all of them."""
    conditions: tuple[str, ...] = ()
    """What every certificate of them rests on besides, such as who said what is right."""

    @property
    def is_pool(self) -> bool:
        """Whether one call of each of several models was recorded."""
        return is_pool(self.traces)

    def in_common(self, reference: str | None = None, *, proving: bool = True) -> "Dataset":
        """Return the questions that models in common were asked, with these alone (`eligibility`).

        Args:
            reference: the model that is held against; None: this data set's.
            proving: whether anything is to be proved on them.

        Raises:
            UnknownNameError: no role has the reference's name.
            InputError: an earlier reply decided who was asked, or nothing can be compared.
        """
        named = reference or self.reference or reference_of(self.traces.grade)
        traces, asked_of = common(
            self.traces, named, self.missing if proving else None, proving=proving
        )
        return replace(self, traces=traces, asked_of=asked_of)

    def arranged(self, space: Space) -> TraceArrays:
        """Return the questions as methods of an action space read them.

        A pool is a cascade, one model a round from the cheapest on, but where models may be asked
        in any order by their names. So are the cuts of a thought.
        """
        return cascade(self.traces) if self.is_pool and space != "pool" else self.traces


@dataclass(frozen=True)
class Variant:
    """One way in which a method takes part on some questions."""

    name: str
    """What the command line calls it, such as `fixed-2`."""
    label: str
    learner: Learner | None
    """None where it cannot run on these questions, and `note` says why."""
    note: str = ""
    """What a reader must know, or why it cannot run."""


@dataclass(frozen=True)
class Method:
    """The card of a method: what it is called, what it is for, and where its parts are.

    It stands beside the classes that it names; an entry point of the group `farthing.methods` names
    the card, and nothing else does. Listing methods loads neither torch nor scikit-learn: what only
    training needs is imported where it is used, or the learner is named by its place.
    """

    name: str
    """What the command line calls it, such as `ccpo`."""
    label: str
    """What tables call it, such as `CCPO`."""
    meaning: str
    """What it does, in one line."""
    policy: type[Any] | str
    """Class of the policy that it makes, or where it stands, `module:class`."""
    learner: Learner | str | None = None
    """What trains it, or where that stands, `module:name`; None where only `variants` know it."""
    paper: str = ""
    """arXiv id; empty where it is ours or nobody's."""
    kind: Kind = "policy"
    action_spaces: tuple[Space, ...] = ("rounds",)
    """Those that it can work in."""
    needs: tuple[Need, ...] = ()
    replayable: bool = True
    """Whether recorded questions can be replayed under it."""
    extras: tuple[str, ...] = ()
    """What must be installed to train it, as extras of this package."""
    imports: tuple[str, ...] = ()
    """Modules of other packages that `learn` imports: they are loaded before training begins."""
    calibration: Calibration = "split"
    empty: Literal["argmax", "allow"] = "argmax"
    """Whether sets always hold each observation's likeliest action, or may be empty."""
    varies_with: frozenset[Literal["alpha", "seed"]] = frozenset({"alpha", "seed"})
    """What the training depends on: it is run once for each value of these."""
    variants: Callable[[Dataset], Sequence[Variant]] | None = None
    """Where it takes part in several ways, or in none, depending on the questions."""
    tried_for: frozenset[Gives] = frozenset()
    """What it is tried for where nobody names methods; empty: it takes part by name alone."""
    proof_share: Fraction = Fraction(0)
    """Of delta, its share where `recommend` proves several side by side: measured, so that the ones
    with a share cover for one another; 0: it is proved only where none of those can run."""
    place: int = 90
    """Where tables list it."""

    @property
    def space(self) -> Space:
        """The action space that it is trained for."""
        return self.action_spaces[0]

    @property
    def policy_place(self) -> str:
        """Where the policy's class stands, `module:class`; nothing is loaded."""
        return self.policy if isinstance(self.policy, str) else place_of(self.policy)

    @property
    def training_modules(self) -> tuple[str, ...]:
        """Modules that training loads beside the card's own."""
        apart = (self.learner.partition(":")[0],) if isinstance(self.learner, str) else ()
        return (*self.imports, *apart)

    def on(self, dataset: Dataset) -> list[Variant]:
        """Return the ways in which it takes part on some questions.

        Raises:
            ModuleNotFoundError: an extra that it needs is not installed.
        """
        if self.variants is None:
            variants = [Variant(self.name, self.label, load(self.learner))]
        else:
            variants = list(self.variants(dataset))
        if any(variant.learner for variant in variants):
            for module in self.imports:
                import_module(module)
        return variants


@dataclass(frozen=True)
class SystemCard:
    """The card of what is no policy: an allocator, a pacer, a bandit, a planner, ...

    An entry point of its kind's group (`farthing.allocators`, ...) names it, and nothing else does.
    """

    name: str
    """What the command line calls it, such as `rco`."""
    label: str
    """What tables call it."""
    meaning: str
    """What it does, in one line."""
    kind: Kind
    make: Any
    """What keeps the protocol of its kind, or where that stands, `module:name`."""
    paper: str = ""
    """arXiv id; empty where it is ours or nobody's."""
    page: str = ""
    """Where it is documented, such as `docs/research/allocators.md`."""
    extras: tuple[str, ...] = ()
    """What must be installed to use it, as extras of this package."""
    place: int = 90
    """Where tables list it among those of its kind."""


def load(named: Any) -> Any:
    """Return what stands at `module:name`; what is no place is returned itself."""
    if not isinstance(named, str):
        return named
    module, _, name = named.partition(":")
    return getattr(import_module(module), name)


def place_of(kind: type) -> str:
    """Return where a class stands, `module:class`."""
    return f"{kind.__module__}:{kind.__qualname__}"

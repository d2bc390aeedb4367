"""What a recommendation works on: who may be asked, which questions do what, for which promise."""

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from farthing.bundle.base import Bundle
from farthing.errors import InputError, TooFewTracesError
from farthing.methods.base import Dataset
from farthing.promises.base import Promise
from farthing.promises.kinds.agreement import Agreement
from farthing.promises.kinds.coverage import Coverage
from farthing.promises.kinds.parity import Parity
from farthing.recommendation import splits
from farthing.recommendation.played import (
    ChoosingQuestions,
    ProvingQuestions,
    Q,
    ReportingQuestions,
    TrainingQuestions,
)
from farthing.recommendation.promised_grade import read_for
from farthing.recommendation.savings import held_against
from farthing.recommendation.splits import FEWEST, FourWaySplit, Roles, split_four_ways
from farthing.traces.arrays import IntArray, TraceArrays
from farthing.traces.eligibility import Eligibility, alike, draw_weights
from farthing.traces.grades.overlay import ungraded_questions
from farthing.traces.pool import is_pool


@dataclass(frozen=True)
class Plan:
    """Questions graded by what is promised, what each of them does, and what is asked for."""

    dataset: Dataset
    asked: Promise
    parts: FourWaySplit
    reference: str | None
    seed: int
    guessed: bool = False
    """Whether nobody named the reference."""

    @property
    def side_by_side(self) -> bool:
        """Whether several candidates are proved at shares of delta."""
        return proves_side_by_side(self.asked, self.dataset.traces)

    def training(self, bundle: Bundle) -> TrainingQuestions:
        """Return the questions that train, as a bundle plays them."""
        return self._as_played(bundle, self.parts.train, TrainingQuestions)

    def choosing(self, bundle: Bundle) -> ChoosingQuestions:
        """Return the questions that choose among methods."""
        return self._as_played(bundle, self.parts.choose, ChoosingQuestions)

    def proving(self, bundle: Bundle) -> ProvingQuestions:
        """Return the questions that prove what was chosen."""
        return self._as_played(bundle, self.parts.prove, ProvingQuestions)

    @property
    def holds_out(self) -> bool:
        """Whether some questions only measure."""
        return bool(self.parts.report.size)

    def reporting(self, bundle: Bundle) -> ReportingQuestions:
        """Return the questions that measure: those that prove, where none does nothing else.

        Of questions that were not drawn alike, some that were.
        """
        rows = self.parts.report if self.holds_out else self.parts.prove
        rows = alike(self.dataset.traces, rows)
        return self._as_played(bundle, rows, ReportingQuestions)

    def more_training(self) -> "Plan | None":
        """Return the plan with as many more questions to train, taken from those that prove."""
        parts = splits.more_training(self.parts, self.dataset.traces, self.seed)
        return None if parts is None else replace(self, parts=parts)

    def _as_played(self, bundle: Bundle, rows: IntArray, kind: type[Q]) -> Q:
        traces = self.dataset.traces
        arrays = splits.as_played("these traces", bundle, traces)
        return kind(traces.take(rows), arrays.take(rows))

    def sizes(self) -> dict[str, int]:
        """Return the number of distinct questions in each part; 0 report where none is held out."""
        traces = self.dataset.traces
        report = alike(traces, self.parts.report)
        return replace(self.parts, report=report).distinct(traces.content)


def plans_of(
    dataset: Dataset,
    asked: Promise,
    played: Eligibility,
    seed: int,
    *,
    holdout: int | None = None,
) -> list[Plan]:
    """Return a plan for each set of models, all with the same division of the questions.

    A set that leaves too few questions for one of the parts is left out.
    """
    sets = played.sets if asked.held_to_reference else played.sets[-1:]
    traces = played.of(sets[0])
    role = Roles(
        choose=not proves_side_by_side(asked, traces),
        measure=asked.every_request or draw_weights(traces) is not None,
        holdout=holdout,
    )
    parts = split_four_ways(traces, seed, role)
    among = [parts.among(some.rows) for some in sets]
    if played.missing == "worst":  # a policy learns from nothing that is unknown
        whole = np.flatnonzero(played.traces.made.all(axis=(1, 2)))
        among = [replace(some, train=np.intersect1d(some.train, whole)) for some in among]
    needed = [name for name, rows in vars(parts).items() if rows.size]
    enough = [
        i for i, some in enumerate(among) if min(len(vars(some)[k]) for k in needed) >= FEWEST
    ]
    if not enough:
        sizes = ", ".join(f"{len(vars(among[-1])[name]):,} to {name}" for name in needed)
        raise TooFewTracesError(
            f"what was asked of every model leaves {sizes}, and {FEWEST} of each are the least; "
            "record more"
        )
    asked = asked.sharing(Fraction(1, len(enough)))
    plans = []
    for i in enough:
        traces, asked_of = played.of(sets[i]), played.asked_of(sets[i], dataset.reference)
        some = replace(dataset, traces=traces, asked_of=asked_of)
        plans.append(plan_of(some, asked, seed, among[i]))
    return plans


def plan_of(dataset: Dataset, asked: Promise, seed: int, parts: FourWaySplit) -> Plan:
    """Return the plan for questions that every model was asked; who is paid for may be a guess."""
    traces = dataset.traces
    if not asked.recommended:
        raise InputError(
            f"nothing can be recommended for a promise of {asked.kind}; ask for coverage, parity, "
            "agreement or selective"
        )
    named = asked.reference or asked.passes_to or dataset.reference
    choosing = parts.choose if parts.choose.size else parts.train
    choose, log = (traces.take(rows) for rows in (choosing, who_say(len(traces), parts)))
    alone = bool(traces.independent.all())
    reference = held_against(asked, named, choose, log, alone=alone)
    asked = asked.beside(reference)
    graded = read_for(asked, traces, dataset.traces.grade)
    known = replace(dataset, traces=graded, reference=reference)
    guess = named is None and reference is not None and not traces.cuts
    return Plan(known, asked, parts, reference, seed, guess)


def proves_side_by_side(asked: Promise, traces: TraceArrays) -> bool:
    """Return whether several candidates are proved at shares of delta, so that none is chosen.

    Coverage holds on average over draws, which choosing by them would break. A selective promise
    takes models that can be asked by themselves: in rounds, and of the cuts of thoughts, one method
    is chosen.
    """
    if asked.layout == "sure":
        return is_pool(traces) and not traces.cuts and bool(traces.independent.all())
    return asked.held_to_reference and asked.layout == "descending"


def who_say(n: int, parts: FourWaySplit) -> IntArray:
    """Return the questions that may say who is paid for: who choose, and who take no part.

    Not those that prove or measure. Nor those that train, which may be unlike all others, but where
    there is nobody else.
    """
    idle = np.ones(n, dtype=bool)
    for rows in (parts.train, parts.prove, parts.report):
        idle[rows] = False
    idle[parts.choose] = True
    return np.flatnonzero(idle) if idle.any() else parts.train


def default(traces: TraceArrays) -> Promise:
    """Return what is promised where nobody says: see `recommend`."""
    if not is_pool(traces):
        return Coverage("0.9")
    return Agreement() if ungraded_questions(traces).any() else Parity()

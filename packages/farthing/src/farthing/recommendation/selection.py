"""What was tried on training questions, and who of those is proved at which share of delta."""

from dataclasses import dataclass
from fractions import Fraction

from msgspec import structs

from farthing.bundle.base import Bundle
from farthing.recommendation.certify import Contender, Serving
from farthing.recommendation.plan import Plan
from farthing.recommendation.prove import LaidOut
from farthing.traces.arrays import FloatArray
from farthing.traces.fingerprint import marks_of


@dataclass(frozen=True)
class Trial:
    """A trained method, and what it is likely to come to."""

    name: str
    bundle: Bundle
    expected_usd: float
    """A question, once so many questions have proved a point of it, or none; where answers may be
    withheld, with the reference's answer in their place."""
    accuracy: float
    """Of the point that is proved if new questions are like these."""
    latency_s: float | None
    """95th percentile of that point, in seconds, where it was recorded."""
    row: FloatArray | None
    """The thresholds to prove (`prove.LaidOut`); None: the proof lays them out."""
    share: Fraction = Fraction(0)
    """Of delta; 0: it is not proved."""


@dataclass(frozen=True)
class Selection:
    """Who was tried on the questions of one plan."""

    plan: Plan
    trials: tuple[Trial, ...]
    """The cheapest expected first; at least one."""
    skipped: dict[str, str]
    """Who could not run, and why."""
    curve: tuple[tuple[int, float], ...] = ()
    """What training on more questions brought: how many, and the least cost expected then."""

    def contenders(self) -> list[tuple[Trial, Contender]]:
        """Return who is proved, each at its share of delta, the largest first."""
        proved = sorted((t for t in self.trials if t.share), key=lambda trial: -trial.share)
        return [(trial, self._contender(trial)) for trial in proved]

    def _contender(self, trial: Trial) -> Contender:
        plan, dataset = self.plan, self.plan.dataset
        return Contender(
            trial.bundle,
            plan.asked.sharing(plan.asked.share * trial.share),
            plan.training(trial.bundle),
            plan.proving(trial.bundle),
            Serving(
                None,
                dataset.system,
                dataset.asked_of,
                made_up=dataset.generator is not None,
                conditions=dataset.conditions,
            ),
            None if trial.row is None else LaidOut(trial.row, trial.name),
            trial.name,
        )

    def remembered(self, bundle: Bundle) -> Bundle:
        """Return what was proved with the marks of the questions that chose it.

        Where several were proved side by side, those that proved chose among them as well.
        """
        chose = marks_of(self.plan.choosing(self.trials[0].bundle).played)
        if len(self.contenders()) > 1:
            chose |= bundle.questions["calibrate"]
        return structs.replace(bundle, questions={**bundle.questions, "choose": chose})

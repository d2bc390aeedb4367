"""Mondrian calibration: the same promise within each group, a threshold for each."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from farthing.errors import CalibrationError
from farthing.promises import wording
from farthing.promises.certificate import (
    Certificate,
    FloatArray,
    IntArray,
    Population,
    Threshold,
)
from farthing.promises.figures import Figure, coverage_of
from farthing.promises.kinds.split import split_threshold
from farthing.promises.levels import Level, exact_level
from farthing.promises.observed import Acted, Facts
from farthing.promises.payload import Recorded
from farthing.promises.scores import as_scores

NEW_GROUP = "A question belongs to a group that is not listed."

if TYPE_CHECKING:
    from farthing.promises.base import Promise


@dataclass(frozen=True)
class Grouped:
    """Critical thresholds, and the group of each question."""

    critical: FloatArray
    """[n] kappa* of the calibration questions."""
    group: IntArray
    """[n] index of each question's group in `names`."""
    names: Sequence[str]
    """The groups, also those without a question here."""


class GroupsPromise(Recorded, frozen=True, kw_only=True, tag="groups"):
    """Coverage within each group, on average over draws of its calibration questions."""

    evidence: ClassVar[type] = Grouped
    right: ClassVar[Literal["answer", "sets", "given"]] = "sets"
    whole_sets: ClassVar[bool] = True
    not_audited: ClassVar[str] = "it promises something to each group, and live questions have none"

    alpha: Fraction
    """The promised miscoverage."""
    groups: dict[str, Threshold]
    """Each group's name and its own threshold; of rank 0 where it has too few questions."""
    population: Population = "all"
    """Which questions the promise is about."""

    @property
    def promises(self) -> bool:
        """Whether anything tighter than returning every answer is promised."""
        return any(part.k > 0 for part in self.groups.values())

    @property
    def safest(self) -> Threshold:
        """The smallest threshold of all, which is safe in every group."""
        return min(self.groups.values(), key=lambda threshold: (threshold.kappa, threshold.k))

    def sentence(self, of: Certificate) -> str:
        """Say what is promised."""
        if not self.promises:
            return wording.too_few(of, self.alpha)
        claim = wording.covered(self.alpha, self.population)
        within = f"within each of {len(self.groups)} groups{self._but(of)}"
        return f"{claim} {within}: {wording.meaning(self.population)}"

    def _but(self, of: Certificate) -> str:
        small = ", ".join(too_small(self.groups))
        if not small:
            return ""
        if of.question_budget_nano is not None:  # then everything is not all there is
            return f" (too few questions to promise it in: {small})"
        return f" (too few questions, so everything is returned: {small})"

    def plain_language(self, of: Certificate) -> str:
        """Say what it means for a hundred questions."""
        if not self.promises:
            return wording.everything(of)
        questions = "new questions of each group"
        return wording.of_hundred_covered(self.alpha, self.population, questions)

    def asked(self) -> "Promise":
        """Return the same coverage."""
        from farthing.promises.kinds.coverage import Coverage  # noqa: PLC0415 - asks for this

        return Coverage(1 - self.alpha, None, self.population, within_groups=True)

    def realised(self, of: Acted, questions: Facts) -> Figure | None:
        """Measure coverage."""
        del questions
        return coverage_of(of, self.alpha, self.population)

    def rank(self, of: Certificate) -> str:
        """Say which of its group's scores the smallest threshold is."""
        del of
        least = self.safest
        return f", rank {least.k} of the {least.n} questions of its group" if least.k else ""


def certify(
    sample: Grouped,
    alpha: Level,
    *,
    fingerprint: str,
    population: Population = "all",
    question_budget_nano: int | None = None,
) -> Certificate:
    """Calibrate within each group; the certificate's own kappa is the smallest of theirs.

    Args:
        sample: the calibration questions.
        alpha: miscoverage, in (0, 1).
        fingerprint: SHA-256 of the traces that the scores were computed from.
        population: which questions the promise is about.
        question_budget_nano: the budget a question that kappa* was computed under; None: without.

    Raises:
        CalibrationError: as `group_thresholds`, or there is no group.
    """
    found = group_thresholds(sample.critical, sample.group, sample.names, alpha, population)
    if not found:
        raise CalibrationError("no groups to calibrate; give the traces a group, or ask for none")
    promise = GroupsPromise(alpha=exact_level(alpha), groups=found, population=population)
    return Certificate(
        promise=promise,
        kappa=promise.safest.kappa,
        n=sum(threshold.n for threshold in found.values()),
        question_budget_nano=question_budget_nano,
        conditional_on=(
            f"Within each group: {wording.EXCHANGEABLE}",
            wording.HELD_OUT,
            wording.SAME_SYSTEM,
            wording.CAPPED,
        ),
        invalid_when=(*wording.ends(question_budget_nano), NEW_GROUP),
        fingerprint=fingerprint,
    )


def groups_of(certificate: Certificate | None) -> dict[str, Threshold]:
    """Return each group's threshold, by name; nothing where a promise is not per group."""
    promise = certificate and certificate.promise
    return promise.groups if isinstance(promise, GroupsPromise) else {}


def group_thresholds(
    critical: FloatArray,
    group: IntArray,
    names: Sequence[str],
    alpha: Level,
    population: Population = "all",
) -> dict[str, Threshold]:
    """Return the exact split-conformal threshold of each group, by name.

    A new question is covered with probability at least 1 - alpha given its group. A group that is
    too small to promise anything has k = 0 and kappa = 0; `too_small` names those.

    Args:
        critical: [n] kappa* of held-out questions, as `split_threshold` takes them.
        group: [n] index of each question's group in `names`.
        names: the groups, also those without a question here.
        alpha: miscoverage, in (0, 1).
        population: `solvable`: the same over the solvable questions, a promise about those.

    Raises:
        CalibrationError: as `split_threshold`, by the group's name; or a question has no group.

    Source: Vovk et al. 2005, section 4.5 (Mondrian predictors).

    >>> scores = np.array([0.1, 0.2, 0.3, 0.4, 0.9])
    >>> found = group_thresholds(scores, np.array([0, 0, 0, 0, 1]), ["law", "art"], "0.2")
    >>> found["law"], too_small(found)
    (Threshold(kappa=0.1, k=1, n=4), ['art'])
    """
    scores, level = as_scores(critical), exact_level(alpha)
    group = np.asarray(group)
    if group.shape != scores.shape:
        raise CalibrationError(f"{len(scores)} scores but groups of shape {group.shape}")
    outside = int(((group < 0) | (group >= len(names))).sum())
    if outside:
        raise CalibrationError(f"{outside} questions have no group; name one or leave them out")
    return {
        name: _within(name, scores[group == index], level, population)
        for index, name in enumerate(names)
    }


def _within(name: str, scores: FloatArray, alpha: Fraction, population: Population) -> Threshold:
    try:
        return split_threshold(scores, alpha, population)
    except CalibrationError as problem:
        raise CalibrationError(f"in the group '{name}' {problem}") from None


def too_small(thresholds: dict[str, Threshold]) -> list[str]:
    """Return the names of the groups that are too small to promise anything."""
    return [name for name, threshold in thresholds.items() if threshold.k == 0]

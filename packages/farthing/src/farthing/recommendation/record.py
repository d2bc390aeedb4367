"""The record of a recommendation: what to use, what it saves, and on what evidence."""

from dataclasses import dataclass, replace
from typing import Any

from farthing.bundle.base import Bundle
from farthing.process.value import AnswerFigures
from farthing.promises.certificate import Certificate
from farthing.recommendation.evaluate import BundleEvaluation
from farthing.recommendation.selection import Trial
from farthing.recommendation.tradeoff import Tradeoff


@dataclass(frozen=True)
class Recommendation:
    """What to do, what it costs, and what is proved."""

    bundle: Bundle
    name: str
    """The chosen method, or `always-REFERENCE`."""
    found: BundleEvaluation
    """What it did on questions that neither trained, chose nor proved it; else on those that
    proved it (`held_out`)."""
    trials: tuple[Trial, ...]
    """Who was tried, the cheapest expected first."""
    skipped: tuple[tuple[str, str], ...]
    """Who could not run here, and why."""
    models: dict[str, AnswerFigures | None]
    """What each model alone came to on the questions that measure; None: not recorded alone."""
    reference: str | None
    guessed: bool
    """Whether nobody named the reference, so that it is the model that most was paid for."""
    sizes: dict[str, int]
    """Distinct questions in each part; 0 report where those that prove do (`held_out`)."""
    held_out: bool
    """Whether the figures are of questions that did nothing else."""
    notes: tuple[str, ...]
    """What to doubt."""
    tradeoffs: tuple[Tradeoff, ...] = ()
    """What each point that was tested saves and loses, on the questions that prove."""
    curve: tuple[tuple[int, float], ...] = ()
    """What training on more questions brought: how many, and the least cost a question that was
    expected then, in dollars."""
    outlook: str = ""
    """Where nothing cheaper is proved: how many questions would probably prove it."""
    caveats: tuple[str, ...] = ()
    """Those of the notes that limit what is promised, or what is said of money."""
    requests_per_day: float | None = None
    """Of the log; None: it has no times, or less than a day."""

    @property
    def certificate(self) -> Certificate | None:
        """What is promised."""
        return self.bundle.certificate

    @property
    def measure(self) -> str:
        """What `accuracy` is: agreement with the reference where nobody graded answers."""
        return self.found.value.measure

    @property
    def nothing_cheaper(self) -> bool:
        """Whether nothing cheaper than the reference is proved, so that it answers."""
        return self.reference is not None and self.name == f"always-{self.reference}"

    def noted(self, note: str) -> "Recommendation":
        """Return the same with one more note that limits what is promised."""
        return replace(self, notes=(*self.notes, note), caveats=(*self.caveats, note))

    @property
    def kept(self) -> bool:
        """Whether the promise came true on the questions that measure; a reference keeps it.

        Where those also proved it, nothing says that it did not.
        """
        return self.found.judged is None or self.found.judged.verdict == "kept"

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values; `cost_usd` is a question's mean."""
        metrics, value = self.found.metrics, self.found.value
        certificate = self.certificate
        theirs = self.models.get(self.reference or "")
        return {
            "measure": self.measure,
            "reference": theirs
            and {"name": self.reference, "guessed": self.guessed, **_in_short(theirs)},
            "chosen": {
                "method": self.name,
                "cost_usd": metrics["cost_usd"],
                "accuracy": metrics["accuracy"],
                "promise": certificate.sentence() if certificate else None,
                "kept": self.kept,
                "verdict": self.found.judged and self.found.judged.sentence(),
            },
            "saved": value.saved,
            "saved_interval": value.saved_interval,
            "confidence": self.found.confidence,
            "saved_within": self.found.saved_within,
            "requests_per_day": self.requests_per_day,
            "models": {name: each and _in_short(each) for name, each in self.models.items()},
            "candidates": [
                {
                    "method": one.name,
                    "cost_usd": one.expected_usd,
                    "accuracy": one.accuracy,
                    "share": float(one.share),
                }
                for one in self.trials
            ],
            "tested": [each.to_json() for each in self.tradeoffs],
            "training": [{"questions": n, "cost_usd": cost} for n, cost in self.curve],
            "skipped": dict(self.skipped),
            "questions": self.sizes,
            "held_out": self.held_out,
            "certificate": certificate.to_json() if certificate else None,
            "notes": list(self.notes),
        }


def _in_short(figures: AnswerFigures) -> dict[str, Any]:
    return {
        "cost_usd": figures.cost_usd,
        "accuracy": figures.accuracy,
        "latency_s": figures.latency_s,
    }

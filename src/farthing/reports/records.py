"""What `--json` prints: what a command found, as JSON values under plain names.

`cost_usd` is always the mean of a question, in US dollars. What is not known is None.
"""

from typing import Any

from farthing.process.value import Figures, Value
from farthing.promises.certificate import Certificate
from farthing.promises.figures import Figure
from farthing.recommendation.drift import LEVEL, Drift
from farthing.recommendation.evaluate import BundleEvaluation
from farthing.recommendation.pipeline import Calibrated

Record = dict[str, Any]


def evaluated(found: BundleEvaluation) -> Record:
    """Return how a bundle did on its test questions."""
    return {
        "cost_usd": found.metrics["cost_usd"],
        "metrics": dict(found.metrics),
        "intervals": dict(found.intervals),
        **_promise(found.bundle.certificate),
        "judged": None if found.judged is None else _judged(found.judged),
        "value": _value(found.value),
        "models": {role: each and _figures(each) for role, each in found.alone.items()},
        "sizes": dict(found.sizes),
        "notes": list(found.notes),
    }


def calibrated(done: Calibrated, notes: tuple[str, ...] = ()) -> Record:
    """Return what was promised; `notes` are doubts beside those of the calibration."""
    return {
        "cost_usd": done.value and done.value.yours.cost_usd,
        **_promise(done.certificate),
        "value": done.value and _value(done.value),
        "outlook": done.outlook or None,
        "left": done.left or None,
        "sizes": dict(done.sizes),
        "notes": [*done.notes, *notes],
    }


def checked(found: Drift) -> Record:
    """Return whether a certificate still applies."""
    return {
        "applies": found.applies,
        "p_value": found.p_value,
        "level": LEVEL,
        "sentence": found.sentence(),
        "sizes": {"calibrate": found.n_old, "new": found.n_new},
    }


def _promise(certificate: Certificate | None) -> Record:
    if certificate is None:
        return {"promises": False, "sentence": None, "plain_language": None, "certificate": None}
    return {
        "promises": certificate.promises,
        "sentence": certificate.sentence(),
        "plain_language": certificate.plain_language(),
        "certificate": certificate.to_json(),
    }


def _judged(judged: Figure) -> Record:
    said = {"verdict": judged.verdict, "sentence": judged.sentence()}
    return {**vars(judged), "besides": judged.besides and _judged(judged.besides), **said}


def _value(value: Value) -> Record:
    return {
        "part": value.part,
        "measure": value.measure,
        "yours": _figures(value.yours),
        "reference": value.reference,
        "theirs": value.theirs and _figures(value.theirs),
        "saved": value.saved,
        "saved_interval": value.saved_interval,
        "gained": value.gained,
        "gained_interval": value.gained_interval,
        "instead": value.instead,
        "sentences": value.lines(),
    }


def _figures(figures: Figures) -> Record:
    """Return figures; `accuracy` is agreement where that is what is measured."""
    return {
        "questions": figures.questions,
        "cost_usd": figures.cost_usd,
        "accuracy": figures.accuracy,
        "unanswered": figures.unanswered,
        "latency_s": figures.latency_s,
    }

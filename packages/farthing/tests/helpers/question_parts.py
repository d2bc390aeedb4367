"""The same questions put to another use than that for which they were drawn."""

from farthing.bundle.base import Bundle
from farthing.process.budget import PerQuestion
from farthing.promises.base import Promise
from farthing.recommendation.certify import AS_RECORDED, Contender, Proved, Serving, prove_bundle
from farthing.recommendation.played import (
    ProvingQuestions,
    Q,
    Questions,
    ReportingQuestions,
    TrainingQuestions,
)
from farthing.recommendation.prove import Proof, prove


def used_as(kind: type[Q], part: Questions) -> Q:
    return kind(part.recorded, part.played, part.by, part.asked_of, part.requests)


def training(part: Questions) -> TrainingQuestions:
    return used_as(TrainingQuestions, part)


def proving(part: Questions) -> ProvingQuestions:
    return used_as(ProvingQuestions, part)


def reporting(part: Questions) -> ReportingQuestions:
    return used_as(ReportingQuestions, part)


def proof_of(
    asked: Promise,
    bundle: Bundle,
    train: Questions,
    held: Questions,
    budget: PerQuestion | None = None,
) -> Proof:
    return prove(asked, bundle, training(train), proving(held), budget)


def proved_bundle(
    bundle: Bundle,
    asked: Promise,
    train: Questions,
    held: Questions,
    serving: Serving = AS_RECORDED,
) -> Proved:
    return prove_bundle(Contender(bundle, asked, training(train), proving(held), serving))

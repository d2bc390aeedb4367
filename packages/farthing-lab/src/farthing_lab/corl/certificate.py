"""Choose the mode of a controller that keeps a promise for the least money, and prove it.

The modes are operating points: one of them answers every question. Each question does one thing.
Those of the part `train` choose the reference, and where testing begins; those of `calibrate` prove
a mode, from the dearest down (`statistics.fixed_sequence`); those of `test` only measure it. Where
nothing cheaper than the reference is proved, the reference answers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from farthing.errors import InputError, UnknownNameError, UnprovedError
from farthing.methods.base import Fitted, Variant
from farthing.methods.baselines.models import BEST_SINGLE, BestSinglePolicy
from farthing.process.batch_replay import point_at
from farthing.process.value import AnswerFigures
from farthing.promises.base import Promise
from farthing.promises.certificate import Certificate
from farthing.recommendation import evaluate, pipeline
from farthing.recommendation.base import Candidate
from farthing.recommendation.certify import Contender, prove_or_fall_back
from farthing.recommendation.played import ProvingQuestions, ReportingQuestions, TrainingQuestions
from farthing.recommendation.promised_grade import read_for
from farthing.recommendation.prove import LaidOut
from farthing.recommendation.savings import SingleModels
from farthing.tasks.base import Question
from farthing.traces.arrays import RIGHT, TraceArrays
from farthing.traces.base import SplitName
from farthing_lab.corl.base import Mode
from farthing_lab.corl.evaluation import Watch
from farthing_lab.corl.session import PoolSession
from farthing_lab.corl.traces import Column, experts_of, laid_out, modes_of, role_of, traces_of

CHOOSING = 200
"""Questions of the part `train` that choose the reference and where testing begins."""
PARTS: tuple[SplitName, ...] = ("train", "calibrate", "test")


@dataclass(frozen=True)
class RecordedModes:
    """The reference and the controller in each mode, on questions of three parts."""

    modes: tuple[Mode, ...]
    """From the cheapest budget on."""
    reference: str
    """The role of the reference."""
    parts: Mapping[SplitName, TraceArrays]


@dataclass(frozen=True)
class Certified:
    """Which mode answers, what is promised of it, and what it comes to on other questions."""

    pool: str
    mode: Mode | None
    """None: nothing cheaper than the reference is proved, and that answers."""
    recorded: RecordedModes
    certificate: Certificate
    found: evaluate.BundleEvaluation
    """On the questions of the part `test`."""
    figures: Mapping[str, AnswerFigures]
    """What each role by itself came to on these."""
    outlook: str
    """What would probably be proved, and by how many questions, where nothing was."""

    @property
    def sizes(self) -> dict[str, int]:
        return {name: len(part) for name, part in self.recorded.parts.items()}


def certify(
    opened: PoolSession,
    asked: Promise,
    n: int = 1_000,
    seed: int = 0,
    *,
    watch: Watch = lambda *_: None,
) -> Certified:
    """Play the modes on drawn questions, prove the promise of one of them, and measure it.

    The reference is the promise's, or else the expert that is right most often on questions of the
    part `train`; n questions prove, and n measure.
    """
    watch(0, len(PARTS))
    chosen = opened.pool.questions.sample("train", CHOOSING, 0)
    reference = asked.reference or strongest_expert(opened, chosen)
    if reference not in opened.rules.names:
        raise UnknownNameError("expert", reference, opened.rules.names)
    roles = (reference, *map(role_of, opened.modes))
    parts: dict[SplitName, TraceArrays] = {}
    for done, part in enumerate(PARTS):
        questions = chosen if part == "train" else opened.pool.questions.sample(part, n, seed)
        columns = beside(opened, questions, reference)
        parts[part] = laid_out(traces_of(opened, questions, part, columns), roles)
        watch(done + 1, len(PARTS))
    recorded = RecordedModes(opened.modes, reference, parts)
    return proved(opened.pool.name, recorded, asked.beside(reference))


def beside(opened: PoolSession, questions: Sequence[Question], reference: str) -> list[Column]:
    """Return what an expert replies, and what the controller comes to in each mode."""
    experts = experts_of(opened, questions, [reference])
    return [*experts, *modes_of(opened, questions, opened.modes)]


def strongest_expert(opened: PoolSession, questions: Sequence[Question]) -> str:
    """Return the expert that is right most often on some questions; of equals the first."""
    names = opened.rules.names
    columns = experts_of(opened, questions, names)
    known = laid_out(traces_of(opened, questions, "train", columns), names)
    if known.ungraded.any():
        raise InputError(
            "the questions to train have no accepted answers, so nobody knows which expert is the "
            f"strongest; name one of {', '.join(names)} with --reference"
        )
    return names[int(known.correct[:, 0].mean(axis=0).argmax())]


def proved(pool: str, recorded: RecordedModes, asked: Promise) -> Certified:
    """Prove a mode on the questions to calibrate, and measure it on those to test."""
    graded = {name: read_for(asked, part, RIGHT) for name, part in recorded.parts.items()}
    train = TrainingQuestions(graded["train"], graded["train"])
    prove = ProvingQuestions(graded["calibrate"], graded["calibrate"])
    test = ReportingQuestions(graded["test"], graded["test"])
    policy = modes_policy(train.played, recorded.modes)
    candidate = Candidate(BEST_SINGLE, Variant(BEST_SINGLE.name, BEST_SINGLE.label, None))
    bundle = pipeline.bundle_of(candidate, Fitted(policy), train.played)
    laid_out = LaidOut(policy.parameters)
    proof = prove_or_fall_back(Contender(bundle, asked, train, prove, laid_out=laid_out))
    certificate, mode = proof.certificate, None
    if proof.left:
        raise UnprovedError(f"{certificate.sentence()} {proof.left.capitalize()}.")
    if certificate.promises:
        mode = recorded.modes[point_at(policy.parameters, certificate.kappa)]
    alone = SingleModels.of(test.recorded)
    return Certified(
        pool=pool,
        mode=mode,
        recorded=recorded,
        certificate=certificate,
        found=evaluate.evaluate_in_memory(proof.bundle, test),
        figures={role: alone.of_role(place) for place, role in enumerate(alone.roles)},
        outlook=proof.outlook,
    )


def modes_policy(train: TraceArrays, modes: Sequence[Mode]) -> BestSinglePolicy:
    """Return the policy whose operating points are modes, in the order in which they are proved.

    They stand as their budgets do, from the cheapest; modes dearer than the one that is right most
    often in training, on questions that prove nothing, are left out, so that testing begins there.
    """
    places = np.array([train.roles.index(role_of(mode)) for mode in modes])
    right = train.correct[:, 0, places].sum(axis=0)
    last = int(np.flatnonzero(right == right.max())[-1])
    return BestSinglePolicy(places[: last + 1].astype(np.float64))

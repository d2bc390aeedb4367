"""Choose the mode of a controller that keeps a promise for the least money, and prove it.

The modes are operating points: one of them answers every question. Each question does one thing.
Those of the part `train` choose the reference, and where testing begins; those of `calibrate` prove
a mode, from the dearest down (`statistics.fixed_sequence`); those of `test` only measure it. Where
nothing cheaper than the reference is proved, the reference answers.

A controller and its experts become ordinary traces of a pool, for any method and any promise. Each
expert is a model of the pool, and so is the controller in each of its modes: what an episode
answers and what it costs, its own writing and all calls included.

A thinker whose prompt names a mode, such as how long to think, is a pool of one model in several
modes. The dearest of them is the reference, and the others are held against it, as a controller's
are. So "mode low is within two points of high" is a promise like any other, and where it cannot be
proved, high answers.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from msgspec import structs

from farthing.errors import InputError, UnknownNameError, UnprovedError
from farthing.methods.base import Fitted, Variant
from farthing.methods.baselines.models import BEST_SINGLE, BestSinglePolicy
from farthing.models.base import Usage
from farthing.models.prices import Price
from farthing.money import usd_from_nano
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
from farthing.tasks.base import Question, Task
from farthing.traces.arrays import RIGHT, TraceArrays
from farthing.traces.assemble import assemble
from farthing.traces.base import Call, CallError, SplitName, Trace
from farthing.traces.pool import in_order, is_pool
from farthing.traces.trace_kind import CONTROLLER
from farthing_lab.corl.base import Mode
from farthing_lab.corl.episode import Episode
from farthing_lab.corl.evaluation import Watch, alone, check_replies, greedy
from farthing_lab.corl.pool import GeneratedQuestions
from farthing_lab.corl.rollouts import ExpertReply, PoolSession
from farthing_lab.lm.symbols import END, encode
from farthing_lab.methods.thinkers.training import digits, length, think

ALONE = f"{CONTROLLER}-alone"
"""The role of the controller where it may not call."""
Column = Sequence[Call]
"""A call a question, all of one role."""


def role_of(mode: Mode) -> str:
    """Return the role of a controller in a mode.

    >>> role_of(Mode("low", 0))
    'controller-low'
    """
    return f"{CONTROLLER}-{mode.name}"


def experts_of(
    opened: PoolSession, questions: Sequence[Question], names: Sequence[str]
) -> list[Column]:
    """Return what experts reply, a column each."""
    found: list[Column] = []
    for name in names:
        replies = opened.experts.ask([(name, question.text) for question in questions])
        check_replies([name], [replies])
        model = opened.pool.models.sections[name].settings.model
        found.append([_replied(name, model, reply, opened.task) for reply in replies])
    return found


def modes_of(
    opened: PoolSession, questions: Sequence[Question], modes: Sequence[Mode]
) -> list[Column]:
    """Return what the controller's episodes come to, a column a mode; the likeliest tokens."""
    return [
        [_played(role_of(mode), one, opened) for one in greedy(opened, questions, mode)]
        for mode in modes
    ]


def alone_of(opened: PoolSession, questions: Sequence[Question]) -> Column:
    """Return what the controller answers where it may not call."""
    return [_played(ALONE, episode, opened) for episode in alone(opened, questions)]


def traces_of(
    opened: PoolSession, questions: Sequence[Question], part: SplitName, columns: Sequence[Column]
) -> list[Trace]:
    """Return questions of a part as traces of a pool, with a call of each column."""
    return _traces(questions, part, columns, opened.task.name)


def _traces(
    questions: Sequence[Question], part: SplitName, columns: Sequence[Column], task: str
) -> list[Trace]:
    return [
        Trace(
            id=question.id,
            question=question.text,
            gold=list(question.gold),
            calls=list(calls),
            task=task,
            group=question.group,
            split=part,
            **question.beside,
            independent=True,
        )
        for question, calls in zip(questions, zip(*columns, strict=True), strict=True)
    ]


def laid_out(traces: Sequence[Trace], roles: Sequence[str]) -> TraceArrays:
    """Return these roles of traces as arrays, in this order whatever they cost.

    So no question has a say in how others are laid out.
    """
    kept = [
        structs.replace(trace, calls=[call for call in trace.calls if call.role in roles])
        for trace in traces
    ]
    arrays = assemble(kept)
    if not is_pool(arrays):
        raise InputError("these traces are no pool of models; use the protocol paper")
    return in_order(arrays, [arrays.roles.index(role) for role in roles])


def _replied(role: str, model: str, reply: ExpertReply, task: Task) -> Call:
    usage = reply.usage
    return Call(
        round=1,
        role=role,
        model=model,
        answer=None if reply.error else task.normalise(reply.text),
        input_tokens=usage.input_tokens if usage else None,
        output_tokens=usage.output_tokens if usage else None,
        cost_usd=usd_from_nano(reply.cost_nano),
        error=CallError(type="failed", message=reply.error) if reply.error else None,
    )


def _played(role: str, episode: Episode, opened: PoolSession) -> Call:
    wrote = [one for one in episode.segments if one.author == "controller"]
    answer = episode.answer
    return Call(
        round=1,
        role=role,
        model=opened.pool.models.sections[opened.pool.controller].settings.model,
        answer=None if answer is None else opened.task.normalise(answer),
        output_tokens=sum(len(one.ids) for one in wrote),
        cost_usd=usd_from_nano(episode.cost_nano),
    )


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
    points = LaidOut(policy.parameters)
    proof = prove_or_fall_back(Contender(bundle, asked, train, prove, laid_out=points))
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


CLOSING = len(encode(f"<answer>4</answer>{END}"))
"""Tokens of an answer, with what opens and ends it."""


@dataclass(frozen=True)
class Answered:
    """What a model answered to a question in a mode, and what that cost."""

    answer: str
    cost_nano: int
    tokens: int


Play = Callable[[str, Sequence[Question]], Sequence[Answered]]
"""Answers questions in a mode; it may draw what it writes."""


@dataclass(frozen=True)
class ModalThinker:
    """A model that is told how long to think."""

    name: str
    modes: tuple[str, ...]
    """From the one that thinks least on; the last is the reference."""
    play: Play

    def __post_init__(self) -> None:
        if len(self.modes) < 2:
            raise InputError(f"{self.name} has one mode; there is nothing to hold it against")


def certify_modes(
    thinker: ModalThinker,
    questions: GeneratedQuestions,
    asked: Promise,
    *,
    n: int = 1_000,
    seed: int = 0,
) -> Certified:
    """Answer drawn questions in each mode, and prove the promise of the cheapest that keeps it.

    Args:
        thinker: the model.
        questions: where 200 of the part `train`, and n each of `calibrate` and `test` come from.
        asked: parity or agreement with the last mode.
        n: how many prove, and how many measure.
        seed: draws the questions.
    """
    *cheaper, reference = thinker.modes
    points = tuple(Mode(mode, 0) for mode in cheaper)
    roles = (reference, *map(role_of, points))
    parts: dict[SplitName, TraceArrays] = {}
    for part in PARTS:
        some = questions.sample(part, CHOOSING if part == "train" else n, seed)
        columns = [
            [
                Call(
                    round=1,
                    role=role,
                    model=thinker.name,
                    answer=one.answer,
                    output_tokens=one.tokens,
                    cost_usd=usd_from_nano(one.cost_nano),
                )
                for one in thinker.play(mode, some)
            ]
            for role, mode in zip(roles, (reference, *cheaper), strict=True)
        ]
        parts[part] = laid_out(_traces(some, part, columns, "text"), roles)
    return proved(thinker.name, RecordedModes(points, reference, parts), asked.beside(reference))


@dataclass(frozen=True)
class EmbeddedThinker:
    """Plays an embedded network: draws a thought, and takes the likeliest digit after it."""

    network: Any
    price: Price
    cap: int = 128
    """Most tokens of a thought."""
    seed: int = 0

    def __call__(self, mode: str, questions: Sequence[Question]) -> list[Answered]:
        """Answer questions; a mode `low` stands in the prompt as `low:`."""
        prompts = [encode(f"{mode}:{one.text}") for one in questions]
        drawn = think(self.network, prompts, self.cap, np.random.default_rng(self.seed))
        lengths = [length(one, self.cap) for one in drawn]
        thoughts = [one.ids[:stop] for one, stop in zip(drawn, lengths, strict=True)]
        contexts = [[*ids, *thought] for ids, thought in zip(prompts, thoughts, strict=True)]
        said = digits(self.network, contexts).argmax(axis=1).tolist()
        rows = zip(prompts, lengths, said, strict=True)
        return [
            Answered(
                str(digit),
                self.price.cost_nano(Usage(len(ids), stop + CLOSING), 0.0),
                stop + CLOSING,
            )
            for ids, stop, digit in rows
        ]

"""Grades for a bundle: asked in the right order, kept at once, and no false proofs by a judge."""

import json
from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from msgspec import structs
from scipy import stats

from farthing.errors import InputError
from farthing.grading.session import GradeBook, GradePrompt, Response, ask_judge, ask_persons
from farthing.grading.status import GradingSession, GradingStatus
from farthing.methods.base import Dataset
from farthing.models.config import models_from
from farthing.promises.agreeing import JudgeShare
from farthing.promises.answers import Answers, selective_point
from farthing.promises.kinds.agreement import Agreement
from farthing.promises.kinds.parity import Parity
from farthing.promises.kinds.selective import Selective
from farthing.promises.paired import Paired, parity_point
from farthing.recommendation import pipeline, splits
from farthing.recommendation.partial_grades import RightAt, SampledGrades
from farthing.runtime.agents.judge import Judge
from farthing.traces.arrays import BoolArray, TraceArrays
from farthing.traces.assemble import assemble
from farthing.traces.base import Call, Trace
from farthing.traces.grades.grade_file import (
    GradeLine,
    Pairs,
    QuestionDraw,
    Right,
    Same,
    read_grades,
)
from farthing.traces.grades.overlay import at_worst, graded
from farthing.traces.jsonl import write_traces

RUNS, DELTA, N = 1_000, 0.1, 700
SKILL = {"mini": (0.95, 0.45), "large": (0.97, 0.9)}
SPLIT = splits.Split(0, {"train": 250, "calibrate": 400, "test": 50})
PARITY = Parity("large", Fraction("0.1"), Fraction("0.1"))


@cache
def recorded(seed: int = 0) -> tuple[tuple[Trace, ...], dict[str, bool]]:
    """Return questions without gold, and whether each answer, `id:answer`, is right."""
    rng, traces, truth = np.random.default_rng(seed), [], {}
    for i in range(N):
        hard, calls = bool(rng.random() < 0.3), []
        for k, (model, skill) in enumerate(SKILL.items()):
            right = bool(rng.random() < skill[hard])
            answer = "0" if right else str(k + 1)
            truth[f"q{i}:{answer}"] = right
            sure = float(np.clip(rng.normal(0.5 if hard else 0.9, 0.1), 0, 1))
            cost = 0.0001 if model == "mini" else 0.004
            calls.append(
                Call(
                    round=1, role=model, model=model, answer=answer, confidence=sure, cost_usd=cost
                )
            )
        one = Trace(id=f"q{i}", question=f"{i}?", calls=calls, independent=True)
        # What calls were sent is known, so that a certificate has nothing to say of it.
        traces.append(structs.replace(one, system_prompt="", history="", parameters="{}"))
    return tuple(traces), truth


@pytest.fixture
def book(tmp_path: Path) -> GradeBook:
    traces, _ = recorded()
    write_traces(tmp_path / "logs.jsonl", traces)
    return GradeBook.open(tmp_path / "logs.jsonl", tmp_path / "logs.grades.jsonl")


@pytest.fixture
def bundle(tmp_path: Path, book: GradeBook) -> Path:
    dataset = Dataset("logs", graded(book.recorded, "same as large"))
    pipeline.train(dataset, "conformal-arbitrage", Fraction("0.1"), tmp_path / "b", split=SPLIT)
    return tmp_path / "b"


def truly(card: GradePrompt) -> Response:
    _, truth = recorded()
    name = card.question.removesuffix("?")
    return {c: truth[f"q{name}:{a}"] for c, a in zip(card.codes, card.answers, strict=True)}


def grades_all(book: GradeBook) -> None:
    _, truth = recorded()
    keys = [(*key.partition(":"), right) for key, right in truth.items()]
    book.add([Right(id=name, answer=answer, right=right) for name, _, answer, right in keys])


@pytest.mark.slow
def test_grading_in_order_proves_as_much_as_grading_all_with_a_fraction_of_it(
    book: GradeBook, bundle: Path, tmp_path: Path
) -> None:
    session = GradingSession(bundle, PARITY, SPLIT)
    seen: list[GradingStatus] = []
    ask_persons(book, session, "large", truly, seen.append, batch=5)
    costs = [s.cost_nano or s.reference_nano or 0 for s in seen]
    assert costs == sorted(costs, reverse=True)  # no grade makes it dearer
    assert costs[-1] < costs[0]
    everything = GradeBook(book.recorded, book.wordings, tmp_path / "all.jsonl")
    grades_all(everything)
    whole = session.standing(everything.graded())
    assert whole.cost_nano == seen[-1].cost_nano
    asked = {line.id for line in read_grades(book.path) if isinstance(line, Right)}
    assert len(asked) < 100
    assert seen[-1].sentence().startswith("proved: a policy ")
    # What `calibrate --grades` then promises is what was said.
    late = book.graded()
    done = pipeline.calibrate(bundle, late.traces, PARITY, split=SPLIT, late=late)
    assert done.certificate == seen[-1].certificate


@pytest.mark.slow
def test_what_is_listed_are_ungraded_disagreements_at_the_point_whose_proof_fails(
    book: GradeBook, bundle: Path
) -> None:
    standing = GradingSession(bundle, PARITY, SPLIT).standing(book.graded())
    large = book.recorded.roles.index("large")
    for wanted in standing.then.wanted:
        answers = book.recorded.answer[wanted.row, 0]
        assert answers[large] in wanted.codes
        assert len(wanted.codes) == 2
        assert len(set(answers.tolist())) == 2


@pytest.mark.slow
def test_a_card_does_not_say_who_answered_and_each_grade_is_kept_at_once(
    book: GradeBook, bundle: Path
) -> None:
    kept, first, questions = [], [], []

    def stops(card: GradePrompt) -> Response | None:
        kept.append(len(read_grades(book.path)))
        questions.append(card.question)
        first.append(card.answers[0] == "0" or card.answers[1] == "2")
        if len(kept) == 12:
            raise KeyboardInterrupt
        return {} if len(kept) == 3 else truly(card)

    with pytest.raises(KeyboardInterrupt):
        ask_persons(
            book, GradingSession(bundle, PARITY, SPLIT), "large", stops, lambda _: None, batch=5
        )
    assert kept == [0, 2, 4, 4, 6, 8, 10, 12, 14, 16, 18, 20]
    assert 0 < sum(first) < 12  # in an order by chance
    asked = [line.id for line in read_grades(book.path) if isinstance(line, Right)]
    assert len(set(asked)) == 10
    assert len(set(questions)) == 12  # what was skipped is not asked again


@pytest.mark.slow
def test_by_lot_persons_are_asked_in_the_order_of_the_draw_and_the_line_keeps_its_chance(
    book: GradeBook, bundle: Path
) -> None:
    book.plan(QuestionDraw(seed=5, probability=0.5))
    book.plan(QuestionDraw(seed=5, probability=0.5))
    session = GradingSession(bundle, replace(PARITY, epsilon=Fraction("0.05")), SPLIT)
    graded = book.graded()
    wanted = session.standing(graded).then.wanted
    drawn = graded.drawn
    assert wanted
    assert all(str(book.recorded.ids[one.row]) in drawn for one in wanted)
    ask_persons(book, session, "large", truly, lambda _: None, batch=50)
    lines = [line for line in read_grades(book.path) if isinstance(line, Right)]
    assert {line.probability for line in lines} == {0.5}
    assert session.standing(book.graded()).certificate.promises
    with pytest.raises(Exception, match=r"draws by seed 5, probability 0\.5"):
        book.plan(QuestionDraw(seed=6, probability=0.5))


@pytest.mark.slow
def test_selective_needs_a_draw_and_graded_training_questions(
    book: GradeBook, bundle: Path
) -> None:
    asked = Selective(Fraction("0.8"), Fraction("0.1"))
    session = GradingSession(bundle, asked, SPLIT)
    with pytest.raises(Exception, match="chance drew"):
        session.standing(book.graded())
    book.plan(QuestionDraw(seed=0, probability=1.0))
    with pytest.raises(Exception, match="250 of 250 questions have answers that nobody graded"):
        session.begun(book.graded())
    parts = splits.split_bundle_questions(book.recorded, SPLIT)
    _, truth = recorded()
    trained = set(book.recorded.ids[parts.train].tolist())
    keys = [key.split(":") for key in truth if key.split(":")[0] in trained]
    book.add([Right(id=i, answer=a, right=truth[f"{i}:{a}"]) for i, a in keys])
    session = session.begun(book.graded())
    seen: list[GradingStatus] = []
    ask_persons(book, session, "", truly, seen.append, batch=40)
    assert not seen[0].certificate.promises
    assert seen[-1].certificate.promises
    assert "proved: a policy that answers" in seen[-1].sentence()
    late = book.graded()
    done = pipeline.calibrate(bundle, late.traces, asked, split=SPLIT, late=late)
    assert done.certificate == seen[-1].certificate
    assert "questions that chance drew to be graded" in done.certificate.sentence()


def judge_of(tmp_path: Path, replies: dict[str, str], otherwise: str) -> Judge:
    tables = {"models": {"j": {"provider": "scripted", "model": "j", "otherwise": otherwise}}}
    del replies
    return Judge(models_from(tables, "t"), "j", tmp_path / "j.db", 10**9)


@pytest.mark.slow
def test_a_judge_speaks_of_every_question_and_is_not_asked_twice(
    book: GradeBook, bundle: Path, tmp_path: Path
) -> None:
    book.plan(QuestionDraw(seed=0, probability=0.3, judge="j"))
    session = GradingSession(bundle, PARITY, SPLIT)
    before = session.standing(book.graded())
    judge = judge_of(tmp_path, {}, "Yes.")
    assert ask_judge(book, before.judged, judge, "large") is None
    lines = read_grades(book.path)
    said = [line for line in lines if isinstance(line, Right)]
    assert said
    assert all(line.judge == "j" and line.right for line in said)
    assert len({(line.id, line.answer) for line in said}) == len(said)
    ask_judge(book, before.judged, judge, "large")
    assert read_grades(book.path) == lines
    # It says that everything is right, and nothing that was drawn is graded: at worst all of it.
    assert book.graded().traces.ungraded.any()
    after = session.standing(book.graded())
    assert after.certificate.promise.sample.judge == "j"  # type: ignore[attr-defined]
    assert all(book.recorded.ids[one.row] in book.graded().drawn for one in after.then.wanted)


@pytest.mark.slow
def test_a_judge_that_says_what_is_the_same_is_checked_on_questions_that_chance_drew(
    book: GradeBook, bundle: Path, tmp_path: Path
) -> None:
    share = JudgeShare(epsilon=Fraction("0.05"), delta=Fraction("0.05"))
    asked = Agreement("large", Fraction("0.1"), Fraction("0.1"), share)
    alone = GradingSession(bundle, asked, SPLIT).standing(book.graded())
    book.plan(Pairs(seed=0, number=share.pairs, judge="j"))
    session = GradingSession(bundle, asked, SPLIT)
    before = session.standing(book.graded())
    ask_judge(book, before.judged, judge_of(tmp_path, {}, "yes"), "large")
    unchecked = session.standing(book.graded())
    assert not unchecked.certificate.promises  # what nobody compared counts as an error
    parts = splits.split_bundle_questions(book.recorded, SPLIT)
    calibration = set(book.recorded.ids[parts.calibrate].tolist())
    said = [line for line in read_grades(book.path) if isinstance(line, Same)]
    assert {line.id for line in said} <= calibration
    cards: list[GradePrompt] = []

    def the_same(card: GradePrompt) -> Response:
        cards.append(card)
        return dict.fromkeys(card.codes, True)

    ask_persons(book, session, "large", the_same, lambda _: None, batch=500)
    done = session.standing(book.graded())
    assert len(cards) < share.pairs  # nothing to compare where the judge called nothing the same
    assert all(card.against is not None and card.against != card.answers[0] for card in cards)
    assert done.certificate.promises
    assert done.cost_nano is not None
    assert alone.cost_nano is None or done.cost_nano < alone.cost_nano
    judged = done.certificate.promise.judge  # type: ignore[attr-defined]
    assert (judged.name, judged.checked, judged.errors) == ("j", share.pairs, 0)
    # One that is not the same after all, and nothing is proved.
    book.add([Same(id=_name(cards[0]), answer=cards[0].answers[0], reference="large", same=False)])
    assert not session.standing(book.graded()).certificate.promises


def _name(card: GradePrompt) -> str:
    return "q" + card.question.removesuffix("?")


# By simulation, through what is wired between traces and proofs.


@cache
def population() -> TraceArrays:
    """Return many questions to two cheap models and a reference, whose truth is known."""
    rng, rows = np.random.default_rng(9), []
    for i in range(6_000):
        luck = rng.random()
        texts = {"large": "0" if luck < 0.9 else "9"}
        texts["a"] = "1" if luck < 0.1 else "0" if luck < 0.94 else "8"
        texts["b"] = "2" if luck < 0.3 else "0"
        calls = [
            Call(round=1, role=r, answer=t, correct=t == "0", cost_usd=c)
            for (r, t), c in zip(sorted(texts.items()), (0.1, 0.2, 0.3), strict=True)
        ]
        rows.append(Trace(id=f"q{i}", calls=calls, independent=True))
    return assemble(rows)


def first_of(place: int) -> RightAt:
    def right_at(traces: TraceArrays) -> BoolArray:
        right: BoolArray = traces.correct[:, 0, [place]]
        return right

    return right_at


@pytest.mark.slow
@pytest.mark.parametrize("probability", [1.0, 0.4])
def test_no_judge_proves_a_false_parity_more_often_than_promised(probability: float) -> None:
    """The judge hides a fifth of what the cheap model has wrong, and nothing else is wrong."""
    everyone, rng = population(), np.random.default_rng(2)
    right = everyone.correct[:, 0]
    cheap, large = everyone.roles.index("a"), everyone.roles.index("large")
    epsilon = float(right[:, large].mean() - right[:, cheap].mean())
    failures = 0
    for run in range(RUNS):
        part = everyone.take(rng.integers(0, len(everyone), 300))
        part = replace(part, ids=np.array([f"{run}-{i}" for i in range(300)]))
        hides = (rng.random(300) < 0.2)[:, None, None] & (part.answer == part.answer[:, :, [cheap]])
        judged = replace(part, correct=part.correct | hides)
        by = SampledGrades(QuestionDraw(seed=0, probability=probability, judge="j"), judged, judged)
        sample = by.parity_sample(first_of(cheap), "large")
        seen = rng.random(300) < 0.9  # of the drawn ones some are left ungraded: at worst
        worst = at_worst(_hidden(part, ~(sample.drawn & seen)), "large")
        mine, theirs = worst.correct[:, 0, [cheap]], worst.correct[:, 0, large]
        cost = worst.cost_nano[:, 0, [cheap]]
        failures += parity_point(Paired(cost, mine, theirs, sample=sample), epsilon, DELTA) == 0
    assert stats.binomtest(failures, RUNS, DELTA, alternative="greater").pvalue > 1e-4


@pytest.mark.slow
@pytest.mark.parametrize("probability", [1.0, 0.4])
def test_no_judge_proves_a_false_selective_promise_more_often_than_promised(
    probability: float,
) -> None:
    everyone, rng = population(), np.random.default_rng(3)
    cheap = everyone.roles.index("a")
    alpha = float(1 - everyone.correct[:, 0, cheap].mean())
    failures = 0
    for run in range(RUNS):
        part = everyone.take(rng.integers(0, len(everyone), 300))
        part = replace(part, ids=np.array([f"{run}-{i}" for i in range(300)]))
        hides = (rng.random(300) < 0.2)[:, None, None]
        judged = replace(part, correct=part.correct | hides)
        by = SampledGrades(QuestionDraw(seed=0, probability=probability, judge="j"), judged, judged)
        sample = by.selective_sample(first_of(cheap))
        hidden = _hidden(part, ~sample.drawn)
        mine = hidden.correct[:, 0, [cheap]]
        failures += selective_point(Answers(mine | ~mine, mine, sample=sample), alpha, DELTA) == 0
    assert stats.binomtest(failures, RUNS, DELTA, alternative="greater").pvalue > 1e-4


@pytest.mark.slow
def test_a_sample_says_what_the_judge_predicts_and_counts_its_silence_at_worst() -> None:
    part = population().take(np.arange(200))
    cheap, large = part.roles.index("a"), part.roles.index("large")
    silent = np.arange(200) % 7 == 0
    judged = _hidden(part, silent)
    by = SampledGrades(QuestionDraw(seed=1, probability=0.5, judge="j"), judged, judged)
    sample = by.parity_sample(first_of(cheap), "large")
    same = part.answer[:, 0, cheap] == part.answer[:, 0, large]
    loses = part.correct[:, 0, large] & ~part.correct[:, 0, cheap]
    expected = np.where(same, False, np.where(silent, ~sample.drawn, loses))
    assert (sample.predicted[:, 0] == expected).all()
    assert silent.any()
    assert loses.any()
    mute = replace(by, draw=QuestionDraw(seed=1, probability=0.5))
    assert not mute.parity_sample(first_of(cheap), "large").predicted.any()


def _hidden(traces: TraceArrays, which: BoolArray) -> TraceArrays:
    unknown = np.broadcast_to(which[:, None, None], traces.correct.shape) & (traces.answer >= 0)
    return replace(traces, correct=traces.correct & ~unknown, ungraded=unknown)


@pytest.mark.slow
def test_grades_are_one_json_line_each(book: GradeBook) -> None:
    lines: list[GradeLine] = [Right(id="q1", answer="0", right=True)]
    book.add(lines)
    assert [json.loads(text) for text in book.path.read_text().splitlines()] == [
        {"kind": "right", "id": "q1", "answer": "0", "right": True}
    ]


@pytest.fixture
def twice(tmp_path: Path) -> GradeBook:
    """Return a book of questions each of which was asked twice, under two ids."""
    traces, _ = recorded()
    again = [structs.replace(one, id=f"again-{one.id}") for one in traces]
    write_traces(tmp_path / "twice.jsonl", [*traces, *again])
    return GradeBook.open(tmp_path / "twice.jsonl", tmp_path / "twice.grades.jsonl")


@pytest.mark.slow
def test_whoever_grades_is_asked_each_question_once(twice: GradeBook, tmp_path: Path) -> None:
    dataset = Dataset("logs", graded(twice.recorded, "same as large"))
    pipeline.train(dataset, "conformal-arbitrage", Fraction("0.1"), tmp_path / "t", split=SPLIT)
    session = GradingSession(tmp_path / "t", PARITY, SPLIT)
    seen: list[GradingStatus] = []
    ask_persons(twice, session, "large", truly, seen.append, batch=50)
    asked = {line.id for line in read_grades(twice.path) if isinstance(line, Right)}
    assert len(asked) == len({name.removeprefix("again-") for name in asked}) > 20
    late = twice.graded()
    done = pipeline.calibrate(tmp_path / "t", late.traces, PARITY, split=SPLIT, late=late)
    assert done.certificate == seen[-1].certificate
    assert (done.certificate.n, done.certificate.requests) == (400, 800)
    assert done.certificate.promises


@pytest.mark.slow
def test_a_draw_and_a_judge_count_each_question_once(twice: GradeBook, tmp_path: Path) -> None:
    _, truth = recorded()
    keys = [(*key.partition(":"), right) for key, right in truth.items()]
    for name in ("", "again-"):
        twice.add([Right(id=name + i, answer=a, right=right) for i, _, a, right in keys])
    dataset = Dataset("logs", twice.graded().traces)
    pipeline.train(dataset, "conformal-arbitrage", Fraction("0.1"), tmp_path / "t", split=SPLIT)
    asked = Selective(Fraction("0.8"), Fraction("0.1"))
    twice.plan(QuestionDraw(seed=0, probability=1.0))
    late = twice.graded()
    standing = GradingSession(tmp_path / "t", asked, SPLIT).begun(late).standing(late)
    done = pipeline.calibrate(tmp_path / "t", late.traces, asked, split=SPLIT, late=late)
    assert done.certificate == standing.certificate
    assert (done.certificate.n, done.certificate.requests) == (400, 800)
    asked_of = replace(PARITY, per="request")
    with pytest.raises(InputError, match="a promise per request is proved from the grades of the"):
        pipeline.calibrate(tmp_path / "t", late.traces, asked_of, split=SPLIT, late=late)

"""What a policy is worth: by hand, by simulation, and what is read where."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import msgspec
import numpy as np
import pytest
from scipy import stats

from farthing.bundle import folder as bundles
from farthing.methods.base import Dataset
from farthing.process.replay import ReplayOutcome
from farthing.process.value import AnswerFigures, PolicyValue
from farthing.promises.kinds.agreement import Agreement
from farthing.promises.kinds.coverage import Coverage
from farthing.promises.kinds.parity import Parity
from farthing.promises.kinds.selective import Selective
from farthing.recommendation import savings as room
from farthing.recommendation.evaluate import evaluate
from farthing.recommendation.pipeline import calibrate, train
from farthing.recommendation.savings import SingleModels, guessed, paid_most, savings_of
from farthing.recommendation.splits import Split
from farthing.traces.arrays import TraceArrays

ALPHA = Fraction(1, 10)


def outcome(cost: object, right: object, latency: object = None) -> ReplayOutcome:
    """What a policy did; of its sets nothing is read."""
    found = np.asarray(right, dtype=bool)
    one = np.ones(len(found), dtype=np.int16)
    seconds = None if latency is None else np.asarray(latency, dtype=float)
    return ReplayOutcome(np.asarray(cost), found, found, found, found, one, one, one, seconds)


def singles(cost: object, right: object, *, alone: bool = True) -> SingleModels:
    costs = np.asarray(cost)
    roles = tuple("abcdef"[: costs.shape[1]])
    return SingleModels(roles, costs, np.asarray(right, dtype=bool), None, alone)


def dominated_by(found: ReplayOutcome, models: SingleModels) -> str | None:
    return room.dominating_model(found, models, found.best_correct)


TWO = singles([[1, 10], [1, 10], [1, 10], [1, 20]], [[0, 1], [0, 1], [1, 1], [1, 0]])
MINE = outcome([2, 12, 2, 4], [1, 1, 1, 0], [1.0, 2.0, 2.0, 2.0])


def test_by_hand() -> None:
    """20 nano-dollars are paid where b costs 50; both are right on three of four."""
    found = savings_of(MINE, TWO, "b", "test")
    assert found.yours == AnswerFigures(questions=4, cost_nano=20, right=3, latency_s=(2.0, 2.0))
    assert found.theirs == AnswerFigures(questions=4, cost_nano=50, right=3)
    assert (found.saved, found.gained) == (0.6, 0.0)
    assert found.saved_interval is not None
    assert found.saved_interval[0] < 0.6 < found.saved_interval[1]
    assert found.instead is None
    assert found.lines()[0] == (
        "You: $0.00000000500 a question at accuracy 0.750; latency: median 2.00 s, 95th percentile "
        "2.00 s."
    )
    assert found.lines()[1] == "Always b alone: $0.0000000125 a question at accuracy 0.750."
    assert found.lines()[2].startswith("Saved against always b: 60.0 % (95 % interval ")
    assert len(found.lines()) == 3
    of_calibration = savings_of(MINE, TWO, "b", "calibrate").lines()
    assert of_calibration[3:] == ["These figures are of the 4 questions that set the threshold."]


def test_a_dearer_policy_saves_less_than_nothing() -> None:
    found = savings_of(MINE, TWO, "a", "test")
    assert found.saved == -4.0
    assert found.saved_interval is not None
    low, high = (f"{abs(100 * end):.1f}" for end in sorted(found.saved_interval, reverse=True))
    within = f"(95 % interval −{low} to {high})"  # of four questions
    assert f"More expensive than always a: 400.0 % {within}; " in str(found)


def test_a_free_reference_leaves_nothing_to_save() -> None:
    found = savings_of(MINE, replace(TWO, cost_nano=TWO.cost_nano * 0), "a", "test")
    assert (found.saved, found.saved_interval) == (None, None)
    assert "a is free; accuracy +0.250" in str(found)


@pytest.mark.parametrize(
    ("alone", "reference", "says"),
    [(False, "a", room.NOT_ALONE), (True, None, room.UNNAMED), (True, "z", room.UNNAMED)],
)
def test_without_a_reference_it_says_why(alone: bool, reference: str | None, says: str) -> None:
    found = savings_of(MINE, replace(TWO, alone=alone), reference, "test")
    assert (found.reference, found.theirs, found.saved) == (None, None, None)
    assert str(found) == f"{found.yours.sentence('You')} {says}."
    assert replace(TWO, alone=False).figures() == {"a": None, "b": None}


def test_it_is_kept_as_json() -> None:
    found = savings_of(MINE, TWO, "b", "test")
    assert msgspec.json.decode(msgspec.json.encode(found), type=PolicyValue) == found


# One single model that is better in both.


def planted(
    seed: int, n: int, a_cost: int, accuracy: tuple[float, float]
) -> tuple[ReplayOutcome, SingleModels]:
    """A policy that costs 10 on average, and models a and b; b costs 30 and is always right."""
    rng = np.random.default_rng(seed)
    cost = rng.integers(5, 16, n)
    right, theirs = (rng.random(n) < share for share in accuracy)
    costs = np.stack([rng.integers(a_cost - 3, a_cost + 4, n), np.full(n, 30)], axis=1)
    return outcome(cost, right), singles(costs, np.stack([theirs, right | True], axis=1))


def test_a_cheaper_model_that_is_more_often_right_is_named() -> None:
    assert dominated_by(*planted(0, 600, 6, (0.8, 0.9))) == "a"
    assert dominated_by(*planted(0, 600, 16, (0.8, 0.9))) is None  # it is dearer
    assert dominated_by(*planted(0, 600, 6, (0.9, 0.8))) is None  # it is less often right
    found, models = planted(0, 600, 6, (0.8, 0.9))
    assert dominated_by(found, replace(models, alone=False)) is None
    assert "use always-a instead" in str(savings_of(found, models, "b", "test"))


def test_a_policy_that_pays_for_a_call_and_returns_another_ones_answer_is_dominated() -> None:
    """All answers are those of model a, and its calls are paid for besides."""
    rng = np.random.default_rng(1)
    right = rng.random(400) < 0.8
    cost = rng.integers(5, 16, 400)
    assert dominated_by(outcome(cost + 1, right), singles(cost[:, None], right[:, None])) == "a"
    assert dominated_by(outcome(cost, right), singles(cost[:, None], right[:, None])) is None


def test_a_model_that_is_less_often_right_is_not_named_however_little_it_loses() -> None:
    """3 lost of 2,000 are far below the margin; but it is not as often right."""
    right = np.ones(2_000, dtype=bool)
    theirs = right.copy()
    theirs[:3] = False
    found = outcome(np.full(2_000, 9), right)
    assert dominated_by(found, singles(np.full((2_000, 1), 4), theirs[:, None])) is None
    assert dominated_by(found, singles(np.full((2_000, 1), 4), right[:, None])) == "a"


def test_sets_are_dominated_only_by_a_model_that_is_right_as_often_as_they_are() -> None:
    found, models = planted(0, 600, 6, (0.8, 0.9))
    wide = replace(found, in_set=np.ones(600, dtype=bool))
    one = savings_of(wide, models, "b", "test", promised="sets")
    assert (one.instead, one.one_answer) == ("a", True)
    assert "instead of this policy, unless you need its sets." in str(one)
    narrow = savings_of(found, models, "b", "test", promised="sets")
    assert (narrow.instead, narrow.one_answer) == ("a", False)
    assert not savings_of(wide, models, "b", "test").one_answer
    best = planted(0, 600, 6, (0.9, 0.8))
    assert not savings_of(*best, "b", "test", promised="sets").one_answer


@pytest.mark.slow
def test_which_promises_are_about_sets(pool: TraceArrays, tmp_path: Path) -> None:
    train(Dataset("", pool), "lazy", ALPHA, tmp_path / "b")
    assert not room.about_sets(bundles.load(tmp_path / "b").certificate)
    for asked, sets in (
        (Coverage("0.8"), True),
        (Parity("z", "0.8", "0.1"), False),
        (Selective("0.5"), False),
        (Agreement("z", "0.9", "0.1"), False),
    ):
        assert calibrate(tmp_path / "b", pool, asked).certificate.promises
        assert room.about_sets(bundles.load(tmp_path / "b").certificate) == sets


def test_a_policy_whose_sets_are_promised_is_held_to_its_sets(
    pool: TraceArrays, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`fixed-2` asks x and y, and returns both; the answer that counts is y's."""
    monkeypatch.setattr(room, "LEVEL", 0.3)  # 200 questions prove little
    train(Dataset("", pool), "fixed-2", ALPHA, tmp_path / "b")
    assert not evaluate(tmp_path / "b", pool).value.one_answer  # nothing is promised yet
    made = calibrate(tmp_path / "b", pool, Coverage("0.6")).value
    judged = evaluate(tmp_path / "b", pool).value
    assert made is not None
    for found in (made, judged):
        assert (found.instead, found.one_answer) == ("y", True)


def test_of_several_the_cheapest_is_named() -> None:
    rng = np.random.default_rng(2)
    right = rng.random(500) < 0.7
    costs = np.tile([8, 4, 6], (500, 1))
    models = singles(costs, np.stack([right | True] * 3, axis=1))
    assert dominated_by(outcome(np.full(500, 9), right), models) == "b"


@pytest.mark.slow
@pytest.mark.parametrize(("a_cost", "accuracy"), [(10, (0.8, 0.9)), (6, (0.9, 0.88))])
def test_chance_seldom_makes_a_policy_look_dominated(
    a_cost: int, accuracy: tuple[float, float]
) -> None:
    """At the edge: a costs the same, or is right less often by the whole margin."""
    repeats = 400
    named = sum(dominated_by(*planted(s, 300, a_cost, accuracy)) == "a" for s in range(repeats))
    assert stats.binomtest(named, repeats, room.LEVEL, alternative="greater").pvalue > 0.01


def test_the_level_is_shared_among_the_models() -> None:
    """At p = 0.03 one model is named, and of two models neither."""
    cost = np.array([0, 1] * 20) + 10
    d = np.concatenate([np.full(22, 3), np.full(18, -2)])
    p = float(stats.ttest_1samp(d, 0, alternative="greater").pvalue)
    assert 0.025 < p < 0.05
    found, sure = outcome(cost, np.zeros(40)), np.ones((40, 1))
    assert dominated_by(found, singles((cost - d)[:, None], sure)) == "a"
    two = singles(np.stack([cost - d, cost + 9], axis=1), np.ones((40, 2)))
    assert dominated_by(found, two) is None


def test_many_questions_are_judged_by_intervals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "MANY", 100)
    assert dominated_by(*planted(0, 2_000, 6, (0.8, 0.9))) == "a"
    assert dominated_by(*planted(0, 2_000, 6, (0.9, 0.8))) is None


# What is read where.


@pytest.fixture(scope="module")
def pool() -> TraceArrays:
    """Three models; `y` is best on the questions that train, `z` on those that judge."""
    rng = np.random.default_rng(7)
    n = 600
    split = np.repeat([0, 1, 2], 200).astype(np.int8)
    skill = np.where(split[:, None] == 0, [0.3, 0.9, 0.6], [0.3, 0.6, 0.9])
    right = rng.random((n, 3)) < skill
    spent = np.where(split[:, None] == 0, [1_000, 5_000, 4_000], [1_000, 5_000, 9_000])
    cost = spent + 100 * split.astype(np.int64)[:, None]
    return TraceArrays(
        ids=np.array([f"q{i}" for i in range(n)]),
        roles=("x", "y", "z"),
        models=("x", "y", "z"),
        answer=np.where(right, 0, 1)[:, None].astype(np.int16),
        correct=right[:, None],
        cost_nano=cost[:, None],
        signals={"latency_s": np.tile([1.0, 2.0, 4.0], (n, 1))[:, None].astype(np.float32)},
        group=np.full(n, -1, dtype=np.int32),
        group_names=(),
        split=split,
        recorded=np.ones(n, dtype=np.int16),
        independent=np.ones(n, dtype=bool),
    )


def test_most_is_paid_for_whom_most_dollars_then_most_calls_and_then_the_first_place_say(
    pool: TraceArrays,
) -> None:
    """By hand: 3 calls of x at 2, 1 call of y at 6, 2 calls of z at 3: all come to 6."""
    few = pool.take(np.arange(3))
    calls = np.array([[2, 6, 3], [2, 0, 3], [2, 0, 0]])[:, None]
    equal = replace(few, cost_nano=calls, made=calls > 0)
    assert paid_most(equal) == "x"  # of equals the one that was asked most often
    other = calls[..., ::-1]
    assert paid_most(replace(equal, cost_nano=other, made=other > 0)) == "z"
    more = calls.copy()
    more[0, 0, 1] = 7
    assert paid_most(replace(equal, cost_nano=more)) == "y"  # one dear call, the fewest
    alike = replace(few, cost_nano=np.ones_like(calls))
    assert paid_most(alike) == "x"  # of those that were asked as often the first
    assert paid_most(replace(alike, cost_nano=np.zeros_like(calls))) == "x"
    assert paid_most(replace(equal, correct=~few.correct)) == "x"  # grades say nothing
    assert "z is a guess" in guessed("z")
    assert "--reference" in guessed("z")


def test_the_reference_is_that_of_training_and_its_figures_are_of_the_test_part(
    pool: TraceArrays, tmp_path: Path
) -> None:
    train(Dataset("", pool), "always-x", ALPHA, tmp_path / "b")
    found = evaluate(tmp_path / "b", pool)
    test = pool.take(pool.split == 2)
    assert found.value.reference == paid_most(pool.take(pool.split == 0)) == "y"
    assert paid_most(test) == "z"
    assert found.value.theirs == AnswerFigures(
        questions=200,
        cost_nano=200 * 5_200,
        right=int(test.correct[:, 0, 1].sum()),
        latency_s=(2.0, 2.0),
    )
    assert found.value.yours == found.alone["x"]
    assert found.value.saved == pytest.approx(1 - 1_200 / 5_200)
    assert found.value.part == "test"


@pytest.mark.parametrize("name", ["always-x", "fixed-2"])
def test_the_bundle_keeps_the_statement_of_the_questions_that_calibrated_it(
    pool: TraceArrays, tmp_path: Path, name: str
) -> None:
    """Also where the pool is played as a cascade, in which no model has a name."""
    train(Dataset("", pool), name, ALPHA, tmp_path / "b")
    assert bundles.load(tmp_path / "b").value is None
    done = calibrate(tmp_path / "b", pool, Coverage(Fraction(1, 5)))
    kept = bundles.load(tmp_path / "b").value
    assert kept is not None
    assert kept == done.value
    assert (kept.part, kept.reference) == ("calibrate", "y")
    assert kept.theirs is not None
    assert kept.theirs.cost_nano == 200 * 5_100


def test_the_reference_of_a_parity_is_that_of_the_statement(
    pool: TraceArrays, tmp_path: Path
) -> None:
    train(Dataset("", pool), "lazy", ALPHA, tmp_path / "b")
    assert calibrate(tmp_path / "b", pool, Parity("z", "0.8", "0.1")).certificate.promises
    assert evaluate(tmp_path / "b", pool).value.reference == "z"


@pytest.mark.slow
def test_parity_at_more_than_the_reference_costs_is_not_promised(
    pool: TraceArrays, tmp_path: Path
) -> None:
    """`fixed-3` asks all three, so that z alone costs less, and x does."""
    train(Dataset("", pool), "fixed-3", ALPHA, tmp_path / "b")
    for reference in ("x", "z"):
        made = calibrate(tmp_path / "b", pool, Parity(reference, "0.6", "0.1"))
        assert not made.certificate.promises
        assert made.outlook == "What is proved costs as much as the reference alone."
        assert evaluate(tmp_path / "b", pool).value.saved == 0


def test_a_reference_can_be_named_when_a_policy_is_trained(
    pool: TraceArrays, tmp_path: Path
) -> None:
    train(Dataset("", pool, reference="z"), "fixed-1", ALPHA, tmp_path / "b")
    assert evaluate(tmp_path / "b", pool).value.reference == "z"


def test_calls_that_saw_others_leave_every_row_open(pool: TraceArrays, tmp_path: Path) -> None:
    seen = replace(pool, independent=np.zeros(len(pool), dtype=bool))
    train(Dataset("", seen), "fixed-1", ALPHA, tmp_path / "b", split=Split())
    found = evaluate(tmp_path / "b", seen)
    assert found.alone == {"x": None, "y": None, "z": None}
    assert str(found.value).endswith(f"{room.NOT_ALONE}.")


def test_seconds_that_nobody_recorded_count_as_the_slowest() -> None:
    some = outcome([2] * 40, [1] * 40, [1.0] * 38 + [np.nan, 3.0])
    many = outcome([2] * 40, [1] * 40, [1.0] * 37 + [np.nan] * 3)
    known, unknown = (
        room.figures(one.cost_nano, one.best_correct, one.latency_s).latency_s
        for one in (some, many)
    )
    assert known == (1.0, 3.0)
    assert unknown is None


def test_a_withheld_answer_is_counted_and_not_right() -> None:
    silent = replace(MINE, set_size=np.array([1, 1, 1, 0], dtype=np.int16))
    found = savings_of(silent, TWO, "b", "test")
    assert (found.yours.unanswered, found.yours.right) == (1, 3)
    assert "at accuracy 0.750 (1 of 4 left unanswered); latency" in found.lines()[0]


def test_no_model_dominates_what_promises_given_answers_alone() -> None:
    """`a` is cheaper, and right where this one withholds its answer; it promises something else."""
    gives = np.random.default_rng(3).random(600) < 0.5
    found = outcome(np.random.default_rng(4).integers(15, 25, 600), gives)
    models = singles(np.full((600, 1), 10), np.ones((600, 1)))
    assert savings_of(found, models, "a", "test").instead == "a"
    assert savings_of(found, models, "a", "test", promised="given").instead is None

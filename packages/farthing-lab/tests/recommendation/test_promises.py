"""Other promises about a trained policy: proved on one part, kept on fresh questions."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from subprocess import run
from sys import executable

import numpy as np
import pytest
from question_parts import proof_of
from scipy import stats
from sure_policy import CONFIG, Sure, bundled, drawn

from farthing.bundle.folder import load
from farthing.errors import InputError, UnknownNameError
from farthing.methods.base import Dataset
from farthing.process.base import Policy
from farthing.process.batch_replay import followed, replay
from farthing.process.budget import PerQuestion
from farthing.process.operating_points import OperatingPoints
from farthing.process.replay import ReplayOutcome, outcome, paths
from farthing.promises.base import Promise
from farthing.promises.figures import Figure
from farthing.promises.kinds.budget import Budget, BudgetPromise, Spending
from farthing.promises.kinds.coverage import Coverage
from farthing.promises.kinds.none import NoPromise
from farthing.promises.kinds.parity import Parity, ParityPromise
from farthing.promises.kinds.selective import Selective, SelectivePromise
from farthing.promises.observed import Facts
from farthing.promises.paired import Paired
from farthing.recommendation.evaluate import evaluate
from farthing.recommendation.pipeline import calibrate, train
from farthing.recommendation.played import Questions, grid, operating_points_of
from farthing.recommendation.prove import reference_right
from farthing.recommendation.splits import Split
from farthing.traces.splits import fixed_parts
from farthing_lab.generator.generate import generate
from farthing_lab.promises.weighted import Shift

ALPHA = Fraction(1, 10)
DELTA = Fraction(1, 5)
TARGET = generate(CONFIG, 200, np.random.default_rng(9))
MOST = 10_000_000
MOST_USD = Fraction(MOST, 10**9)


def acted(policy: Policy, part: Questions, kappa: float, empty: str) -> ReplayOutcome:
    then = paths(followed(policy, part.played).scores, part.played, empty)
    return outcome(then, part.played, kappa)


@pytest.fixture
def folder(small: Dataset, tmp_path: Path) -> Path:
    train(small, "stopping", ALPHA, tmp_path / "b")
    return tmp_path / "b"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("asked", "what"),
    [
        (Selective(Fraction(1, 2), DELTA), "answers given"),
        (Parity(epsilon=Fraction(1, 5), delta=DELTA), "accuracy less that of guide"),
        (Budget("0.0009", MOST_USD, DELTA), "USD a question"),
        (Shift(Fraction(3, 4), TARGET), "coverage in the mix of this file"),
    ],
    ids=["selective", "parity", "budget", "shift"],
)
def test_a_promise_is_saved_acted_on_and_judged(
    small: Dataset, folder: Path, asked: Promise, what: str
) -> None:
    found = calibrate(folder, small.traces, asked)
    bundle = load(folder)
    assert bundle.certificate == found.certificate
    assert found.certificate.promises
    assert bundle.kappa == found.certificate.kappa
    judged = evaluate(folder, small.traces).judged
    assert judged is not None
    assert what in judged.what
    assert judged.interval[0] <= judged.value <= judged.interval[1]
    assert judged.verdict in {"kept", "missed within chance"}


def test_the_certified_point_is_the_one_that_the_bundle_acts_with(
    small: Dataset, folder: Path
) -> None:
    parts = fixed_parts(small.traces, np.random.default_rng(0))
    held, policy = small.traces.take(parts.calibrate), load(folder).policy
    trained = replay(policy, small.traces.take(parts.train), "argmax")
    kappas = grid(trained)
    menu = operating_points_of(replay(policy, held, "argmax"), kappas)
    budget = calibrate(folder, small.traces, Budget("0.0009", MOST_USD, DELTA)).certificate
    assert isinstance(budget.promise, BudgetPromise)
    assert budget.promise.point is not None
    assert budget.kappa == kappas[budget.promise.point]
    assert budget.verify(Spending(menu.cost_nano, menu.covered, MOST, kappas)) == []
    dearer = Spending(menu.cost_nano * 2, menu.covered, MOST, kappas)
    assert budget.verify(dearer) != []
    parity = calibrate(
        folder, small.traces, Parity(epsilon=Fraction(1, 5), delta=DELTA)
    ).certificate
    assert isinstance(parity.promise, ParityPromise)
    kept = menu.keep(np.arange(parity.promise.points))
    assert parity.promise.reference == "guide"
    right = reference_right(held, "guide")
    paired = Paired(kept.cost_nano, kept.correct, right, "guide", kept.values)
    assert parity.verify(paired) == []


@pytest.mark.slow
def test_what_is_not_proved_leaves_the_bundle_as_it_was(small: Dataset, folder: Path) -> None:
    calibrate(folder, small.traces, Coverage(1 - ALPHA))
    before = load(folder).certificate
    for asked in (
        Selective(Fraction(999, 1000), DELTA),
        Parity(epsilon=Fraction(1, 1000), delta=DELTA),
        Budget("1e-6", MOST_USD, DELTA),
    ):
        found = calibrate(folder, small.traces, asked).certificate
        assert not found.promises
        assert "do not prove" in found.sentence()
    assert load(folder).certificate == before


def test_refusals(small: Dataset, folder: Path) -> None:
    with pytest.raises(UnknownNameError, match="guide"):
        calibrate(folder, small.traces, Parity("gide", ALPHA, DELTA))
    with pytest.raises(InputError, match="largest possible"):
        calibrate(folder, small.traces, Budget("1e-6", "2e-6", DELTA))
    other = replace(TARGET, roles=("base", "oracle"))
    with pytest.raises(InputError, match="base and oracle"):
        calibrate(folder, small.traces, Shift(1 - ALPHA, other))
    with pytest.raises(InputError, match="trained the policy"):
        calibrate(folder, small.traces, Parity(None, ALPHA, DELTA), split=Split(1))


def test_a_promise_that_means_two_things_or_nothing_is_refused() -> None:
    with pytest.raises(InputError, match="give one"):
        Coverage(0.9, delta=0.1, within_groups=True)
    with pytest.raises(InputError, match="give one"):
        Coverage(0.9, within_groups=True, online=True)
    with pytest.raises(InputError, match="online is about all questions"):
        Coverage(0.9, online=True, population="solvable")
    for usd, most in (("0.02", "0.02"), (0, 1), (0.02, 0.002)):
        with pytest.raises(InputError, match=r"usd, the budget, is \$0.* below most_usd, .* \$"):
            Budget(usd, most)
    with pytest.raises(InputError, match="usd is nan, which is no amount"):
        Budget(float("nan"), 1)


def test_a_float_of_numpy_counts_as_the_decimal_that_it_prints_as() -> None:
    assert Coverage(np.float64(0.9)).alpha == ALPHA
    assert Budget(np.float64(0.002), np.float64(0.02)).nano == 2_000_000


def test_an_online_promise_says_the_budget_that_it_was_made_under() -> None:
    part = drawn(100, 5)
    budget = PerQuestion(40_000_000, {"base": 1_000_000, "guide": 9_000_000})
    made = proof_of(Coverage(0.9, online=True), bundled(Sure(), part), part, part, budget)
    assert made.certificate.question_budget_nano == 40_000_000


def test_the_menu_falls_from_least_to_everything_and_costs_rise(small: Dataset) -> None:
    replayed = replay(Sure(), small.traces, "allow")
    kappas = grid(replayed)
    menu = operating_points_of(replayed, kappas)
    assert kappas[-1] == 0
    assert len(kappas) <= 50
    assert (np.diff(kappas) < 0).all()
    assert (np.diff(menu.cost_nano, axis=1) >= 0).all()
    assert (np.diff(menu.covered.astype(int), axis=1) >= 0).all()
    assert (np.diff(menu.answered.astype(int), axis=1) >= 0).all()


def test_which_answers_of_a_role_are_right() -> None:
    assert (reference_right(TARGET, "base") == TARGET.correct[:, 0, 0]).all()


def test_verdicts() -> None:
    kept = Figure("c", 0.92, (0.88, 0.95), 0.9)
    assert kept.verdict == "kept"
    assert replace(kept, value=0.89).verdict == "missed within chance"
    assert replace(kept, value=0.8, interval=(0.7, 0.89)).verdict == "broken"
    dear = Figure("USD", 0.3, (0.2, 0.4), 0.35, at_most=True)
    assert dear.verdict == "kept"
    assert replace(dear, promised=0.25).verdict == "missed within chance"
    assert replace(dear, promised=0.1).verdict == "broken"


def test_a_judged_figure_is_what_was_counted() -> None:
    part = drawn(100, 5)
    found = acted(Sure(), part, 0.9, "allow")
    sure = SelectivePromise(alpha=ALPHA, delta=DELTA, point=0, points=1)
    judged = sure.realised(found, Facts())
    assert judged is not None
    answered, right = int((found.set_size > 0).sum()), int(found.best_correct.sum())
    assert 0 < answered < 100
    assert judged.value == right / answered
    exact = stats.binomtest(right, answered).proportion_ci(method="exact")
    assert judged.interval == pytest.approx((exact.low, exact.high))
    assert NoPromise().realised(found, Facts()) is None


@pytest.mark.slow
def test_a_bundle_with_a_promise_loads_without_learning_libraries(
    small: Dataset, folder: Path
) -> None:
    calibrate(folder, small.traces, Parity(epsilon=Fraction(1, 5), delta=DELTA))
    program = (
        "import sys; from farthing.bundle.folder import load; "
        f"b = load({str(folder)!r}); assert b.certificate.promise.reference == 'guide'; "
        "assert not {'torch', 'sklearn'} & set(sys.modules)"
    )
    done = run([executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


RUNS, FRESH = 60, 20_000


def _just_short(kind: str, at: OperatingPoints, reference: float) -> Promise:
    """Ask for a thousandth more than the operating point has."""
    if kind == "parity":
        lost = max(reference - at.correct.mean(), 0)
        return Parity("guide", Fraction(max(round(1000 * lost), 2), 1000), DELTA)
    return Budget(Fraction(int(at.cost_nano.mean()), 10**9), MOST_USD, DELTA)


def _true(asked: Promise, found: ReplayOutcome, reference: float) -> bool:
    match asked:
        case Parity():
            return bool(found.best_correct.mean() >= reference - float(asked.epsilon))
        case Budget():
            return bool(found.cost_nano.mean() <= asked.nano)
    raise AssertionError(asked)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["parity", "budget"])
def test_a_promise_fails_no_oftener_than_it_may(kind: str) -> None:
    """Levels sit just short of what one of the points truly has, where proving is riskiest."""
    policy, train_part, fresh = Sure(), drawn(400, 0), drawn(FRESH, 1)
    bundle = bundled(policy, train_part)
    reference = float(reference_right(fresh.recorded, "guide").mean())
    kappas = grid(replay(policy, train_part.played, "argmax"))
    truth = operating_points_of(replay(policy, fresh.played, "argmax"), kappas)
    middle = len(kappas) // 2
    asked = _just_short(kind, truth.keep(np.array([middle])), reference)
    failed = proved = 0
    rng = np.random.default_rng(2)
    for _ in range(RUNS):
        rows = np.sort(rng.integers(0, FRESH, 300))
        held = Questions(fresh.recorded.take(rows), fresh.played.take(rows))
        made = proof_of(asked, bundle, train_part, held, None)
        if not made.certificate.promises:
            continue
        proved += 1
        found = acted(policy, fresh, made.certificate.kappa, made.empty)
        failed += not _true(asked, found, reference)
    assert proved > 0
    assert stats.binomtest(failed, RUNS, float(DELTA), alternative="greater").pvalue > 1e-3

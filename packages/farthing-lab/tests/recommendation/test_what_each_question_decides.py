"""Which questions train, choose, prove and measure a recommendation, for every promise.

On the questions of one part the models change places: what the small one said, cost and got right
is the large one's, and the other way round. Whatever is decided on that part then changes, and
nothing else does.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from made_up_pool import ROLES, pool, questions
from told_pool import COST_USD, records, traces

import farthing as ft
from farthing.api.recommendation import Recommendation
from farthing.errors import InputError
from farthing.methods.base import Dataset, Saveable, Variant
from farthing.methods.cards import card
from farthing.promises.base import Promise
from farthing.promises.statistics.cross_fitted import CrossFitted
from farthing.recommendation import candidates, splits
from farthing.recommendation.splits import Roles
from farthing.traces.arrays import FloatArray, IntArray, TraceArrays
from farthing.traces.system import RoleSetup as System

QUICK = ("always", "ucci", "stopping", "fixed", "lazy")
N = 600
PARITY = ft.Parity("large", "0.05")
SELECTIVE = ft.Selective("0.9", "0.2")
COVERAGE = ft.Coverage("0.9")
CONFIDENT = "coverage with confidence"
PROMISES: dict[str, Promise] = {
    "parity": PARITY,
    "parity with the strongest": ft.Parity(None, "0.05"),
    "agreement": ft.Agreement("large", "0.2"),
    "agreement with the dearest": ft.Agreement(None, "0.2"),
    "selective": SELECTIVE,
    "escalated": ft.Selective("0.8", "0.2", "large", "0.05"),
    "coverage": COVERAGE,
    CONFIDENT: ft.Coverage("0.9", "0.1"),
}
UNNAMED = ("parity with the strongest", "agreement with the dearest", "coverage", "selective")
NAMED = {"escalated": "large"}
"""What is paid today, by promise; elsewhere it is guessed, or the promise says so."""
PARTS = ("train", "choose", "prove", "report")
HELD_OUT = 100


def side_by_side(asked: Promise) -> bool:
    """Return whether several are proved, so that nobody chooses, and nobody only measures."""
    return isinstance(asked, ft.Parity | ft.Agreement | ft.Selective)


def cases(kinds: Iterable[str]) -> list[tuple[str, str, int | None]]:
    """Return every promise with each part that it has, without and with held-out questions."""
    found: list[tuple[str, str, int | None]] = []
    for kind in kinds:
        if side_by_side(PROMISES[kind]):
            found += [(kind, part, None) for part in ("train", "prove")]
            found += [(kind, part, HELD_OUT) for part in ("train", "prove", "report")]
        else:
            found += [(kind, part, None) for part in PARTS]
    return found


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let few methods take part, so that it takes a moment."""
    enter(monkeypatch, QUICK)


def enter(patch: pytest.MonkeyPatch, names: Sequence[str]) -> None:
    patch.setattr(candidates, "cards", lambda: [card(name) for name in names])


def rows_of(
    arrays: TraceArrays, seed: int = 0, asked: Promise = COVERAGE, holdout: int | None = None
) -> dict[str, IntArray]:
    """Return the questions of each part; but of coverage nobody chooses."""
    several = side_by_side(asked)
    roles = Roles(choose=not several, measure=not several, holdout=holdout)
    return dict(vars(splits.split_four_ways(arrays, seed, roles)))


def turned(values: Any, rows: IntArray) -> Any:
    found = values.copy()
    found[rows] = found[rows][..., ::-1]
    return found


def places_changed(arrays: TraceArrays, rows: IntArray, *, priced: bool = True) -> TraceArrays:
    """Return questions on some of which the small and the large model change places.

    Args:
        arrays: the questions.
        rows: on which of them.
        priced: whether their costs do, too.
    """
    return replace(
        arrays,
        answer=turned(arrays.answer, rows),
        correct=turned(arrays.correct, rows),
        cost_nano=turned(arrays.cost_nano, rows) if priced else arrays.cost_nano,
        signals={name: turned(values, rows) for name, values in arrays.signals.items()},
    )


def decided(advice: Recommendation) -> dict[str, object]:
    """Return all that questions decide: of training, of choosing, of proof and of measurement."""
    said = advice.to_json()
    states = {}
    for one in advice.found.trials:
        assert isinstance(one.bundle.policy, Saveable)
        state, settings = one.bundle.policy.to_state()
        states[one.name] = {name: values.tolist() for name, values in state.items()}, settings
    return {
        "trained": states,
        "tried": said["candidates"],
        "shares": [one.share for one in advice.found.trials],
        "reference": said["reference"]["name"],
        "proof": said["certificate"],
        "chosen": said["chosen"]["method"] if said["certificate"] else None,
        "measured": said["models"],
        "figures": advice.found.found.metrics,
        "sizes": said["questions"],
    }


@cache
def before(kind: str, holdout: int | None = None) -> dict[str, object]:
    return after(pool(N), kind, holdout)


def after(arrays: TraceArrays, kind: str, holdout: int | None = None) -> dict[str, object]:
    asked = PROMISES[kind]
    return decided(
        ft.recommend(questions(arrays), asked, reference=NAMED.get(kind), holdout=holdout)
    )


MAY_CHANGE = {
    "train": {"trained", "tried", "shares", "chosen", "proof", "figures"},
    "choose": {"reference", "trained", "tried", "shares", "chosen", "proof", "figures"},
    "prove": {"proof", "chosen", "figures"},
    "report": {"measured", "figures"},
}
MUST_CHANGE = {"train": "trained", "choose": "tried", "prove": "proof", "report": "measured"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "part", "holdout"),
    [
        pytest.param(*case, marks=pytest.mark.slow if case[0] == "selective" else ())
        for case in cases(kind for kind in PROMISES if kind != CONFIDENT)
    ],
)
def test_a_part_decides_what_it_is_for(kind: str, part: str, holdout: int | None) -> None:
    """What chooses trains nothing, but for rows of models that end in the reference it chose.

    Where nobody chooses, those that train say what is tried, and guess a reference that nobody
    named. Where none is held out, the figures are of those that prove, and of no others.
    """
    arrays, asked = pool(N), PROMISES[kind]
    # Where models are asked in turn their order is that of their prices on all questions.
    priced = not isinstance(asked, ft.Coverage | ft.Selective)
    rows = rows_of(arrays, asked=asked, holdout=holdout)[part]
    other = places_changed(arrays, rows, priced=priced)
    first, then = before(kind, holdout), after(other, kind, holdout)
    changed = {what for what in first if first[what] != then[what]}
    guesses = "train" if side_by_side(asked) else "choose"
    may, must = MAY_CHANGE[part], {MUST_CHANGE[part]}
    if part == guesses and kind in UNNAMED:
        may = may | {"reference"}
    if part == "choose" and kind in NAMED:
        may = may - {"reference", "trained"}
    if part == "report" and not isinstance(asked, ft.Agreement):  # which of the two says it
        must = must | {"figures"}
    if part == guesses and kind == "agreement with the dearest":  # all are graded anew
        may = may | {"measured"}
    if part == "prove" and side_by_side(asked) and holdout is None:
        may, must = may | {"measured"}, must | {"measured"}
    if part == "train" and side_by_side(asked):
        must = must | {"tried"}
    assert changed <= may
    assert must <= changed


@pytest.mark.parametrize(("kind", "part", "holdout"), cases(UNNAMED))
def test_an_unnamed_reference_is_of_the_questions_that_choose(
    kind: str, part: str, holdout: int | None
) -> None:
    """Or, where nobody chooses, of those that train.

    Of all others it may be what it likes there: the strongest, and the dearest.
    """
    arrays, asked = pool(N), PROMISES[kind]
    other = places_changed(arrays, rows_of(arrays, asked=asked, holdout=holdout)[part])
    found = ft.recommend(questions(other), asked, holdout=holdout).to_json()
    guesses = "train" if side_by_side(asked) else "choose"
    assert found["reference"]["name"] == ("small" if part == guesses else "large")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["parity with the strongest", "agreement with the dearest"])
def test_what_takes_no_part_names_the_reference_and_nobody_else(kind: str) -> None:
    """Where the file marks all parts, what it does not mark guesses, and not those that train."""
    split = np.resize(np.array([0, 1, 1, 2, -1], dtype=np.int8), N)
    arrays, asked = replace(pool(N), split=split), PROMISES[kind]
    for mark, name in ((-1, "small"), (0, "large"), (1, "large"), (2, "large")):
        other = places_changed(arrays, np.flatnonzero(split == mark))
        found = ft.recommend(questions(other), asked).to_json()
        assert found["reference"]["name"] == name, mark


# By hand from the same parts


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["coverage", CONFIDENT])
def test_the_proof_is_that_of_a_policy_fitted_and_calibrated_by_hand(kind: str) -> None:
    """Questions that train lay thresholds out, and those that prove do nothing else."""
    asked, seed = PROMISES[kind], 3
    known, parts = questions(pool(N)), rows_of(pool(N), seed)
    advice = ft.recommend(known, asked, reference="large", seed=seed)
    first, *_ = advice.to_json()["candidates"]
    alpha = asked.alpha
    policy = ft.fit(first["method"], known.take(parts["train"]), alpha, seed=seed)
    by_hand = policy.calibrate(known.take(parts["prove"]), asked)
    assert advice.certificate == by_hand.certificate
    assert by_hand.certificate is not None
    assert by_hand.certificate.promises


@pytest.mark.slow
def test_training_has_the_level_the_seed_and_the_part_that_trains(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Look-ahead learns by all three: its policy is that of a fit by hand, and of no other."""
    known = ft.generate("hotpotqa-llama2-7b", 150, seed=2)
    enter(monkeypatch, ("lookahead",))
    advice = ft.recommend(known, ft.Coverage("0.7"), seed=4)
    train = known.take(rows_of(known.arrays, 4)["train"])

    def state(policy: ft.Policy) -> tuple[dict[str, list[float]], dict[str, Any]]:
        assert isinstance(policy.bundle.policy, Saveable)
        arrays, settings = policy.bundle.policy.to_state()
        return {name: values.tolist() for name, values in arrays.items()}, settings

    assert state(advice.policy) == state(ft.fit("lookahead", train, "0.3", seed=4))
    assert state(advice.policy) != state(ft.fit("lookahead", train, "0.1", seed=4))
    assert state(advice.policy) != state(ft.fit("lookahead", train, "0.3", seed=0))


@pytest.mark.slow
def test_another_seed_is_another_division() -> None:
    found = [ft.recommend(questions(pool(N)), PARITY, seed=seed) for seed in (0, 1)]
    train, calibrate = (
        [one.policy.bundle.questions[part] for one in found] for part in ("train", "calibrate")
    )
    assert train[0] != train[1]
    assert calibrate[0] != calibrate[1]


@pytest.mark.slow
def test_how_many_questions_do_what() -> None:
    """Three in ten train, a fifth of the rest measures, three in ten of what is left choose.

    Where several are proved side by side, all that do not train prove, but for a tenth of two
    thousand and more.
    """

    def sizes(asked: Promise, *numbers: int, holdout: int | None = None) -> dict[int, list[int]]:
        parts = {n: rows_of(pool(n), asked=asked, holdout=holdout) for n in numbers}
        return {n: [len(rows) for rows in part.values()] for n, part in parts.items()}

    assert sizes(COVERAGE, 40, 600, 3_000) == {
        40: [12, 6, 17, 5],
        600: [180, 100, 236, 84],
        3_000: [300, 400, 1_800, 500],
    }
    assert sizes(PARITY, 40, 600, 1_999, 2_000, 3_000, 6_000) == {
        40: [12, 0, 28, 0],
        600: [180, 0, 420, 0],
        1_999: [300, 0, 1_699, 0],
        2_000: [300, 0, 1_500, 200],
        3_000: [300, 0, 2_400, 300],
        6_000: [300, 0, 5_200, 500],
    }
    assert sizes(PARITY, 600, 3_000, holdout=50) == {
        600: [180, 0, 370, 50],
        3_000: [300, 0, 2_650, 50],
    }
    assert sizes(PARITY, 3_000, holdout=0) == {3_000: [300, 0, 2_700, 0]}
    found = ft.recommend(questions(pool(40)), PARITY).to_json()
    assert found["questions"] == {"train": 12, "choose": 0, "prove": 28, "report": 0}
    assert not found["held_out"]
    chosen = ft.recommend(questions(pool(40)), ft.Coverage("0.6")).to_json()
    assert chosen["questions"] == {"train": 12, "choose": 6, "prove": 17, "report": 5}
    assert chosen["held_out"]
    for asked in (SELECTIVE, PARITY):
        for name, rows in rows_of(pool(600), asked=asked, holdout=100).items():
            if rows.size:  # by chance, not the first ones or the last
                assert 200 < rows.mean() < 400, name


@pytest.mark.parametrize("holdout", [1, 4, 416, 420])
def test_so_many_as_leave_too_few_are_not_held_out(holdout: int) -> None:
    with pytest.raises(InputError, match=r"hold out 0, or from 5 to 415$"):
        ft.recommend(questions(pool(N)), PARITY, holdout=holdout)


def test_what_the_questions_were_made_with_is_kept() -> None:
    made = {role: System(model=role, kind="A", agent={}, prompts={}) for role in ROLES}
    advice = ft.recommend(ft.Traces(Dataset("made up", pool(N), system=made)), PARITY)
    assert advice.policy.bundle.origin.system == made


# Planted by part


def planted(n: int, wrong: Mapping[tuple[str, str], float]) -> ft.Traces:
    """Return questions that all models have right, but for a share of some part's questions.

    Args:
        n: questions, which are divided as `recommend` does for parity under seed 0.
        wrong: the part and the role to the share.
    """
    right = {role: np.ones(n, dtype=bool) for role in COST_USD}
    for (part, role), share in wrong.items():
        rows = rows_of(pool(n), asked=PARITY)[part]
        right[role][rows[: round(share * len(rows))]] = False
    return traces(records("q", {role: values.tolist() for role, values in right.items()}))


RISING = {("train", "small"): 0.2, ("train", "medium"): 0.1}
"""In training a model is right the oftener the dearer it is, so that all three are points."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("reference", "spoilt", "chosen"),
    [("medium", "large", "best-single"), ("large", "medium", "always-large")],
)
def test_testing_begins_at_the_dearest_point_that_is_of_use(
    monkeypatch: pytest.MonkeyPatch, reference: str, spoilt: str, chosen: str
) -> None:
    """Not at a dearer one, nor at a cheaper one.

    Beside medium nothing but small is of use, so that nobody looks at large. Beside large testing
    begins at medium; that fails, and nothing is passed over.
    """
    enter(monkeypatch, ("best-single",))
    asked = ft.Parity(reference, "0.1")
    fine = ft.recommend(planted(400, RISING), asked)
    assert (fine.found.name, fine.to_json()["chosen"]["cost_usd"]) == ("best-single", 0.0001)
    advice = ft.recommend(planted(400, RISING | {("prove", spoilt): 0.5}), asked)
    assert advice.found.name == chosen


def test_a_trial_says_what_the_point_comes_to_that_testing_would_reach(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where small is wrong on half of the questions that train, testing ends at medium."""
    enter(monkeypatch, ("best-single",))
    sizes = {name: len(rows) for name, rows in rows_of(pool(400), asked=PARITY).items()}
    assert sizes == {"train": 120, "choose": 0, "prove": 280, "report": 0}
    for share, accuracy in ((0.1, 0.9), (0.5, 0.95)):
        wrong = {("train", "small"): share, ("train", "medium"): 0.05}
        known = planted(400, wrong)
        (tried,) = ft.recommend(known, ft.Parity("large", "0.2")).to_json()["candidates"]
        by_hand = CrossFitted(
            120, np.array([0.1, 0.2, 1.0]), np.array([share, 0.05, 0.0]), np.zeros(3)
        )
        assert tried["cost_usd"] == pytest.approx(0.001 * by_hand.score(0.2, 280))
        assert tried["accuracy"] == pytest.approx(accuracy)


@pytest.mark.slow
def test_what_is_expected_is_the_proof_with_as_many_questions_as_will_prove(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of models that always answer: the fewer prove, or the more are lost in training, the dearer.

    Losses of those that prove do not matter.
    """
    enter(monkeypatch, ("always",))

    def expected(
        wrong: Mapping[tuple[str, str], float], epsilon: str, holdout: int
    ) -> dict[str, float]:
        asked = ft.Agreement("large", epsilon, "0.1")
        found = ft.recommend(planted(200, wrong), asked, holdout=holdout).to_json()
        assert found["questions"]["train"] == 60
        assert found["questions"]["prove"] == 140 - holdout
        return {one["method"]: one["cost_usd"] for one in found["candidates"]}

    def by_hand(lost: float, epsilon: float, proving: int) -> float:
        alone = CrossFitted(60, np.array([0.1]), np.array([lost]), np.zeros(1))
        return 0.001 * alone.score(epsilon, proving)

    always = expected({}, "0.05", 0)
    assert always["always-small"] == pytest.approx(by_hand(0.0, 0.05, 140))
    assert always["always-small"] < 0.0004 < always["always-large"] == pytest.approx(0.001)
    fewer = expected({}, "0.05", 100)
    assert fewer["always-small"] == pytest.approx(by_hand(0.0, 0.05, 40))
    assert fewer["always-small"] > always["always-small"]
    lost = expected({("train", "small"): 0.1}, "0.05", 0)
    assert lost["always-small"] == pytest.approx(by_hand(0.1, 0.05, 140))
    assert lost["always-small"] > 0.0007
    assert expected({("prove", "small"): 0.1}, "0.05", 0) == always
    few = expected({}, "0.01", 0)
    assert list(few.values()) == pytest.approx([0.001] * 3)


def test_what_is_withheld_costs_the_reference_as_well() -> None:
    """Half of the questions nobody can answer, and small says which; counted by hand."""
    n, rng = 600, np.random.default_rng(0)
    able = rng.random(n) < 0.5
    known = traces(
        records(
            "q",
            dict.fromkeys(("small", "large"), able.tolist()),
            sure=np.where(able, 0.9, 0.5).tolist(),
        )
    )
    found = ft.recommend(known, ft.Selective("0.9", "0.2"), reference="large").to_json()
    tried = {one["method"]: one["cost_usd"] for one in found["candidates"]}
    withheld = 1 - able[rows_of(pool(n), asked=SELECTIVE)["train"]].mean()
    assert tried["small, by its confidence"] == pytest.approx(0.0001 + withheld * 0.001)


# Who takes part, and how fast


@pytest.mark.slow
def test_sets_are_promised_by_others_than_single_answers() -> None:
    one, sets = (
        {tried["method"] for tried in before(kind)["tried"]}  # type: ignore[attr-defined]
        for kind in ("parity", "coverage")
    )
    assert {"always-large", "ucci"} <= one
    assert {"lazy", "fixed-1"} <= sets
    assert not one & sets


def test_rows_of_models_end_in_the_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where medium is paid for today nobody asks large, which would cost a dollar."""
    enter(monkeypatch, ("ucci",))
    arrays = pool(N)
    dear = replace(arrays, cost_nano=arrays.cost_nano * np.where(np.arange(3) == 2, 500, 1))
    found = ft.recommend(questions(dear), ft.Parity("medium", "0.3")).to_json()
    assert found["chosen"]["method"] == "ucci"
    assert found["chosen"]["cost_usd"] < 0.0003


def timed(arrays: TraceArrays, *seconds: float | FloatArray) -> TraceArrays:
    """Return questions whose models take so long, each [n] or always."""
    taken = np.stack([np.broadcast_to(one, len(arrays)) for one in seconds], axis=1)
    signals = {**arrays.signals, "latency_s": taken[:, None].astype(np.float32)}
    return replace(arrays, signals=signals)


@pytest.mark.slow
def test_what_takes_exactly_as_long_as_it_may_is_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    enter(monkeypatch, ("always",))
    known = questions(timed(pool(N), 1.0, 2.0, 4.0))
    found = ft.recommend(known, ft.Parity("large", "0.3"), deadline_s=1.0)
    assert found.found.name == "always-small"
    assert set(dict(found.found.skipped)) == {"always-medium", "always-large"}
    unproved = ft.recommend(known, ft.Parity("large", "0.0001"), deadline_s=4.0)
    assert unproved.found.name == "always-large"
    assert not any("nothing that is proved is faster" in note for note in unproved.found.notes)


@pytest.mark.parametrize(("slow", "kept"), [(0.02, True), (0.1, False)])
def test_nineteen_of_twenty_questions_are_to_be_in_time(
    monkeypatch: pytest.MonkeyPatch, slow: float, kept: bool
) -> None:
    enter(monkeypatch, ("always",))
    late = np.random.default_rng(0).permutation(N) < slow * N
    known = questions(timed(pool(N), np.where(late, 9.0, 1.0), 1.0, 1.0))
    found = ft.recommend(known, ft.Parity("large", "0.3"), deadline_s=2.0)
    assert ("always-small" in dict(found.found.skipped)) != kept


# `auto`


@dataclass(frozen=True)
class Spy:
    """A learner that writes down what it is fitted on."""

    of: Any
    seen: list[list[str]]

    def fit(self, train: TraceArrays, *rest: Any) -> Any:
        self.seen.append(train.ids.tolist())
        return self.of.fit(train, *rest)


def spied_on(patch: pytest.MonkeyPatch, name: str) -> list[list[str]]:
    """Let one method alone take part; return the questions of its trainings, as they come."""
    seen: list[list[str]] = []
    method = card(name)

    def variants(dataset: Dataset) -> list[Variant]:
        return [replace(one, learner=Spy(one.learner, seen)) for one in method.on(dataset)]

    patch.setattr(candidates, "cards", lambda: [replace(method, variants=variants)])
    return seen


def told(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return with how many proving questions candidates are scored, as they come."""
    proving: list[int] = []
    score = CrossFitted.score

    def noting(self: CrossFitted, margin: float, n: int) -> float:
        proving.append(n)
        return score(self, margin, n)

    monkeypatch.setattr(CrossFitted, "score", noting)
    return proving


def test_auto_leaves_each_question_out_once_and_proves_with_as_many_as_there_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All train; what is expected of each is of trainings without it."""
    seen, n = spied_on(monkeypatch, "always"), 80
    proving = told(monkeypatch)

    def auto(lost: Sequence[str]) -> str:
        """Return the method where the small model says something else on some questions."""
        small = [f"q-{i}" not in lost for i in range(n)]
        known = traces(records("q", {"small": small, "large": [True] * n}))
        return ft.fit("auto", known, grade="same as large").method

    every = [f"q-{i}" for i in range(n)]
    assert auto([]) == "always-small"
    assert proving == [n, n]
    folds = 5
    assert [sorted(those) == sorted(every) for those in seen] == (
        [True, *[False] * folds] * 2 + [True]  # each model alone, and then what was chosen
    )
    for of in (seen[1 : folds + 1], seen[folds + 2 : -1]):
        left_out = [name for those in of for name in every if name not in those]
        assert sorted(left_out) == sorted(every)
    assert auto(every[:20]) == "always-large"


def test_auto_of_what_is_covered_trains_on_one_half_and_chooses_on_the_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where all is right on the half that chooses, one round is enough."""
    seen, known = spied_on(monkeypatch, "fixed"), ft.generate("hotpotqa-llama2-7b", 80, seed=1)

    def auto(right: Sequence[str]) -> str:
        arrays = known.arrays
        correct = arrays.correct.copy()
        correct[np.isin(arrays.ids, right)] = True
        return ft.fit("auto", questions(replace(arrays, correct=correct)), alpha="0.2").method

    assert auto([]) == "fixed-3"
    trained, every = seen[0], known.arrays.ids.tolist()
    assert all(one == trained for one in seen[:-1])
    assert sorted(seen[-1]) == sorted(every)
    assert len(trained) == 40
    others = [name for name in every if name not in trained]
    assert auto(trained) == "fixed-3"
    assert auto(others) == "fixed-1"

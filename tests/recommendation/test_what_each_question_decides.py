"""Which questions train, choose, prove and measure a recommendation, for every promise.

On the questions of one part the models change places: what the small one said, cost and got right
is the large one's, and the other way round. Whatever is decided on that part then changes, and
nothing else does.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from made_up_pool import ROLES, pool, questions
from told_pool import COST_USD, records, traces

import farthing as ft
from farthing.api.recommendation import Recommendation
from farthing.methods.base import Dataset, Saveable, Variant
from farthing.methods.cards import card
from farthing.promises.base import Promise
from farthing.recommendation import candidates, splits
from farthing.traces.arrays import FloatArray, IntArray, TraceArrays
from farthing.traces.system import RoleSetup as System

QUICK = ("agreement-cascade", "always", "micp", "ucci", "stopping", "fixed", "lazy")
N = 600
PARITY = ft.Parity("large", "0.05")
SELECTIVE = ft.Selective("0.9", "0.2")
CONFIDENT = "coverage with confidence"
PROMISES: dict[str, Promise] = {
    "parity": PARITY,
    "parity with the strongest": ft.Parity(None, "0.05"),
    "agreement": ft.Agreement("large", "0.2"),
    "agreement with the dearest": ft.Agreement(None, "0.2"),
    "selective": SELECTIVE,
    "escalated": ft.Selective("0.8", "0.2", "large", "0.05"),
    "coverage": ft.Coverage("0.9"),
    CONFIDENT: ft.Coverage("0.9", "0.1"),
}
UNNAMED = ("parity with the strongest", "agreement with the dearest", "coverage")
PARTS = ("train", "choose", "prove", "report")


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let few methods take part, so that it takes a moment."""
    enter(monkeypatch, QUICK)


def enter(patch: pytest.MonkeyPatch, names: Sequence[str]) -> None:
    patch.setattr(candidates, "cards", lambda: [card(name) for name in names])


def rows_of(arrays: TraceArrays, seed: int = 0) -> dict[str, IntArray]:
    """Return the questions of each part."""
    return dict(vars(splits.split_four_ways(arrays, seed)))


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
        "reference": said["reference"]["name"],
        "proof": said["certificate"],
        "chosen": said["chosen"]["method"] if said["certificate"] else None,
        "measured": said["models"],
        "sizes": said["questions"],
    }


@cache
def before(kind: str) -> dict[str, object]:
    return decided(ft.recommend(questions(pool(N)), PROMISES[kind]))


MAY_CHANGE = {
    "train": {"trained", "tried", "chosen", "proof"},
    "choose": {"reference", "trained", "tried", "chosen", "proof"},
    "prove": {"proof", "chosen"},
    "report": {"measured"},
}
MUST_CHANGE = {"train": "trained", "choose": "tried", "prove": "proof", "report": "measured"}


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("kind", [kind for kind in PROMISES if kind != CONFIDENT])
def test_a_part_decides_what_it_is_for(kind: str, part: str) -> None:
    """What chooses trains nothing, but for rows of models that end in the reference it chose."""
    arrays, asked = pool(N), PROMISES[kind]
    # Of a promise about sets the order of the models is that of their prices on all questions.
    other = places_changed(arrays, rows_of(arrays)[part], priced=not isinstance(asked, ft.Coverage))
    after, first = decided(ft.recommend(questions(other), asked)), before(kind)
    changed = {what for what in first if first[what] != after[what]}
    graded_anew = part == "choose" and kind == "agreement with the dearest"
    assert changed <= MAY_CHANGE[part] | ({"measured"} if graded_anew else set())
    assert MUST_CHANGE[part] in changed
    if part == "choose" and kind in {"parity", "agreement"}:
        assert changed <= {"tried", "chosen", "proof"}


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("kind", UNNAMED)
def test_an_unnamed_reference_is_of_the_questions_that_choose(kind: str, part: str) -> None:
    """Of all others it may be what it likes there: the strongest, and the dearest."""
    arrays, asked = pool(N), PROMISES[kind]
    other = places_changed(arrays, rows_of(arrays)[part])
    found = ft.recommend(questions(other), asked).to_json()
    assert found["reference"]["name"] == ("small" if part == "choose" else "large")


# By hand from the same parts


@pytest.mark.parametrize("kind", ["selective", "escalated", "coverage", CONFIDENT])
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


def test_another_seed_is_another_division() -> None:
    found = [ft.recommend(questions(pool(N)), PARITY, seed=seed) for seed in (0, 1)]
    train, calibrate = (
        [one.policy.bundle.questions[part] for one in found] for part in ("train", "calibrate")
    )
    assert train[0] != train[1]
    assert calibrate[0] != calibrate[1]


def test_how_many_questions_do_what() -> None:
    """Three in ten train, a fifth of the rest measures, three in ten of what is left choose."""
    sizes = {n: [len(rows) for rows in rows_of(pool(n)).values()] for n in (40, 600, 3_000)}
    assert sizes == {40: [12, 6, 17, 5], 600: [180, 100, 236, 84], 3_000: [300, 400, 1_800, 500]}
    assert ft.recommend(questions(pool(40)), PARITY).to_json()["questions"]["prove"] == 17
    for rows in rows_of(pool(600)).values():  # by chance, not the first ones or the last
        assert 200 < rows.mean() < 400


def test_what_the_questions_were_made_with_is_kept() -> None:
    made = {role: System(model=role, kind="A", agent={}, prompts={}) for role in ROLES}
    advice = ft.recommend(ft.Traces(Dataset("made up", pool(N), system=made)), PARITY)
    assert advice.policy.bundle.origin.system == made


# Planted by part


def planted(n: int, wrong: Mapping[tuple[str, str], float]) -> ft.Traces:
    """Return questions that all models have right, but for a share of some part's questions.

    Args:
        n: questions, which are divided as `recommend` does under seed 0.
        wrong: the part and the role to the share.
    """
    right = {role: np.ones(n, dtype=bool) for role in COST_USD}
    for (part, role), share in wrong.items():
        rows = rows_of(pool(n))[part]
        right[role][rows[: round(share * len(rows))]] = False
    return traces(records("q", {role: values.tolist() for role, values in right.items()}))


RISING = {("train", "small"): 0.2, ("train", "medium"): 0.1}
"""In training a model is right the oftener the dearer it is, so that all three are points."""


@pytest.mark.parametrize(
    ("reference", "spoilt", "chosen"),
    [("medium", "large", "best-single"), ("large", "medium", "always-large")],
)
def test_testing_begins_where_the_questions_that_choose_say(
    monkeypatch: pytest.MonkeyPatch, reference: str, spoilt: str, chosen: str
) -> None:
    """At the dearest point that is of use: not at a dearer one, nor at a cheaper one.

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
    """Small is wrong on half of the questions that choose, so that testing ends at medium."""
    enter(monkeypatch, ("best-single",))
    for share, cost, accuracy in ((0.0, 0.0001, 1.0), (0.5, 0.0002, 1.0)):
        known = planted(400, RISING | {("choose", "small"): share})
        (tried,) = ft.recommend(known, ft.Parity("large", "0.2")).to_json()["candidates"]
        assert tried["cost_usd"] == pytest.approx(cost)
        assert tried["accuracy"] == accuracy


def test_what_is_expected_is_the_proof_with_as_many_questions_as_will_prove(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All agree. The questions that choose are too few for a proof, those that prove are not."""
    enter(monkeypatch, ("always",))
    sizes = {name: len(rows) for name, rows in rows_of(pool(200)).items()}
    assert 0.95 ** sizes["choose"] > 0.1 > 0.95 ** sizes["prove"]
    found = ft.recommend(planted(200, {}), ft.Agreement("large", "0.05", "0.1"))
    tried = {one["method"]: one["cost_usd"] for one in found.to_json()["candidates"]}
    assert tried["always-small"] == pytest.approx(0.0001)
    # Of as many as choose, 7 % would often be few enough; of as many as prove they seldom are.
    lost = planted(200, {("choose", "small"): 0.07})
    some = ft.recommend(lost, ft.Agreement("large", "0.05", "0.1")).to_json()["candidates"]
    assert {one["method"]: one["cost_usd"] for one in some}["always-small"] > 0.0007
    few = ft.recommend(planted(200, {}), ft.Agreement("large", "0.015", "0.1"), seed=0)
    assert 0.985 ** sizes["prove"] > 0.1
    costs = [one["cost_usd"] for one in few.to_json()["candidates"]]
    assert costs == pytest.approx([0.001] * 3)


def test_what_is_withheld_costs_the_reference_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of the questions nobody can answer, and small says which; counted by hand."""
    enter(monkeypatch, ("always",))
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
    withheld = 1 - able[rows_of(pool(n))["choose"]].mean()
    assert tried["always-small"] == pytest.approx(0.0001 + withheld * 0.001)


# Who takes part, and how fast


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


def test_auto_trains_on_one_half_chooses_on_the_other_and_proves_with_as_many_as_there_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On 40 questions that agree nothing is proved, on 80 it is."""
    seen, n = spied_on(monkeypatch, "always"), 80
    assert 0.95 ** (n // 2) > 0.1 > 0.95**n

    def auto(lost: Sequence[str]) -> str:
        """Return the method where the small model says something else on some questions."""
        small = [f"q-{i}" not in lost for i in range(n)]
        known = traces(records("q", {"small": small, "large": [True] * n}))
        return ft.fit("auto", known, grade="same as large").method

    assert auto([]) == "always-small"
    trained = seen[0]
    assert all(one == trained for one in seen[:-1])  # each model alone, and then what was chosen
    assert sorted(seen[-1]) == sorted(f"q-{i}" for i in range(n))
    assert len(trained) == n // 2
    others = [f"q-{i}" for i in range(n) if f"q-{i}" not in trained]
    assert auto(trained[:20]) == "always-small"
    assert auto(others[:20]) == "always-large"

"""The order of purchases and its thresholds, against one question at a time, call by call."""

from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement, pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import ExtraTreesRegressor

from farthing.bundle.folder import load, save
from farthing.errors import InputError
from farthing.methods.lookahead.estimates import exported
from farthing.methods.lookahead.learner import LookaheadConfig, LookaheadLearner
from farthing.methods.lookahead.policy import LookaheadPolicy, best_line, best_purchase, outlooks
from farthing.process.action_space import SpaceName
from farthing.process.base import hidden
from farthing.process.batch_replay import NestedReplay, followed, replay
from farthing.process.play import follow
from farthing.process.replay import outcome
from farthing.traces.arrays import NO_ANSWER, TraceArrays
from farthing.traces.system import origin_of


def make_traces(seed: int, n: int, horizon: int, roles: tuple[str, ...]) -> TraceArrays:
    rng = np.random.default_rng(seed)
    shape = (n, horizon, len(roles))
    answer = rng.integers(NO_ANSWER, 3, shape).astype(np.int16)
    confidence = np.where(answer == 0, 0.6, 0.3) + 0.4 * rng.random(shape)
    return TraceArrays(
        ids=np.array([f"q{i}" for i in range(n)]),
        roles=roles,
        models=("",) * len(roles),
        answer=answer,
        correct=answer == 0,
        cost_nano=rng.integers(1, 1_000, shape) * np.arange(1, len(roles) + 1),
        signals={"confidence": confidence.astype(np.float32)},
        group=np.full(n, -1, np.int32),
        group_names=(),
        split=np.full(n, -1, np.int8),
        recorded=np.full(n, horizon, np.int16),
        independent=np.ones(n, bool),
    )


SPACES: tuple[SpaceName, ...] = ("rounds", "calls")
TOGETHER: tuple[tuple[SpaceName, int], ...] = (("rounds", 1), ("calls", 1), ("calls", 3))
"""Action spaces, and how many calls one decision may buy there."""
SHAPES = {"talk": (2, ("base", "guide")), "pool": (1, ("a", "b", "c")), "cascade": (3, ("m",))}


@cache
def trained(shape: str, space: SpaceName, together: int = 1) -> LookaheadPolicy:
    horizon, roles = SHAPES[shape]
    train = make_traces(0, 80, horizon, roles)
    config = LookaheadConfig(space, 2, trees=5, leaf=5, together=together, wait_price=together - 1)
    learner = LookaheadLearner(config)
    policy = learner.fit(train, Fraction(1, 10), 0, Silent()).policy
    assert isinstance(policy, LookaheadPolicy)
    return policy


class Silent:
    def update(self, done: int, total: int, figures: object) -> None:
        pass


@pytest.mark.slow
@given(st.integers(0, 2**32 - 1))
@settings(deadline=None, max_examples=20)
def test_an_exported_forest_predicts_what_scikit_learn_does(seed: int) -> None:
    """Bit for bit, also where a feature equals a threshold: few values, and midpoints of them."""
    rng = np.random.default_rng(seed)
    seen = rng.integers(0, 4, (120, 5)) * 0.1
    seen[:, 0] = rng.random(120)
    model = ExtraTreesRegressor(7, min_samples_leaf=3, random_state=seed % 1000)
    model.fit(seen, rng.random((120, 2)))
    forest = exported(model)
    trees = [one.tree_ for one in model.estimators_]
    edges = np.concatenate([tree.threshold[tree.feature >= 0] for tree in trees])
    asked = np.concatenate([seen, rng.choice(edges, (200, 5))])
    expected = model.predict(asked)
    np.testing.assert_array_equal(forest.predict(asked), expected)
    np.testing.assert_array_equal([forest.predict(one[None])[0] for one in asked], expected)


def blank(traces: TraceArrays, question: int, known: set[int]) -> TraceArrays:
    """One question of which nothing but some calls was said."""
    one = traces.take(np.array([question]))
    kept = np.isin(np.arange(one.answer[0].size), list(known)).reshape(one.answer.shape)
    return replace(
        one,
        answer=np.where(kept, one.answer, NO_ANSWER),
        correct=one.correct & kept,
        signals={name: np.where(kept, v, np.nan) for name, v in one.signals.items()},
    )


def lines_of(policy: LookaheadPolicy, traces: TraceArrays) -> list[list[list[int]]]:
    """[line][item] to the numbers of its calls."""
    horizon, roles = traces.horizon, traces.n_roles
    if policy.space == "rounds":
        return [[[t * roles + r for r in range(roles)] for t in range(horizon)]]
    if roles == 1:
        return [[[t]] for t in range(horizon)]
    return [[[t * roles + r] for t in range(horizon)] for r in range(roles)]


def by_hand(
    policy: LookaheadPolicy, traces: TraceArrays, question: int
) -> list[tuple[list[int], float]]:
    """Buy one question set by set; return (calls, score of having gone on to them).

    What a set says is not looked at before all of it was bought. The first purchase is made at
    every threshold, and what belongs to its set at those up to the set's score.
    """
    lines = lines_of(policy, traces)
    bought, known = [0] * len(lines), set[int]()
    course: list[tuple[list[int], float]] = []
    while any(b < len(line) for b, line in zip(bought, lines, strict=True)):
        part = blank(traces, question, known)
        cells = np.zeros((1, traces.answer[0].size), bool)
        cells[0, list(known)] = True
        features = policy.features.look(part, np.zeros(1, int), cells)
        outlook, step = outlooks(policy.latent, part), np.array([sum(bought)])
        told = features if outlook is None else outlook[[0], step]
        gain, cost = policy.estimate.predict(features, told, step)
        sets = [
            one
            for size in range(1, policy.together + 1)
            for one in combinations_with_replacement(range(len(lines)), size)
            if all(one.count(k) <= len(line) for k, line in enumerate(lines))
        ]
        left = [len(line) - b for b, line in zip(bought, lines, strict=True)]
        worths = [
            gain[0, j] / cost[0, j] if all(one.count(k) <= left[k] for k in one) else -np.inf
            for j, one in enumerate(sets)
        ]
        lead = int(np.argmax(worths[: len(lines)]))
        nets = [
            policy.price_nano * gain[0, j] - cost[0, j]
            if lead in one and worths[j] > -np.inf
            else -np.inf
            for j, one in enumerate(sets)
        ]
        chosen = int(np.argmax(nets))
        w = max(worths[chosen] * policy.price_nano, 0.0)
        for line in sorted(sets[chosen], key=lambda line: line != lead):
            calls = lines[line][bought[line]]
            course.append((calls, w / (1 + w) if course else 1.0))
            bought[line] += 1
            known |= set(calls)
    return course


def nested(policy: LookaheadPolicy, traces: TraceArrays) -> NestedReplay:
    played = replay(policy, traces, "argmax")
    assert isinstance(played, NestedReplay)
    return played


@pytest.mark.parametrize(("space", "together"), TOGETHER)
@pytest.mark.parametrize("shape", SHAPES)
def test_critical_thresholds_against_enumeration(
    shape: str, space: SpaceName, together: int
) -> None:
    """Every threshold tried on every question: cost and coverage as replayed, sets nested."""
    policy, traces = trained(shape, space, together), make_traces(7, 25, *SHAPES[shape])
    played = nested(policy, traces)
    courses = [by_hand(policy, traces, q) for q in range(25)]
    scores = sorted({score for course in courses for _, score in course} | {0.0, 1.0})
    between = [(a + b) / 2 for a, b in pairwise(scores)]
    cost, right = traces.cost_nano.reshape(25, -1), traces.correct.reshape(25, -1)
    critical = np.full(25, -np.inf)
    before: list[set[int]] = [set(range(traces.answer[0].size)) for _ in courses]
    for kappa in sorted(scores + between):
        found = played.act(kappa)
        for q, course in enumerate(courses):
            paid = set[int]()
            for calls, score in course:
                if score < kappa:
                    break
                paid |= set(calls)
            assert paid <= before[q]
            before[q] = paid
            assert found.cost_nano[q] == sum(int(cost[q, call]) for call in paid)
            assert found.in_set[q] == any(right[q, call] for call in paid)
            if found.in_set[q]:
                critical[q] = kappa
    critical[~traces.solvable] = np.inf
    expected = played.followed.critical
    np.testing.assert_allclose(np.minimum(expected, 1), np.minimum(critical, 1), rtol=1e-12)


@pytest.mark.parametrize("shape", SHAPES)
def test_at_threshold_0_everything_is_paid_in_either_space(shape: str) -> None:
    traces = make_traces(8, 30, *SHAPES[shape])
    for space in SPACES:
        along = followed(trained(shape, space), traces)
        played = nested(trained(shape, space), traces)
        found = outcome(played.followed, along.traces, 0.0)
        np.testing.assert_array_equal(found.cost_nano, traces.cost_nano.sum(axis=(1, 2)))
        np.testing.assert_array_equal(found.in_set, traces.solvable)
        assert (along.scores[:, :, :-1] == 1).all()


def test_the_best_line_is_the_best_on_offer() -> None:
    gain = np.array([[0.5, 0.6, 0.9], [0.1, 0.4, 0.4], [0.2, 0.2, 0.2]])
    cost = np.array([[1.0, 2.0, 1.0], [1.0, 2.0, 2.0], [1.0, 1.0, 1.0]])
    can = np.array([[True, True, False], [False, True, True], [False] * 3])
    line, worth = best_line(gain, cost, can)
    assert line.tolist() == [0, 1, -1]
    assert worth.tolist() == [0.5, 0.2, -np.inf]
    alone, same = best_purchase(gain, cost, can, np.eye(3, dtype=np.int64), 9.0)
    assert alone[:, 0].tolist() == line.tolist()
    assert same.tolist() == worth.tolist()


def test_the_best_line_leads_and_the_best_set_with_it_is_bought() -> None:
    sets = np.array([[1, 0], [0, 1], [2, 0], [1, 1], [0, 2]])
    gain, cost = np.array([[0.2, 0.3, 0.9, 0.5, 0.35]]), np.array([[2.0, 1.0, 2.0, 3.0, 2.0]])
    can = np.ones((1, 5), dtype=bool)
    for price, lines, expected in ((5, [1, -1], 0.3), (15, [1, 0], 0.5 / 3)):
        line, worth = best_purchase(gain, cost, can, sets, price)
        assert line[0].tolist() == lines
        assert worth[0] == expected


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("shape", SHAPES)
def test_many_are_followed_as_its_decisions_say(shape: str, space: SpaceName) -> None:
    """Conversations are weighed once for all rounds; each decision alone says the same."""
    traces, policy = make_traces(9, 20, *SHAPES[shape]), trained(shape, space)
    quick, slow = followed(policy, traces), follow(policy, traces)
    np.testing.assert_array_equal(quick.scores, slow.scores)
    np.testing.assert_array_equal(quick.calls, slow.calls)
    if space == "rounds":
        np.testing.assert_array_equal(quick.traces.answer, traces.answer)


def test_whether_a_round_is_yet_to_come_changes_no_score() -> None:
    """Live, later rounds are not there yet; what is decided is what a replay decides."""
    traces, policy = make_traces(9, 20, 3, ("m",)), trained("cascade", "rounds")
    whole = followed(policy, traces).scores
    for rounds in (1, 2):
        known = np.broadcast_to(np.arange(3) < rounds, (20, 3))
        early = replace(hidden(traces, known), recorded=np.full(20, rounds, np.int16))
        np.testing.assert_array_equal(followed(policy, early).scores[:, :rounds], whole[:, :rounds])


def test_calls_that_saw_others_are_refused_where_it_buys_single_ones() -> None:
    traces = replace(make_traces(9, 3, *SHAPES["talk"]), independent=np.zeros(3, bool))
    for ask in (followed, replay, follow):
        with pytest.raises(InputError, match="3 of 3 questions have calls that saw earlier ones"):
            ask(trained("talk", "calls"), traces)


@pytest.mark.parametrize(("space", "together"), TOGETHER)
def test_a_bundle_brings_it_back(space: SpaceName, together: int, tmp_path: Path) -> None:
    policy, traces = trained("talk", space, together), make_traces(9, 20, *SHAPES["talk"])
    save(tmp_path / "b", policy, origin=origin_of(traces, "f"), kappa=0.5)
    back = load(tmp_path / "b").policy
    assert isinstance(back, LookaheadPolicy)
    before, after = followed(policy, traces), followed(back, traces)
    np.testing.assert_array_equal(after.scores, before.scores)
    np.testing.assert_array_equal(after.calls, before.calls)

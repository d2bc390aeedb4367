"""Intervals of a promise per request: only distinct questions are independent draws."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest
from made_up_pool import asked_again, pool
from question_parts import proving, reporting
from scipy import stats

from farthing.bundle.base import Bundle
from farthing.methods.base import Dataset
from farthing.methods.cards import card
from farthing.process.replay import ReplayOutcome
from farthing.promises.agreeing import Agreeing
from farthing.promises.certificate import Certificate, IntArray
from farthing.promises.figures import clopper_pearson
from farthing.promises.kinds import agreement, parity
from farthing.promises.kinds.parity import Parity
from farthing.promises.observed import Facts
from farthing.promises.paired import Paired
from farthing.promises.statistics.clusters import Clusters, clustered_share
from farthing.recommendation import candidates
from farthing.recommendation.certify import value_on
from farthing.recommendation.evaluate import BundleEvaluation, evaluate_in_memory
from farthing.recommendation.played import Questions
from farthing.recommendation.recommend import recommend
from farthing.recommendation.savings import SingleModels, dominating_model, requests_of, savings_of
from farthing.traces.copies import asked_first

TIMES, SETS = 8, 60
ALLOWED = int(stats.binom.ppf(1e-3, SETS, 0.95))
"""How many of the intervals hold at least, save once in a thousand, where each holds with 0.95."""


class Traffic(NamedTuple):
    """Requests of which a fifth of the questions, the hard ones, ask the same eight times."""

    found: ReplayOutcome
    singles: SingleModels
    clusters: Clusters


def outcome(cost: IntArray, right: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> ReplayOutcome:
    one = np.ones(len(right), dtype=np.int16)
    return ReplayOutcome(cost, right, right, right, right, one, one, one, None)


def traffic(seed: int, n: int) -> Traffic:
    """Draw n questions; whoever asks again gets the same answers at the same prices."""
    rng = np.random.default_rng(seed)
    hard = rng.random(n) < 0.2
    small = rng.random(n) < np.where(hard, 0.45, 0.97)
    large = rng.random(n) < np.where(hard, 0.93, 0.985)
    up = rng.random(n) < np.where(hard, 0.5, 0.1)
    prices = (rng.uniform(0.8, 1.2, (n, 2)) * [20_000, 1_200_000]).astype(np.int64)
    each = np.repeat(np.arange(n), np.where(hard, TIMES, 1))
    cost, right = prices[:, 0] + up * prices[:, 1], np.where(up, large, small)
    models = SingleModels(
        ("small", "large"), prices[each], np.stack([small, large], 1)[each], None, True
    )
    return Traffic(outcome(cost[each], right[each]), models, Clusters(each, TIMES))


def proved_bundle(kind: str) -> Certificate:
    """Return a promise per request, of whatever was proved of a hundred questions."""
    right, cost = np.ones((100, 2), dtype=bool), np.tile([10, 90], (100, 1))
    clusters = Clusters(np.arange(100), TIMES)
    if kind == "parity":
        paired = Paired(cost, right, right[:, 0], "large", clusters=clusters)
        return parity.certify(paired, "0.9", "0.1", fingerprint="")
    agreeing = Agreeing(cost, right, "large", clusters=clusters)
    return agreement.certify(agreeing, "0.9", "0.1", fingerprint="")


@pytest.mark.slow
def test_intervals_hold_as_often_as_they_say() -> None:
    promises = {kind: proved_bundle(kind) for kind in ("parity", "agreement")}
    many = traffic(0, 200_000)
    all_of = savings_of(many.found, many.singles, "large", "test")
    true = {
        "saved": all_of.saved,
        "gained": all_of.gained,
        "parity": all_of.gained,
        "agreement": float(many.found.best_correct.mean()),
    }
    held = dict.fromkeys(true, 0)
    for seed in range(1, SETS + 1):
        one = traffic(seed, 112)
        value = savings_of(one.found, one.singles, "large", "test", clusters=one.clusters)
        intervals = {"saved": value.saved_interval, "gained": value.gained_interval}
        for kind, certificate in promises.items():
            known = Facts(right=one.singles.right[:, 1], clusters=one.clusters)
            judged = certificate.promise.realised(one.found, known)
            assert judged is not None
            intervals[kind] = judged.interval
        for name, ends in intervals.items():
            wanted = true[name]
            assert ends is not None
            assert wanted is not None
            held[name] += ends[0] <= wanted <= ends[1]
    assert min(held.values()) >= ALLOWED, held


def test_requests_that_ask_nothing_twice_are_as_many_questions() -> None:
    one = traffic(3, 300)
    alone = np.unique(one.clusters.question, return_index=True)[1]
    found = outcome(one.found.cost_nano[alone], one.found.best_correct[alone])
    models = replace(
        one.singles, cost_nano=one.singles.cost_nano[alone], right=one.singles.right[alone]
    )
    without = savings_of(found, models, "large", "test")
    by_request = savings_of(found, models, "large", "test", clusters=Clusters(alone, 1))
    assert by_request.saved_interval == pytest.approx(without.saved_interval)
    assert by_request.gained == pytest.approx(without.gained)


def test_copies_make_no_interval_narrower() -> None:
    once = traffic(4, 200)
    again = np.repeat(np.arange(len(once.found.cost_nano)), 9)
    found = outcome(once.found.cost_nano[again], once.found.best_correct[again])
    models = replace(
        once.singles, cost_nano=once.singles.cost_nano[again], right=once.singles.right[again]
    )
    clusters = Clusters(once.clusters.question[again], 9 * TIMES)
    one = savings_of(once.found, once.singles, "large", "test", clusters=once.clusters)
    nine = savings_of(found, models, "large", "test", clusters=clusters)
    assert nine.saved_interval == pytest.approx(one.saved_interval)
    assert nine.gained_interval == pytest.approx(one.gained_interval)


@pytest.mark.parametrize("lost", [0, 1, 5, 30])
def test_a_share_of_requests_stays_one(lost: int) -> None:
    right = np.arange(60) >= lost
    for right_or_wrong in (right, ~right):
        share, (low, high) = clustered_share(right_or_wrong, Clusters(np.arange(60) // 2, 2), 0.05)
        assert 0 <= low <= share <= high <= 1
        judged = proved_bundle("agreement").promise.realised(
            outcome(np.ones(60, int), right_or_wrong),
            Facts(clusters=Clusters(np.arange(60) // 2, 2)),
        )
        assert judged is not None
        assert judged.interval == (low, high)


def test_copies_prove_no_model_better() -> None:
    """Of eight questions, each asked fifty times, nobody knows enough; of 400 one does."""
    asked = np.repeat(np.arange(8), 50)
    right = np.ones(400, dtype=bool)
    models = SingleModels(("a",), np.full((400, 1), 5), right[:, None], None, True)
    found = outcome(np.where(asked == 0, 6, 7), right)
    assert dominating_model(found, models, right) == "a"
    assert dominating_model(found, models, right, Clusters(np.arange(400), 1)) == "a"
    assert dominating_model(found, models, right, Clusters(asked, 50)) is None


def test_a_cheaper_model_is_held_to_its_cost_by_question() -> None:
    """One question of 300 is asked 300 times, and it alone costs more than the model."""
    asked = np.concatenate([np.arange(300), np.zeros(299, dtype=int)])
    right = np.ones(599, dtype=bool)
    models = SingleModels(("a",), np.full((599, 1), 5), right[:, None], None, True)
    found = outcome(np.where(asked == 0, 9, 5), right)
    assert dominating_model(found, models, right) == "a"
    assert dominating_model(found, models, right, Clusters(asked, 1)) is None


@pytest.fixture(scope="module")
def proved() -> tuple[Bundle, Questions]:
    """Return a bundle that was proved per request, and requests: 100 questions, each thrice."""
    with pytest.MonkeyPatch.context() as patch:
        names = ("agreement-cascade", "always")
        patch.setattr(candidates, "cards", lambda: [card(name) for name in names])
        asked = Parity("large", "0.05", "0.1", per="request")
        found = recommend(Dataset("log", asked_again(pool(700), 3)), asked)
    assert found.certificate is not None
    assert found.certificate.promises
    fresh = asked_again(pool(100), 3)
    return found.bundle, Questions(fresh, fresh)


@pytest.mark.slow
def test_what_is_measured_is_measured_by_question(proved: tuple[Bundle, Questions]) -> None:
    bundle, part = proved
    found: BundleEvaluation = evaluate_in_memory(bundle, reporting(part))
    assert found.sizes["test"] == 300
    one = evaluate_in_memory(bundle, reporting(part).distinct())
    assert found.value.saved_interval == pytest.approx(one.value.saved_interval)
    assert found.judged is not None
    assert found.value.gained_interval == found.judged.interval
    assert found.value.gained == found.judged.value
    for name, of in (("coverage", 300), ("coverage_solvable", 3 * solvable(part))):
        low, high = found.intervals[name]
        naive = clopper_pearson(round(found.metrics[name] * of), of)
        assert high - low > 1.2 * (naive[1] - naive[0])
        assert 0 <= low <= high <= 1
    proven = value_on(bundle, proving(part))
    assert proven is not None
    assert proven.saved_interval == found.value.saved_interval
    assert proven.gained_interval == found.value.gained_interval


def solvable(part: Questions) -> int:
    return int(part.distinct().recorded.solvable.sum())


def test_a_promise_per_request_knows_which_ask_the_same(
    proved: tuple[Bundle, Questions],
) -> None:
    bundle, part = proved
    content = part.recorded.content
    clusters = requests_of(bundle.certificate, content)
    assert clusters is not None
    assert (len(clusters), clusters.most) == (100, 3)
    assert clusters.question.tolist() == asked_first(content).tolist()
    assert requests_of(None, content) is None

"""Sweeps: against the same steps taken by hand, honest about test questions, resumable."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from farthing.errors import InputError, TooFewTracesError
from farthing.methods.base import Dataset, Silent
from farthing.methods.lookahead.learner import LookaheadConfig, LookaheadLearner
from farthing.process.batch_replay import followed
from farthing.process.replay import outcome, paths
from farthing.recommendation.base import Event
from farthing.recommendation.fitting import fit
from farthing.traces.splits import divide
from farthing_lab.comparison.plan import Plan
from farthing_lab.studies.tuning import ALL, KEPT, SettingSearch, SettingSweep, Trials, fold, sweep

ALPHA = Fraction(1, 20)  # at 1/5 one round suffices, and every setting costs the same
PLAN = Plan((ALPHA,), splits=3, workers=1)
SEARCH = SettingSearch("lookahead", ("trees=2,3", "iterations=1"), folds=2)


@pytest.fixture(scope="module")
def done(small: Dataset, tmp_path_factory: pytest.TempPathFactory) -> tuple[SettingSweep, Path]:
    folder = tmp_path_factory.mktemp("sweep")
    return sweep(small, SEARCH, PLAN, folder), folder


def test_folds_part_the_questions() -> None:
    parts = [fold(np.zeros(31, dtype=np.uint64), 4, 3, which) for which in range(3)]
    judged = np.concatenate([judge for _, judge in parts])
    np.testing.assert_array_equal(np.sort(judged), np.arange(31))
    for learn, judge in parts:
        np.testing.assert_array_equal(np.union1d(learn, judge), np.arange(31))
        assert len(judge) in {10, 11}


@pytest.mark.slow
def test_each_figure_is_that_of_a_training_by_hand(
    small: Dataset, done: tuple[SettingSweep, Path]
) -> None:
    rng = np.random.default_rng(0)
    train = small.traces.take(divide(small.traces, rng).train)
    for place, trees in ((1, 2), (2, 3)):
        learner = LookaheadLearner(LookaheadConfig(trees=trees, iterations=1))
        for which in range(2):
            learn, judge = fold(train.content, 0, 2, which)
            policy = fit(learner, train.take(learn), ALPHA, 0, Silent()).policy
            along = followed(policy, train.take(judge))
            then = paths(along.scores, along.traces, "argmax")
            k = int(ALPHA * (len(judge) + 1))
            kappa = float(np.sort(then.critical)[k - 1])
            acted = outcome(then, along.traces, kappa)
            figures = done[0].tried[place].figures[which]
            assert figures["cost_usd"] == pytest.approx(
                int(acted.cost_nano.sum()) / 1e9 / len(judge)
            )
            assert figures["coverage"] == pytest.approx(acted.covered.mean())
            assert figures["coverage"] >= 1 - float(ALPHA)


@pytest.mark.slow
def test_the_cheapest_wins_and_is_judged_beside_the_policy_as_it_is(
    done: tuple[SettingSweep, Path],
) -> None:
    found, _ = done
    costs = [np.mean([f["cost_usd"] for f in one.figures]) for one in found.tried]
    best = found.tried[int(np.argmin(costs))]
    assert found.ranked[0] is best
    assert [one.mean("cost_usd") for one in found.ranked] == sorted(map(float, costs))
    assert found.tried[0].changed == {}
    assert found.test is not None
    names = [row.policy for row in found.test.rows]
    assert names == ["lookahead", "lookahead-tuned"][: 1 + bool(best.changed)]
    assert found.test.splits == 3
    assert not found.interrupted


@pytest.mark.slow
def test_test_questions_take_no_part_in_the_choice(
    small: Dataset, done: tuple[SettingSweep, Path], tmp_path: Path
) -> None:
    """Every price outside the training part is changed, and no figure of the choice is."""
    division = divide(small.traces, np.random.default_rng(0))
    cost = small.traces.cost_nano.copy()
    cost[division.rest] *= 7
    other = replace(small, traces=replace(small.traces, cost_nano=cost))
    found = sweep(other, SEARCH, PLAN, tmp_path)
    assert found.tried == done[0].tried
    assert found.test != done[0].test


@pytest.mark.slow
def test_the_number_of_workers_changes_nothing(
    small: Dataset, done: tuple[SettingSweep, Path], tmp_path: Path
) -> None:
    found = sweep(small, SEARCH, replace(PLAN, workers=2), tmp_path)
    assert found.tried == done[0].tried
    assert found.test == done[0].test


@pytest.mark.slow
def test_ctrl_c_loses_nothing_that_was_finished(
    small: Dataset, done: tuple[SettingSweep, Path], tmp_path: Path
) -> None:
    def watch(event: Event) -> None:
        if event.name == ALL and event.done == 3:
            raise KeyboardInterrupt

    broken = sweep(small, SEARCH, PLAN, tmp_path, watch)
    assert broken.interrupted
    assert broken.test is None
    assert [len(one.figures) for one in broken.tried] == [2, 1, 0]
    assert [one.changed for one in broken.ranked] == [{}]
    with (tmp_path / KEPT).open("a") as file:
        file.write('{"trial": {"pol')  # as if the power had gone
    events: list[Event] = []
    found = sweep(small, SEARCH, PLAN, tmp_path, events.append)
    assert found.resumed == 3
    assert (found.tried, found.test) == (done[0].tried, done[0].test)
    assert {e.name for e in events if e.name.startswith("setting")} == {
        "setting 1, seed 0, fold 1",
        "setting 2, seed 0, fold 0",
        "setting 2, seed 0, fold 1",
    }
    assert sweep(small, SEARCH, PLAN, tmp_path).resumed == 6


@pytest.mark.slow
def test_a_wider_search_goes_on_and_another_question_begins_anew(
    small: Dataset, done: tuple[SettingSweep, Path], tmp_path: Path
) -> None:
    (tmp_path / KEPT).write_bytes((done[1] / KEPT).read_bytes())
    wider = replace(SEARCH, choices=("trees=2,3", "iterations=1,2"))
    assert sweep(small, wider, PLAN, tmp_path).resumed == 6
    other = replace(PLAN, alphas=(Fraction(1, 4),))
    assert sweep(small, SEARCH, other, tmp_path).resumed == 0
    assert sweep(small, SEARCH, replace(PLAN, seed=1), tmp_path).resumed == 0


def test_a_foreign_file_is_refused_by_its_line(small: Dataset, tmp_path: Path) -> None:
    (tmp_path / KEPT).write_text('{"trial": {}, "figures": {}}\n["another"]\n')
    with pytest.raises(InputError, match=r"trials.jsonl, line 2: is no finished training"):
        sweep(small, SEARCH, PLAN, tmp_path)


@pytest.mark.parametrize(
    ("policy", "choice", "says"),
    [
        ("cpo", "batch=5", "promises no coverage"),
        ("stopping", "batch=5", "nothing that can be set"),
        ("fixed", "batch=5", "name one policy: fixed-1"),
        ("lazy", "leaf=5", "cannot run: calls saw earlier ones"),
        ("lookahead", "space=calls", "space=calls: .*calls that saw earlier ones"),
    ],
)
def test_what_cannot_be_swept_says_why(
    small: Dataset, tmp_path: Path, policy: str, choice: str, says: str
) -> None:
    with pytest.raises(InputError, match=says):
        sweep(small, SettingSearch(policy, (choice,)), PLAN, tmp_path)


@pytest.mark.parametrize("choices", [(), ("leaf=3", "leaf=4")])
def test_a_search_must_name_each_setting_once(
    small: Dataset, tmp_path: Path, choices: tuple[str, ...]
) -> None:
    with pytest.raises(InputError, match=r"nothing to try|leaf is tried twice"):
        sweep(small, SettingSearch("lookahead", choices), PLAN, tmp_path)


def test_folds_must_be_large_enough_for_the_promise(small: Dataset, tmp_path: Path) -> None:
    with pytest.raises(TooFewTracesError, match="3 a fold"):
        sweep(small, replace(SEARCH, folds=60), PLAN, tmp_path)


def test_a_line_may_be_cut_within_a_letter(tmp_path: Path) -> None:
    path = tmp_path / KEPT
    trials = Trials(path)
    for name in ("é\u2028", "é"):
        trials.add({"source": name}, {"cost_usd": 1.0})
    written = path.read_bytes()
    path.write_bytes(written[: written.rindex("é".encode()) + 1])
    again = Trials(path)
    assert again.get({"source": "é\u2028"}) == {"cost_usd": 1.0}
    assert again.get({"source": "é"}) is None
    again.add({"source": "é"}, {"cost_usd": 1.0})
    assert path.read_bytes() == written


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / KEPT).write_bytes(b"\xff\xfe\n")
    with pytest.raises(InputError, match="line 1: is no finished training"):
        Trials(tmp_path / KEPT)

"""Which questions do what when a mode is certified, and that what is promised is kept."""

import json
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from math import comb
from pathlib import Path

import numpy as np
import pytest
from controller_pool import write_pool
from scipy import stats

from farthing.errors import InputError
from farthing.promises.kinds.agreement import Agreement
from farthing.promises.kinds.parity import Parity
from farthing.traces.arrays import BoolArray, FloatArray, TraceArrays
from farthing.traces.base import Call, SplitName, Trace
from farthing_lab.corl.base import Mode
from farthing_lab.corl.certificate import (
    PARTS,
    Certified,
    RecordedModes,
    alone_of,
    certify,
    experts_of,
    laid_out,
    modes_of,
    modes_policy,
    proved,
    role_of,
    traces_of,
)
from farthing_lab.corl.evaluation import graded, greedy, recorded
from farthing_lab.corl.pool import read_pool
from farthing_lab.corl.rollouts import PoolSession

MODES = (Mode("low", 10), Mode("medium", 50), Mode("high", 90))
COSTS = (0.00001, 0.00002, 0.00003)
STRONG = "large"
EPSILON, DELTA = Fraction("0.05"), Fraction("0.1")
AGREE = Agreement(STRONG, EPSILON, DELTA)
PARITY = Parity(STRONG, EPSILON, DELTA)
TASK, FREE = 'task = "arithmetic"', 'task = "text"'


def part_of(name: SplitName, same: BoolArray, costs: Sequence[float] = COSTS) -> TraceArrays:
    """Return questions on which the reference is right, and each mode if it says the same."""
    traces = [
        Trace(
            id=f"{name}-{i}",
            gold=["yes"],
            split=name,
            calls=[Call(round=1, role=STRONG, answer="yes", cost_usd=0.0001)]
            + [
                Call(round=1, role=role_of(mode), answer="yes" if right else "no", cost_usd=usd)
                for mode, right, usd in zip(MODES, row, costs, strict=True)
            ],
        )
        for i, row in enumerate(same)
    ]
    return laid_out(traces, (STRONG, *map(role_of, MODES)))


def drawn(rng: np.random.Generator, n: int, differs: FloatArray) -> BoolArray:
    """Draw where modes say the same; one number a question decides them all."""
    return rng.random((n, 1)) >= differs


def recorded_with(**same: BoolArray) -> RecordedModes:
    """Return three parts of 200 questions on which all agree but for what is given."""
    every = np.ones((200, len(MODES)), bool)
    parts: dict[SplitName, TraceArrays] = {
        name: part_of(name, same.get(name, every)) for name in PARTS
    }
    return RecordedModes(MODES, STRONG, parts)


def spoilt(*modes: int, share: float = 0.3) -> BoolArray:
    """Return 200 questions, a share of which some modes get wrong."""
    same = np.ones((200, len(MODES)), bool)
    same[: int(200 * share), list(modes)] = False
    return same


def chosen(found: Certified) -> str:
    return found.mode.name if found.mode else STRONG


@pytest.mark.slow
@pytest.mark.parametrize("asked", [PARITY, AGREE])
def test_the_cheapest_mode_that_is_proved_is_chosen(asked: Parity | Agreement) -> None:
    assert chosen(proved("p", recorded_with(), asked)) == "low"
    assert chosen(proved("p", recorded_with(calibrate=spoilt(0)), asked)) == "medium"


@pytest.mark.slow
@pytest.mark.parametrize("asked", [PARITY, AGREE])
def test_corrupted_calibration_answers_lose_the_certificate(asked: Parity | Agreement) -> None:
    found = proved("p", recorded_with(calibrate=spoilt(0, 1, 2)), asked)
    assert not found.certificate.promises
    assert found.mode is None
    assert found.found.value.yours == found.figures[STRONG]
    assert "large answers" in found.certificate.sentence()


@pytest.mark.slow
def test_what_fails_is_not_passed_over() -> None:
    """Testing goes from the dearest down and ends at the first failure."""
    assert chosen(proved("p", recorded_with(calibrate=spoilt(1)), AGREE)) == "high"
    assert chosen(proved("p", recorded_with(calibrate=spoilt(2)), AGREE)) == STRONG


def test_a_mode_as_dear_as_the_reference_is_not_chosen() -> None:
    same = np.ones((200, len(MODES)), bool)
    dear = {name: part_of(name, same, (0.0001, 0.0002, 0.0003)) for name in PARTS}
    assert chosen(proved("p", RecordedModes(MODES, STRONG, dear), AGREE)) == STRONG


@pytest.mark.slow
def test_questions_that_test_change_no_choice() -> None:
    fair = proved("p", recorded_with(), AGREE)
    foul = proved("p", recorded_with(test=spoilt(0, 1, 2)), AGREE)
    assert (foul.mode, foul.certificate) == (fair.mode, fair.certificate)
    verdicts = [one.found.judged and one.found.judged.verdict for one in (fair, foul)]
    assert verdicts == ["kept", "broken"]


def test_training_questions_say_where_testing_begins() -> None:
    train = spoilt(2)
    policy = modes_policy(part_of("train", train), MODES)
    assert [int(place) for place in policy.values] == [1, 2]
    found = proved("p", recorded_with(train=train, calibrate=spoilt(2)), AGREE)
    assert chosen(found) == "low"
    assert len(modes_policy(part_of("train", spoilt(0, 1, 2)), MODES).values) == 3


def test_questions_that_did_two_things_are_refused() -> None:
    made = recorded_with()
    parts = {**made.parts, "train": made.parts["calibrate"]}
    with pytest.raises(InputError, match="200 of the 200 calibration questions trained"):
        proved("p", replace(made, parts=parts), AGREE)


def by_brute_force(differing: Sequence[int], n: int) -> str:
    """Go down from the dearest mode by exact binomial sums."""
    found = STRONG
    for mode, number in reversed(list(zip(MODES, differing, strict=True))):
        p_value = sum(comb(n, k) * EPSILON**k * (1 - EPSILON) ** (n - k) for k in range(number + 1))
        if p_value > DELTA:
            return found
        found = mode.name
    return found


@pytest.mark.slow
def test_the_certificate_is_that_of_a_brute_force_computation() -> None:
    rng = np.random.default_rng(0)
    names = set()
    for _ in range(40):
        n = int(rng.integers(40, 160))
        differs = np.sort(rng.uniform(0, 0.07, 3))[::-1]
        parts = {
            name: part_of(name, drawn(rng, n, differs if name == "calibrate" else np.zeros(3)))
            for name in PARTS
        }
        same = parts["calibrate"].correct[:, 0, 1:]
        expected = by_brute_force((~same).sum(axis=0).tolist(), n)
        assert chosen(proved("p", RecordedModes(MODES, STRONG, parts), AGREE)) == expected
        names.add(expected)
    assert len(names) == 4


@pytest.mark.simulations
@pytest.mark.parametrize("asked", [PARITY, AGREE])
def test_a_mode_that_breaks_the_promise_is_as_rare_as_promised(asked: Parity | Agreement) -> None:
    """The cheapest modes are at the edge, or beyond it; the dearest keeps the promise."""
    rng, runs, n = np.random.default_rng(1), 200, 120
    differs = np.array([0.08, 0.05, 0.01])
    train = test = part_of("train", np.ones((8, 3), bool))
    every = np.tri(4, 3, -1, dtype=bool)[:, ::-1]  # nobody says the same, high, and medium, all
    drawn_from = part_of("calibrate", np.repeat(every, n, axis=0))
    names = []
    for _ in range(runs):
        row = drawn(rng, n, differs).sum(axis=1) * n + np.arange(n)
        parts: dict[SplitName, TraceArrays] = {
            "train": train,
            "calibrate": drawn_from.take(row),
            "test": test,
        }
        names.append(chosen(proved("p", RecordedModes(MODES, STRONG, parts), asked)))
    broken = sum(name in {"low", "medium"} for name in names)
    assert stats.binomtest(broken, runs, float(DELTA), alternative="greater").pvalue > 1e-3
    assert names.count("high") > runs / 2


@pytest.fixture(scope="module")
def pool_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_pool(tmp_path_factory.mktemp("corl"))


@pytest.mark.slow
def test_traces_hold_what_experts_and_episodes_cost_and_answer(pool_file: Path) -> None:
    with PoolSession.of(read_pool(pool_file)) as opened:
        questions = opened.pool.questions.sample("calibrate", 12, 0)
        columns = [
            *experts_of(opened, questions, opened.rules.names),
            alone_of(opened, questions),
            *modes_of(opened, questions, opened.modes),
        ]
        roles = [column[0].role for column in columns]
        arrays = laid_out(traces_of(opened, questions, "calibrate", columns), roles)
        known = recorded(opened, questions)
        episodes = [greedy(opened, questions, mode) for mode in opened.modes]
        right = [graded(opened, questions, one) for one in episodes]
    assert roles == ["small", "large", "controller-alone", "controller-low", "controller-high"]
    cost, correct = arrays.cost_nano[:, 0].T, arrays.correct[:, 0].T
    assert cost[:2].tolist() == known.cost_nano.tolist()
    assert cost[2].tolist() == known.own_nano.tolist()
    assert correct[:3].tolist() == [*known.right.astype(bool).tolist(), known.own_right.tolist()]
    assert cost[3:].tolist() == [[episode.cost_nano for episode in one] for one in episodes]
    assert correct[3:].tolist() == [one.tolist() for one in right]


@pytest.mark.slow
def test_each_question_does_one_thing(pool_file: Path) -> None:
    steps: list[tuple[int, int]] = []
    with PoolSession.of(read_pool(pool_file)) as opened:
        found = certify(opened, Parity(), 10, watch=lambda *step: steps.append(step))
    assert steps == [(0, 3), (1, 3), (2, 3), (3, 3)]
    assert found.sizes == {"train": 20, "calibrate": 10, "test": 10}
    for place, name in enumerate(PARTS):
        assert set(found.recorded.parts[name].split.tolist()) == {place}
    ids = np.concatenate([part.ids for part in found.recorded.parts.values()])
    assert len(set(ids.tolist())) == 40


def test_the_reference_is_an_expert(pool_file: Path) -> None:
    with (
        PoolSession.of(read_pool(pool_file)) as opened,
        pytest.raises(InputError, match="unknown expert 'nobody'"),
    ):
        certify(opened, Parity("nobody"), 10)


@pytest.mark.slow
def test_agreement_takes_no_accepted_answers_if_the_expert_is_named(
    pool_file: Path, tmp_path: Path
) -> None:
    lines = map(json.loads, (pool_file.parent / "questions.jsonl").read_text().splitlines())
    bare = [json.dumps({**line, "gold": []}) for line in lines]
    (tmp_path / "questions.jsonl").write_text("\n".join(bare))
    text = pool_file.read_text()
    listed = str(pool_file.parent / "questions.jsonl")
    file = tmp_path / "pool.toml"
    file.write_text(text.replace(listed, str(tmp_path / "questions.jsonl")).replace(TASK, FREE))
    with PoolSession.of(read_pool(file)) as opened:
        with pytest.raises(InputError, match="name one of small, large with --reference"):
            certify(opened, Agreement(), 10)
        found = certify(opened, Agreement("large"), 10)
    assert found.found.value.measure == "agreement"

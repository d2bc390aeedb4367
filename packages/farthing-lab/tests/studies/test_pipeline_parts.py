"""Tasks in parts: what options come to, who gets what, and that no budget is exceeded."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from farthing.errors import ConfigError, InputError
from farthing.traces.arrays import TraceArrays
from farthing.traces.assemble import assemble
from farthing.traces.files import from_records
from farthing_lab.methods.allocators.agent_tts import AllocationTrial, Space
from farthing_lab.methods.allocators.base import ItemBatch
from farthing_lab.methods.allocators.plan_and_budget import PLAN_AND_BUDGET, SCHEDULES, efficiency
from farthing_lab.studies.part_samples import (
    MeasuredParts,
    PipelinePart,
    logarithmic,
    measure,
    read_parts,
)
from farthing_lab.studies.pipeline_parts import (
    CREDIT,
    CURVES,
    EVENLY,
    PACKED,
    PipelineParts,
    cap,
    evenly,
    share,
)

SAMPLES = 4
CHANCE = {"easy": {"small": 0.95, "large": 0.97}, "hard": {"small": 0.1, "large": 0.8}}
USD = {"small": 0.0001, "large": 0.001}


def rows(
    part: str, model: str, tasks: int, chance: float, prefix: str = ""
) -> list[dict[str, Any]]:
    rng = np.random.default_rng([len(part), len(model), tasks])
    return [
        {
            "id": f"{prefix}task-{i}",
            "round": k + 1,
            "role": "worker",
            "model": model,
            "gold": ["1"],
            "answer": (answer := "1" if rng.random() < chance else str(rng.integers(2, 6))),
            "correct": answer == "1",
            "independent": True,
            "output_tokens": int(rng.integers(5, 15 if part == "easy" else 60)),
            "cost_usd": USD[model],
        }
        for i in range(tasks)
        for k in range(SAMPLES)
    ]


def recorded(part: str, model: str, tasks: int = 60, **changed: Any) -> TraceArrays:
    made = rows(part, model, tasks, CHANCE[part][model], changed.pop("prefix", ""))
    return assemble(from_records([{**one, **changed} for one in made]))


def parts(tasks: int = 60) -> list[PipelinePart]:
    return [
        PipelinePart(
            part, {model: recorded(part, model, tasks) for model in of}, 1.0 + (part == "hard")
        )
        for part, of in CHANCE.items()
    ]


@pytest.fixture(scope="module")
def measured() -> MeasuredParts:
    return measure(parts(), seed=0)


def test_options_are_votes_of_every_number_of_samples(measured: MeasuredParts) -> None:
    assert measured.parts == ("easy", "hard")
    assert measured.models == ("small", "large")
    assert [measured.label(0, k) for k in range(8)] == [
        *("small", "small x2", "small x3", "small x4"),
        *("large", "large x2", "large x3", "large x4"),
    ]
    batch = measured.batch()
    once = [CHANCE[part][model] for part in measured.parts for model in measured.models]
    assert batch.value[:, [0, 4]].ravel() == pytest.approx(once, abs=0.08)
    assert batch.expected_nano[0].tolist() == [100_000 * k for k in (1, 2, 3, 4, 10, 20, 30, 40)]
    assert batch.value[1, 7] > batch.value[1, 4], "a vote is better where most are right"


def test_the_chance_of_a_task_is_that_of_its_own_parts(measured: MeasuredParts) -> None:
    choice = np.array([2, 5])
    by_hand = [a * b for a, b in zip(measured.right[0][2], measured.right[1][5], strict=True)]
    assert measured.together
    assert measured.tasks(choice).tolist() == pytest.approx(by_hand)
    mean, half = measured.interval(choice)
    assert mean == pytest.approx(np.mean(by_hand))
    assert 0.0 < half < 0.2


def test_files_without_common_tasks_are_multiplied() -> None:
    apart = [
        PipelinePart("easy", {"small": recorded("easy", "small")}),
        PipelinePart("hard", {"large": recorded("hard", "large", 30, prefix="other-")}),
    ]
    made = measure(apart)
    assert not made.together
    means = [float(one[0].mean()) for one in made.right]
    assert made.interval(np.array([0, 0]))[0] == pytest.approx(means[0] * means[1])
    found = share(made, 10_000_000)
    assert found.rows[0].half_interval > 0.0


@pytest.mark.slow
def test_the_money_goes_where_it_is_needed(measured: MeasuredParts) -> None:
    found = share(measured, 4_000_000)
    first, even = found.rows[0], next(row for row in found.rows if row.name == "even shares")
    assert first.choice is not None
    assert even.choice is not None
    labels = [measured.label(i, k) for i, k in enumerate(first.choice.tolist())]
    assert labels[0].startswith("small")
    assert labels[1].startswith("large x")
    assert first.right >= even.right
    names = [row.name for row in found.rows]
    assert names[:4] == ["lagrangian", "Plan-and-Budget", "AgentTTS", "even shares"]
    assert share(measured, 4_000_000, "agent-tts").rows[0].name == "AgentTTS"
    assert share(measured, 4_000_000, "rco").rows[0].name == "rco"


@pytest.mark.slow
def test_tasks_to_measure_on_choose_nothing(measured: MeasuredParts) -> None:
    """Were none of them right, every row would choose the same, and none be right."""
    later = np.random.default_rng(3).permutation(60)[30:]
    right = tuple(one.copy() for one in measured.right)
    for one in right:
        one[:, later] = 0.0
    for budget in (300_000, 1_500_000, 4_000_000):
        rows, others = (
            share(one, budget, trials=12, seed=3).rows
            for one in (measured, replace(measured, right=right))
        )
        for row, other in zip(rows, others, strict=True):
            np.testing.assert_array_equal(row.choice, other.choice)
            assert row.choice is None or row.right > other.right == 0.0


def test_the_search_has_its_proposer_trials_and_seed(measured: MeasuredParts) -> None:
    tried: list[int] = []
    draws: list[float] = []

    def noted(
        space: Space, archive: Sequence[AllocationTrial], rng: Any
    ) -> Sequence[Sequence[int]]:
        tried.append(len(archive))
        draws.append(float(rng.random()))
        return [rng.integers(8, size=2).tolist()]

    share(measured, 10_000_000, proposer=noted, trials=5, seed=4)
    assert (tried[0], max(tried)) == (1, 4)
    assert draws[0] == np.random.default_rng(4).random()


def test_credits_weigh_parts(measured: MeasuredParts) -> None:
    light = replace(measured, credit=np.array([1e4, 1.0]))
    batch = measured.half("choose", 0).batch()
    found = share(light, 1_100_000, "plan-and-budget", trials=2).rows[0].choice
    assert found is not None
    assert found.tolist() == PLAN_AND_BUDGET.shared(batch, 1_100_000, light.credit).tolist()
    assert found.tolist() != PLAN_AND_BUDGET.shared(batch, 1_100_000).tolist()


@pytest.mark.slow
def test_no_row_is_expected_to_cost_more_than_the_budget(measured: MeasuredParts) -> None:
    least = measured.half("choose", 0).batch().least_nano
    for budget in np.geomspace(least, 10_000_000, 12).astype(int).tolist():
        for row in share(measured, budget, trials=15).rows:
            if row.choice is not None:
                assert row.expected_nano <= budget
    with pytest.raises(InputError, match="cheapest options of its 2 parts cost"):
        share(measured, least - 1)


def test_the_knapsack_on_logarithms_is_the_likeliest_task(measured: MeasuredParts) -> None:
    batch = measured.half("choose", 0).batch()
    for budget in (300_000, 1_500_000, 3_000_000):
        choice = share(measured, budget, trials=2).rows[0].choice
        assert choice is not None
        every = [
            np.array(one)
            for one in product(range(8), repeat=2)
            if batch.cost_of(np.array(one)) <= budget
        ]
        best = max(batch.value[[0, 1], one].prod() for one in every)
        assert batch.value[[0, 1], choice].prod() == pytest.approx(best)
    assert (logarithmic(batch).value <= 1).all()


def test_even_shares_are_within_the_budget_and_pass_on_what_is_left() -> None:
    rng = np.random.default_rng(0)
    for _ in range(300):
        cost = np.sort(rng.integers(1, 100, (3, 4)), axis=1) * rng.integers(1, 9, (3, 1))
        batch = ItemBatch(np.sort(rng.random((3, 4)), axis=1), cost, cost)
        budget = int(batch.least_nano + rng.integers(0, 500))
        assert batch.cost_of(evenly(batch, budget)) <= budget
    steep = np.array([[10, 90], [100, 200]])
    batch = ItemBatch(np.array([[0.5, 0.9], [0.5, 0.9]]), steep, steep)
    assert evenly(batch, 190).tolist() == [1, 0], "the dear part's cheapest option, then the rest"


def test_caps_share_the_tokens_exactly() -> None:
    found = cap(parts(), 60)
    rows = found["rows"]
    names = [row["name"] for row in rows]
    decays = [f"{name} decay" for name in SCHEDULES]
    assert names == [EVENLY, CURVES, CREDIT, *decays, PACKED, "no cap"]
    for row in rows[:-1]:
        assert sum(row["caps"].values()) == 60
        assert min(row["caps"].values()) >= 0
        assert row["tokens"] <= 60
        assert row["e3"] == efficiency(row["right"], row["tokens"])
    by_name = {row["name"]: row for row in rows}
    assert by_name[PACKED]["caps"]["hard"] > by_name[EVENLY]["caps"]["hard"]
    assert by_name[PACKED]["right"] > by_name[EVENLY]["right"]
    assert by_name["no cap"]["right"] >= by_name[PACKED]["right"]
    assert found["models"]["hard"] == "large"
    assert by_name[CREDIT]["caps"] == {"easy": 25, "hard": 35}, "as 1 to the root of 2"


def test_caps_are_chosen_by_other_tasks_than_they_are_measured_on() -> None:
    ids = np.array(sorted(f"task-{i}" for i in range(60)))
    later = ids[np.random.default_rng(5).permutation(60)[30:]]

    def wrong(arrays: TraceArrays) -> TraceArrays:
        return replace(arrays, correct=arrays.correct & ~np.isin(arrays.ids, later)[:, None, None])

    never = [
        PipelinePart(p.name, {m: wrong(a) for m, a in p.models.items()}, p.credit) for p in parts()
    ]
    real, other = cap(parts(), 60, seed=5), cap(never, 60, seed=5)
    assert real["models"] == other["models"]
    for row, zero in zip(real["rows"], other["rows"], strict=True):
        assert row["caps"] == zero["caps"]
        assert zero["right"] == 0.0
    assert max(row["right"] for row in real["rows"]) > 0.0


@pytest.mark.parametrize(
    ("changed", "said"),
    [({"output_tokens": None}, "no lengths"), ({"prefix": "x-"}, "different ids")],
)
def test_caps_need_lengths_of_the_same_tasks(changed: dict[str, Any], said: str) -> None:
    other = PipelinePart("hard", {"large": recorded("hard", "large", **changed)})
    with pytest.raises(InputError, match=said):
        cap([PipelinePart("easy", {"small": recorded("easy", "small")}), other], 60)
    with pytest.raises(InputError, match="fewer than one for each of 2 parts"):
        cap(parts(8), 1)


def test_tables_and_json_have_the_same_figures(measured: MeasuredParts) -> None:
    found = share(measured, 3_000_000)
    console = Console(width=140, record=True)
    report = PipelineParts(Path("parts.toml")).report(found.record)
    console.print(report)
    shown = console.export_text()
    record = report.record
    assert f"{record['rows'][0]['right']:.1%}" in shown
    assert record["rows"][0]["parts"]["hard"]["model"] == "large"
    assert "a budget of $0.003 a task" in shown
    caps = cap(parts(), 60)
    report = PipelineParts(Path("parts.toml")).report(caps)
    console.print(report)
    assert report.record["rows"][0]["caps"] == {"easy": 30, "hard": 30}
    assert "60 tokens a task" in console.export_text()


def test_ungraded_and_too_few_samples_are_refused() -> None:
    bare = [
        {k: v for k, v in one.items() if k not in ("gold", "correct")}
        for one in rows("easy", "small", 8, 0.5)
    ]
    ungraded = PipelinePart("easy", {"small": assemble(from_records(bare))})
    with pytest.raises(InputError, match="easy, small: not graded"):
        measure([ungraded, *parts(8)[1:]])
    with pytest.raises(InputError, match="names no model"):
        measure([PipelinePart("none", {}), *parts(8)])
    few = [PipelinePart(p, {"small": recorded(p, "small", 3, prefix=p)}) for p in CHANCE]
    with pytest.raises(InputError, match="3 questions in common; give 4"):
        measure(few)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[part.a]", "no such section"),
        ("[parts.a.models]", "two parts or more"),
        ("[parts.a]\ncredits = 2\n[parts.a.models]\n[parts.b.models]", "credits"),
        ("[parts.a]\n[parts.b]", "models"),
    ],
)
def test_a_file_of_parts_that_is_none_is_refused(text: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "parts.toml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=said):
        read_parts(file)

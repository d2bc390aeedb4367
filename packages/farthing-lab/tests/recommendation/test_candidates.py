"""Who takes part, by name; what the paper published of them; what is written down."""

import csv
import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from farthing.errors import UnknownNameError
from farthing.methods.base import Dataset, Gives
from farthing.methods.cards import cards
from farthing.recommendation.base import METRICS, TIMES_OPTIMUM, Comparison, Row
from farthing.recommendation.candidates import (
    beside_each_alone,
    candidates,
    default_candidates,
    unavailable,
)
from farthing_lab.comparison.published import OUR_NAMES, published, tables
from farthing_lab.comparison.rows import results, results_json
from farthing_lab.generator.presets import PRESETS
from farthing_lab.methods.stopping import StoppingLearner

PAPER = Path(__file__).parents[4] / "../shared/data/paper_tables.csv"


def names(dataset: Dataset, asked: list[str] | None = None) -> list[str]:
    return [candidate.name for candidate in candidates(dataset, asked)]


def test_all_of_them_in_the_order_of_the_table(small: Dataset) -> None:
    families = {
        "fixed": [f"fixed-{depth}" for depth in range(1, 5)],
        "always": ["always-base", "always-guide"],
        "ccpo-published-lambda": [f"ccpo-published-lambda-{price}" for price in ("1e-4", "2e-4")],
    }
    ours = [card.name for card in cards() if set(card.action_spaces) - {"pool", "cuts"}]
    expected = [n for name in ours for n in families.get(name, [name])]
    absent = [name for these in unavailable(small).values() for name in these]
    assert names(small) == [name for name in expected if name not in absent]
    assert (ours[0], ours[-1]) == ("random", "optimum")
    assert ours.index("cpo") < ours.index("ccpo") < ours.index("stopping") < ours.index("lookahead")


def roles_of(dataset: Dataset, *, independent: bool) -> Dataset:
    traces = dataset.traces
    apart = replace(traces, independent=np.full(len(traces), independent))
    return replace(dataset, traces=apart, generator=None, preset=None)


def pool_of(dataset: Dataset) -> Dataset:
    """The first round alone, as a pool of two models that did not see one another."""
    traces = dataset.traces
    cells = {
        name: getattr(traces, name)[:, :1]
        for name in ("answer", "correct", "ungraded", "cost_nano")
    }
    one = replace(
        traces,
        **cells,
        independent=np.ones(len(traces), dtype=bool),
        roles=("small", "large"),
        signals={},
        replies={},
        recorded=np.ones_like(traces.recorded),
        largest_cost_nano=cells["cost_nano"],
    )
    return Dataset("pool", one)


def test_who_can_win_depends_on_the_questions_and_on_what_is_promised(small: Dataset) -> None:
    def able(dataset: Dataset, gives: Gives) -> set[str]:
        return {one.name.split("-")[0] for one in default_candidates(dataset, gives)}

    in_rounds = {"fixed", "stopping", "lookahead"}
    dialogue, apart = roles_of(small, independent=False), roles_of(small, independent=True)
    assert able(dialogue, "set") == able(dialogue, "one") == in_rounds
    assert able(apart, "set") == in_rounds | {"lazy"}
    assert able(apart, "one") == in_rounds | {"lazy", "always"}
    pool = pool_of(small)
    assert pool.is_pool
    assert able(pool, "set") == in_rounds | {"lazy", "pool"}
    of_pools = {card.name for card in cards() if card.space == "pool" and "one" in card.tried_for}
    assert {one.method.name for one in default_candidates(pool, "one")} <= of_pools
    assert {"pool-gain", "frugal-gpt", "always"} <= {
        one.method.name for one in default_candidates(pool, "one")
    }


def test_beside_them_stands_each_model_alone(small: Dataset) -> None:
    found = [one.name for one in beside_each_alone(roles_of(small, independent=True), "set")]
    assert found[-2:] == ["always-base", "always-guide"]
    assert found == list(dict.fromkeys(found))
    dialogue = beside_each_alone(roles_of(small, independent=False), "set")
    assert not [one for one in dialogue if one.method.name == "always"]


def test_names_of_one_and_of_a_family_without_doubles(small: Dataset) -> None:
    assert names(small, ["fixed-3", "uala", "fixed", "uala"]) == [
        "fixed-3",
        "uala",
        "fixed-1",
        "fixed-2",
        "fixed-4",
    ]
    assert names(replace(small, generator=None), ["optimum"]) == []


def test_what_was_not_recorded_takes_part_only_by_name(small: Dataset) -> None:
    absent = {"llm-policy-guide", "llm-policy-base", "exit-guide", "exit-base"}
    assert not absent & set(names(small, None))
    assert set(unavailable(small)["no replies recorded"]) == absent
    asked = candidates(small, ["exit-guide"])
    assert [(c.name, c.note) for c in asked] == [("exit-guide", "no replies recorded")]


@pytest.mark.parametrize("wrong", ["ccp", "fixed-5", "fixed-0", "", "ccpo-x"])
def test_an_unknown_name_lists_the_nearest_of_those_there_are(small: Dataset, wrong: str) -> None:
    with pytest.raises(UnknownNameError, match=r"unknown policy .*Nearest of \d+: ") as found:
        candidates(small, [wrong])
    nearest = str(found.value).rpartition(": ")[2].split(", ")
    assert len(set(nearest)) == 3


def test_who_is_calibrated_how(small: Dataset) -> None:
    found = {c.name: (c.calibration, c.empty) for c in candidates(small)}
    assert found["cpo"] == ("none", "argmax")
    assert found["cpo-online"] == ("online", "allow")
    assert found["ccpo-published"] == ("split", "allow")
    for name in ("uala", "cpo-batch", "ccpo", "ccpo-lambda", "stopping", "optimum"):
        assert found[name] == ("split", "argmax")
    learners = {c.name: c.learner for c in candidates(small)}
    assert learners["cpo"] is learners["cpo-batch"] is learners["cpo-online"]
    assert isinstance(learners["stopping"], StoppingLearner)


@pytest.mark.skipif(not PAPER.exists(), reason="the paper's tables are not beside the clone")
def test_what_is_shipped_is_what_the_paper_printed() -> None:
    with PAPER.open(encoding="utf-8", newline="") as file:
        theirs = list(csv.DictReader(file))
    ours = tables()
    assert len(ours) == len(theirs) > 50
    for mine, printed in zip(ours, theirs, strict=True):
        for name in ("dataset", "base_model", "policy"):
            assert mine[name] == printed[name]
        for name in ("table", "alpha", "cost_cents", "coverage", "avg_len", "set_size"):
            assert float(mine[name]) == float(printed[name]), (mine, name)


def test_published_rows_carry_our_names_and_dollars_a_question(small: Dataset) -> None:
    everyone = [card.name for card in cards() if set(card.action_spaces) - {"pool", "cuts"}]
    for preset in PRESETS:
        rows = published(preset)
        ours = set(names(replace(small, preset=preset), everyone))
        assert {row["policy"] for row in rows} <= ours
        assert {"random", "ccpo-published", "cpo-batch"} <= {row["policy"] for row in rows}
    assert set(OUR_NAMES.values()) <= set(names(small, everyone))
    random = next(r for r in published("hotpotqa-llama2-7b") if r["policy"] == "random")
    assert random["cost_usd"] == pytest.approx(0.06811 / 200)
    with pytest.raises(UnknownNameError, match="hotpotqa-llama2-7b"):
        published("hotpotqa")


def test_results_are_means_and_standard_errors() -> None:
    values = {name: [1.0, 2.0, 6.0] for name in METRICS}
    values["coverage_solvable"] = [0.5, float("nan"), 0.7]
    values["empty"] = [float("nan")] * 3
    values[TIMES_OPTIMUM] = [1.0, 1.5, 2.0]
    alpha = Fraction(1, 20)
    comparison = Comparison(
        source="<x>",
        fingerprint="",
        sizes={},
        horizon=4,
        roles=("base", "guide"),
        splits=3,
        seeds=[0],
        rows=[
            Row("uala", "UALA", alpha, "split", values),
            Row("exit-base", "LLM-EXIT (ü)", alpha, "none", note="no replies recorded"),
        ],
    )
    first, second = results(comparison)
    assert (first["policy"], first["label"], first["alpha"]) == ("uala", "UALA", 0.05)
    assert first["cost_usd"] == pytest.approx(3.0)
    assert first["cost_usd_se"] == pytest.approx(np.std([1, 2, 6], ddof=1) / np.sqrt(3))
    assert first["coverage_solvable"] == pytest.approx(0.6)
    assert first["coverage_solvable_se"] == pytest.approx(0.1)
    assert first["splits"] == 3
    assert (first["empty"], first["empty_se"]) == (None, None)
    assert {second[name] for name in METRICS} == {None}
    assert second["note"] == "no replies recorded"
    assert set(METRICS) | {f"{name}_se" for name in METRICS} <= set(first)
    assert (first["times_optimum"], second["times_optimum"]) == (1.5, None)
    assert next(iter(first.items())) == ("source", "<x>")
    made_up = replace(comparison, made_up="made-up questions", published=[{"policy": "uala"}])
    said = str(next(iter(json.loads(results_json(made_up))[0].values())))
    assert said.startswith("<x>: made-up questions. No model was asked. Random and UALA agree")
    assert json.loads(results_json(comparison)) == [first, second]

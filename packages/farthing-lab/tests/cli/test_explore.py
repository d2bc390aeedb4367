"""`farthing study explore`: a cold start on recorded questions, a table, and a record."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_up_pool import COST_NANO, ROLES, pool, ungraded, write

from farthing.errors import InputError
from farthing.methods.cards import system
from farthing.traces.assemble import load
from farthing_lab.methods.bandits.base import features_of
from farthing_lab.methods.bandits.off_policy import log_of, value_of
from farthing_lab.studies.online_learning import explore, stream_of

Farthing = Callable[..., Any]
Refused = Callable[..., str]
N = 300


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("pool") / "pool.jsonl", pool(N))


@pytest.mark.slow
@pytest.mark.parametrize("bandit", ["squarecb", "knapsack"])
def test_money_first_beside_what_others_bring(
    farthing: Farthing, traces: Path, bandit: str
) -> None:
    given = ("study", "explore", "--traces", traces, "--budget", "0.15", "--bandit", bandit)
    done = farthing(*given, "--value-of", "large")
    assert done.code == 0
    assert max(map(len, done.out.splitlines())) <= 80
    assert done.out.splitlines()[0] == f"pool.jsonl: {N} questions, a budget of $0.15"
    said = " ".join(done.out.split())
    for part in (
        f"{bandit} 0.1",
        "drawn at random",
        "cheapest: small",
        "strongest: large",
        "hindsight",
        "FrugalGPT",
        "By this record alone large",
    ):
        assert part in said, part
    assert farthing(*given, "--value-of", "large").out == done.out, "the same seed gives the same"


@pytest.mark.slow
def test_json_and_a_record_that_others_are_judged_by(farthing: Farthing, traces: Path) -> None:
    done = farthing(
        *("study", "explore", "--traces", traces, "--budget", "0.3", "--bandit", "knapsack"),
        *("--floor", "0.1", "--value-of", "medium", "--log", "log.jsonl", "--json"),
    )
    found = json.loads(done.out)
    mine = found["rows"][0]
    assert mine["spent_usd"] <= 0.3
    assert mine["answered"] == sum(found["asked"].values()) == N
    lines = [json.loads(line) for line in Path("log.jsonl").read_text().splitlines()]
    assert len(lines) == N
    cost = dict(zip(ROLES, COST_NANO.tolist(), strict=True))
    calls = [line["calls"][0] for line in lines]
    assert all(len(line["calls"]) == 1 for line in lines)
    assert sum(cost[call["role"]] for call in calls) == round(mine["spent_usd"] * 1e9)
    assert all(0.1 <= call["least_propensity"] <= call["propensity"] <= 1.0 for call in calls)
    assert {call["floor_propensity"] for call in calls} <= {0.1, 0.0}
    read = load(Path("log.jsonl"))
    again = value_of(log_of(read), read.roles.index("medium"))
    told = found["value_of"]
    assert again.agreed == told["agreed"]
    assert again.estimate == pytest.approx(told["estimate"], abs=1e-6)
    assert [again.low, again.high] == pytest.approx(told["interval"], abs=0.02)
    assert again.low <= told["really"] <= again.high


def test_a_stream_is_every_question_once_and_money_is_what_calls_cost() -> None:
    stream = stream_of(pool(120), 3)
    assert sorted(stream.traces.ids) == sorted(pool(120).ids)
    assert [arm.expected_nano for arm in stream.arms] == COST_NANO.tolist()
    session, choices, rows = explore(stream, system("bandit", "squarecb"), 20_000_000)
    arms = [choice.arm for choice in choices]
    assert rows[0]["spent_usd"] == COST_NANO[arms].sum() / 1e9 <= 0.02
    assert rows[0]["right"] == stream.right[np.arange(len(arms)), arms].sum()
    assert session.calls.tolist() == np.bincount(arms, minlength=3).tolist()
    by_name = {row["name"].partition(":")[0]: row for row in rows}
    assert by_name["strongest"]["answered"] == 10
    assert by_name["cheapest"]["answered"] == 120
    best = by_name["best mixture, in hindsight"]
    assert best["right"] >= by_name["cheapest"]["right"]
    assert all(row["spent_usd"] <= 0.02 for row in rows)


def test_a_bandit_reads_each_question_and_its_group() -> None:
    texts = [f"What is {i} + {i}?" for i in range(40)]
    grouped = replace(
        pool(40),
        question=np.array(texts),
        group=np.arange(40, dtype=np.int32) % 2,
        group_names=("sums", "more"),
    )
    stream = stream_of(grouped, 1)
    _, choices, _ = explore(stream, system("bandit", "squarecb"), 10**9)
    read = [choice.seen.features for choice in choices]
    at = {name: i for i, name in enumerate(grouped.ids.tolist())}
    asked = [at[name] for name in stream.traces.ids.tolist()[: len(choices)]]
    expected = [features_of(texts[i], ("sums", "more")[i % 2]) for i in asked]
    np.testing.assert_array_equal(read, expected)


@pytest.mark.slow
def test_the_seed_is_that_of_the_order(farthing: Farthing, traces: Path) -> None:
    given = (
        "study",
        "explore",
        "--traces",
        traces,
        "--budget",
        "0.05",
        "--bandit",
        "knapsack",
        "--log",
    )
    orders = []
    for seed in ("0", "0", "1"):
        assert farthing(*given, "log.jsonl", "--seed", seed).code == 0
        lines = Path("log.jsonl").read_text().splitlines()
        orders.append([json.loads(line)["id"] for line in lines])
    assert orders[0] == orders[1] != orders[2]


def test_the_others_stop_where_the_largest_cost_does_not_fit() -> None:
    stream = stream_of(pool(120), 3)
    arms = tuple(replace(arm, largest_nano=3 * arm.expected_nano) for arm in stream.arms)
    *_, rows = explore(replace(stream, arms=arms), system("bandit", "knapsack"), 20_000_000)
    by_name = {row["name"].partition(":")[0]: row for row in rows}
    assert by_name["strongest"]["answered"] == 8, "after eight of 2 million each 6 do not fit"


@pytest.mark.slow
def test_what_cannot_be_done_is_one_line(refused: Refused, traces: Path, tmp_path: Path) -> None:
    given = ("study", "explore", "--traces", traces, "--budget")
    assert "give a floor above 0" in refused(*given, "1", "--floor", "0.5")
    assert "bandit" in refused(*given, "1", "--bandit", "nobody")
    assert "there is no model nobody" in refused(*given, "1", "--value-of", "nobody")
    assert "pays for no question" in refused(*given, "0.000001", "--value-of", "small")
    said = refused(*given, "0.000001")
    assert "pays for no question; a call of small can cost $" in said
    assert "cannot tell its form" in refused(*given, "1", "--log", "log.txt")
    blank = write(tmp_path / "blank.jsonl", ungraded(pool(30)))
    said = refused("study", "explore", "--traces", blank, "--budget", "1").splitlines()[-1]
    assert "graded answer of every model" in said
    with pytest.raises(InputError, match="no `propensity`; a bandit writes it"):
        log_of(pool(5))


def test_an_unknown_model_is_refused_before_anything_is_asked(
    refused: Refused, traces: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def asked(*_: object, **__: object) -> None:
        pytest.fail("the stream was asked first")

    monkeypatch.setattr("farthing_lab.studies.online_learning.explore", asked)
    given = ("study", "explore", "--traces", traces, "--budget", "1", "--value-of", "nobody")
    assert "there is no model nobody; there are " in refused(*given)

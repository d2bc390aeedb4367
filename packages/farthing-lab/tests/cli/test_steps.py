"""`farthing study steps`: a small or a large model at each step, under a budget."""

import json
from collections.abc import Callable
from typing import Any

import pytest

Farthing = Callable[..., Any]
Refused = Callable[..., str]
FEW = ("--train", "20", "--test", "60", "--lambda", "0.3")


@pytest.mark.slow
def test_a_table_with_both_boundaries_and_the_optimum(farthing: Farthing) -> None:
    done = farthing("study", "steps", "--budget", "0.003", *FEW)
    assert done.code == 0
    assert max(map(len, done.out.splitlines())) <= 80
    assert done.out.startswith("made-up tasks: 60 tasks, at most $0.003 each")
    for said in ("always small", "always large", "BoPO, lambda 0.3", "At best, lambda 0.3"):
        assert said in done.out


@pytest.mark.slow
def test_json_says_what_was_spent_and_that_no_budget_was_exceeded(farthing: Farthing) -> None:
    found = json.loads(farthing("study", "steps", "--budget", "0.003", *FEW, "--json").out)
    rows = {row["policy"]: row for row in found["rows"]}
    assert rows["always small"]["cost_usd"] == pytest.approx(0.0006)
    assert all(row["most_usd"] <= 0.003 and row["over_budget"] == 0 for row in rows.values())
    assert sum(found["classes"].values()) == pytest.approx(1.0)
    assert found["optimum"]["lambda 0.3"]["success"] > rows["always small"]["success"]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (("--on", "generatd"), "did you mean 'generated'?"),
        (("--budget", "-1"), "-1"),
        (
            ("--budget", "0.0000001"),
            "pays for no task; one by the small model alone can cost $0.0006",
        ),
        (("--lambda", "-0.5"), "--lambda': must be at least 0"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(
    refused: Refused, given: tuple[str, ...], says: str
) -> None:
    assert says in refused("study", "steps", *given)

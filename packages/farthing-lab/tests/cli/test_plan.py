"""`farthing study plan`: a workflow, a budget, a deadline; two tables."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Farthing = Callable[..., Any]
Refused = Callable[..., str]
FILE = """
[models.small]
output_per_million = 0.60
tokens_per_second = 100
[models.large]
input_per_million = 2.50
output_per_million = 10.00
tokens_per_second = 50
latency_s = 0.5

[[parts]]
name = "outline"
input_tokens = 100
success = { small = 0.7, large = 0.95 }
tokens = { small = [100, 300], large = [100, 300] }
samples = [1, 2]

[[parts]]
name = "text"
after = ["outline"]
success = { small = 0.4, large = 0.8 }
tokens = { small = [200, 600], large = [200, 600] }
"""


@pytest.fixture
def workflow(tmp_path: Path) -> Path:
    path = tmp_path / "workflow.toml"
    path.write_text(FILE)
    return path


def test_a_table_of_parts_and_a_table_of_plans(farthing: Farthing, workflow: Path) -> None:
    given = (
        "study",
        "plan",
        workflow,
        "--budget",
        "0.006",
        "--deadline",
        "30",
        "--executions",
        "10",
    )
    done = farthing(*given)
    assert done.code == 0
    assert max(map(len, done.out.splitlines())) <= 80
    assert done.out.splitlines()[0] == "workflow.toml: $0.006 and 30 s, 10 executions"
    for said in (
        "outline",
        "text",
        "mcpp",
        "even share",
        "greedy",
        "all large x 1",
        "all small x 2",
    ):
        assert said in done.out, said


def test_json_has_the_figures_and_the_seed_gives_them_again(
    farthing: Farthing, workflow: Path
) -> None:
    given = ("study", "plan", workflow, "--budget", "0.004", "--executions", "8", "--json")
    first, again = (farthing(*given, "--seed", "3") for _ in range(2))
    assert first.out == again.out
    found = json.loads(first.out)
    assert found["deadline_s"] is None
    assert [one["part"] for one in found["parts"]] == ["outline", "text"]
    for row in found["plans"]:
        assert row["cost_usd"] <= 0.004
        assert row["interval"][0] <= row["done"] <= row["interval"][1]
    assert 0 < found["parts"][0]["share"] <= 1


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("small = 0.7,", "smal = 0.7,"), "unknown model 'smal'; known: small, large"),
        (('after = ["outline"]', 'after = ["txt"]'), "no part 'txt' stands above 'text'"),
        (("small = 0.4", "small = 1.4"), "parts[1].success[...]: Expected `float` <= 1.0"),
        (("[200, 600], large", "[600, 200], large"), "writes 600 to 200 tokens"),
        (('name = "text"', 'name = "outline"'), "is there twice"),
        (("[models.small]", "[models.small"), "is not TOML"),
        (("samples = [1, 2]", "sample = [1, 2]"), "unknown field `sample`"),
        (("small = [200, 600], ", ""), "says nothing of 'small'"),
    ],
)
def test_a_wrong_file_is_refused_in_one_line(
    refused: Refused, workflow: Path, change: tuple[str, str], said: str
) -> None:
    text = workflow.read_text()
    assert change[0] in text
    workflow.write_text(text.replace(*change))
    assert said in refused("study", "plan", workflow, "--budget", "0.01")


def test_what_cannot_be_planned_is_refused(refused: Refused, workflow: Path) -> None:
    assert "starts no part" in refused("study", "plan", workflow, "--budget", "0.0001")
    said = refused("study", "plan", workflow, "--budget", "0.01", "--deadline", "0")
    assert "give more than 0" in said
    said = refused("study", "plan", workflow, "--budget", "0.01", "--deadline", "0.5")
    assert "the quickest way through all parts takes" in said
    assert "unknown planner 'mcp'" in refused(
        "study", "plan", workflow, "--budget", "0.01", "--planner", "mcp"
    )
    assert "no such file" in refused("study", "plan", "none.toml", "--budget", "0.01")

"""`farthing compare`: a table on the terminal, a folder of files."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from told_pool import records, write

from farthing.cli.console import Trainings
from farthing.errors import InputError
from farthing.recommendation.base import Event
from farthing_lab.comparison import compare as room

Farthing = Callable[..., Any]
QUICK = ("--policies", "random,fixed,stopping", "--splits", "5", "--out", "report")


@pytest.mark.slow
def test_a_comparison_of_recorded_traces(farthing: Farthing, runs: Path) -> None:
    done = farthing(
        "compare", "--traces", runs, "--alpha", "0.1", "--alpha", "0.2", "--alpha", "0.10", *QUICK
    )
    assert done.code == 0
    assert "report: report/report.html" in done.err
    assert max(map(len, done.out.splitlines())) <= 80
    assert not any(line.endswith(" ") for line in done.out.splitlines())
    assert "120 questions" in done.out
    assert "Supervised stopping" in done.out
    found = json.loads(Path("report/results.json").read_text())
    assert {row["alpha"] for row in found} == {0.1, 0.2}
    names = {"random", "fixed-1", "fixed-2", "fixed-3", "fixed-4", "stopping"}
    assert {row["policy"] for row in found} == names
    assert Path("report/table.md").exists()


@pytest.mark.slow
def test_sizes_seeds_and_promise_reach_the_comparison(farthing: Farthing) -> None:
    sizes = (
        "--train",
        60,
        "--calibrate",
        40,
        "--test",
        50,
        "--seeds",
        2,
        "--population",
        "solvable",
    )
    asked = ("--preset", "hotpotqa-llama2-7b", "--n", 150, *sizes, *QUICK)
    done = farthing("compare", *asked)
    said = " ".join(done.out.split())
    assert "trained on 60 questions, threshold set on 40, judged on 50" in said
    assert "2 training seeds" in said
    assert "coverage of the solvable questions" in said
    row = json.loads(Path("report/results.json").read_text())[-1]
    assert row["splits"] == 10  # five splits of each seed


@pytest.mark.slow
def test_a_preset_has_the_sizes_of_the_paper(farthing: Farthing) -> None:
    asked = (
        "--preset",
        "mmlu-llama2-7b",
        "--policies",
        "fixed-1",
        "--splits",
        2,
        "--out",
        "report",
    )
    done = farthing("compare", *asked)
    first = " ".join(done.out.split())
    assert first.startswith("mmlu-llama2-7b: made-up questions of a generator fitted to the paper")
    assert "Random and UALA agree with the paper because the generator was fitted to them" in first
    kept = Path("report/results.json").read_text().splitlines()[2]
    assert '"source": "mmlu-llama2-7b: made-up questions of a generator' in kept
    table = Path("report/table.md").read_text().splitlines()[0]
    assert table.startswith("# mmlu-llama2-7b: made-up questions of a generator fitted to")
    assert "560 to train, 200 to calibrate, 200 to test" in done.out
    assert "times the known optimum" not in done.out  # fixed depth promises nothing


@pytest.mark.slow
def test_a_pool_of_models_can_be_compared(farthing: Farthing, pool: Path) -> None:
    done = farthing("compare", "--traces", pool, *QUICK)
    assert done.code == 0
    assert "cheapest first" in done.out


@pytest.mark.slow
@pytest.mark.parametrize(
    ("stage", "says"), [("train", "rows were not trained"), ("evaluate", "1 of 5 splits")]
)
def test_an_interrupted_comparison_reports_what_it_has(
    farthing: Farthing, runs: Path, monkeypatch: pytest.MonkeyPatch, stage: str, says: str
) -> None:
    def watch(_: Trainings, event: Event) -> None:
        if event.stage == stage:
            raise KeyboardInterrupt

    monkeypatch.setattr(Trainings, "watch", watch)
    done = farthing("compare", "--traces", runs, "--workers", 1, *QUICK)
    assert done.code == 130
    assert says in " ".join(done.out.split())
    assert "report/report.html" in done.err
    assert "interrupted" in done.err.splitlines()[-1]


def calls_apart(pool: Path, independent: bool) -> Path:
    """Write two rounds of base and guide, made from the pool's calls."""
    lines = []
    for line in pool.read_text().splitlines():
        trace = json.loads(line)
        rounds = [
            {**call, "round": number, "role": role}
            for number in (1, 2)
            for call, role in zip(trace["calls"], ("base", "guide"), strict=True)
        ]
        lines.append(json.dumps({**trace, "independent": independent, "calls": rounds}))
    path = pool.with_name(f"apart-{independent}.jsonl")
    path.write_text("\n".join(lines))
    return path


WHO = ("--policies", "fixed-1,lazy", "--splits", "2", "--workers", 1, "--out", "report")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("space", "names"),
    [
        (("--action-space", "rounds"), {"fixed-1"}),
        (("--action-space", "calls"), {"fixed-1", "lazy"}),
        ((), {"fixed-1", "lazy"}),
    ],
)
def test_the_action_space_says_who_takes_part(
    farthing: Farthing, pool: Path, space: tuple[str, ...], names: set[str]
) -> None:
    done = farthing("compare", "--traces", calls_apart(pool, True), *space, *WHO)
    assert done.code == 0, done.err
    found = json.loads(Path("report/results.json").read_text())
    assert {row["policy"] for row in found} == names


def names(page: str = "report") -> set[str]:
    return {row["policy"] for row in json.loads(Path(f"{page}/results.json").read_text())}


def test_by_default_who_can_win_takes_part_and_all_brings_everybody(
    farthing: Farthing, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nothing(chosen: Any, *_: Any, **__: Any) -> None:
        raise InputError(", ".join(one.name for one in chosen))

    monkeypatch.setattr(room, "compare_these", nothing)
    asked = ("compare", "--traces", runs, "--out", "report")
    few = farthing(*asked).err.strip().removeprefix("farthing: ").split(", ")
    assert few == ["fixed-1", "fixed-2", "fixed-3", "fixed-4", "stopping", "lookahead"]
    said = farthing(*asked, "--policies", "all").err
    everybody = said.strip().removeprefix("farthing: ").split(", ")
    assert {"random", "uala", "cpo", "ccpo", *few} <= set(everybody)


PROMISES = {
    "parity": ("--epsilon", "0.3", "--delta", "0.1", "--reference", "large"),
    "agreement": ("--epsilon", "0.3", "--delta", "0.1", "--reference", "large"),
    "selective": ("--delta", "0.1"),
    "budget": ("--budget", "0.02", "--most", "0.03", "--delta", "0.1"),
}


@pytest.mark.slow
@pytest.mark.parametrize("promise", PROMISES)
def test_a_comparison_under_each_promise(farthing: Farthing, pool: Path, promise: str) -> None:
    who = ("--policies", "always", "--splits", 3, "--workers", 1, "--out", "report")
    done = farthing("compare", "--traces", pool, "--promise", promise, *PROMISES[promise], *who)
    assert done.code == 0, done.err
    assert "Proved on each calibration part" in done.out
    assert max(map(len, done.out.splitlines())) <= 80
    rows = {row["policy"]: row for row in json.loads(Path("report/results.json").read_text())}
    large = rows["always-large"]
    assert {"realised", "kept", "fell_back", "saved_low", "accuracy_se"} <= set(large)
    assert "coverage" not in large
    if promise in ("parity", "agreement"):
        assert large["cost_usd"] == pytest.approx(0.01)
        assert (large["accuracy"], large["saved"]) == (1.0, 0.0)
    assert Path("report/report.html").exists()


@pytest.mark.slow
def test_the_winner_is_said_to_carry_no_certificate(farthing: Farthing, runs: Path) -> None:
    done = farthing("compare", "--traces", runs, *QUICK)
    said = "A comparison's winner carries no certificate: run `farthing recommend` or `calibrate`."
    assert said in " ".join(done.out.split())


@pytest.mark.slow
def test_options_that_mean_nothing_to_a_promise_are_one_line(
    refused: Callable[..., str], runs: Path
) -> None:
    asked = ("compare", "--traces", runs, "--out", "report")
    assert "only to selective or parity" in refused(*asked, "--epsilon", "0.1")
    assert "leave --delta out" in refused(*asked, "--delta", "0.1")
    parity = ("--promise", "parity", "--epsilon", "0.1", "--delta", "0.1")
    assert "are for --promise coverage" in refused(*asked, *parity, "--population", "solvable")
    assert "has no alpha" in refused(*asked, *parity, "--alpha", "0.1", "--alpha", "0.2")


@pytest.mark.slow
def test_a_pool_is_bought_model_by_model(farthing: Farthing, pool: Path) -> None:
    for space in ("pool", "calls", "rounds"):
        done = farthing("compare", "--traces", pool, "--action-space", space, *WHO)
        assert done.code == 0, done.err


def test_an_action_space_that_does_not_fit_is_one_line(
    refused: Callable[..., str], runs: Path, pool: Path
) -> None:
    apart = calls_apart(pool, False)
    said = refused("compare", "--traces", apart, "--action-space", "calls", *WHO)
    assert "30 of 30 questions have calls that saw earlier ones" in said
    said = refused("compare", "--traces", runs, "--action-space", "pool", *WHO)
    assert "holds 4 rounds of base, guide, not a pool; use --action-space rounds or calls" in said
    whole = calls_apart(pool, True)
    alone = ("--policies", "lazy", "--out", "report")
    said = refused("compare", "--traces", whole, "--action-space", "rounds", *alone)
    assert "lazy: buys call by call; use --action-space calls" in said


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", ["0", "-0.05"])
def test_compare_asks_for_more_accuracy_as_calibrate_does(farthing: Farthing, epsilon: str) -> None:
    """Small is right where large is not, on a tenth of the questions, and costs less."""
    rng = np.random.default_rng(0)
    known = {"small": [True] * 600, "large": (rng.random(600) < 0.85).tolist()}
    path = write(Path("pool.jsonl"), records("q", known))
    asked = ("--promise", "parity", "--epsilon", epsilon, "--delta", "0.1", "--reference", "large")
    done = farthing(
        "compare", "--traces", path, "--policies", "always", "--splits", 5, *asked, "--out", "r"
    )
    assert done.code == 0, done
    assert "at most 0 fewer" not in done.out
    rows = {row["policy"]: row for row in json.loads(Path("r/results.json").read_text())}
    assert rows["always-small"]["fell_back"] == 0
    assert rows["always-large"]["fell_back"] == 1

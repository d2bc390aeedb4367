"""Gold that no answer matches proves nothing: it is refused with examples; hard questions pass."""

import json
import math
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import farthing as ft
from farthing.errors import InputError

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
Farthing = Callable[..., Any]
Refused = Callable[..., str]
LETTERS = "ABCD"


def log(
    gold: Callable[[int], Any],
    said: Callable[[int], str] = str,
    right: tuple[float, float] = (0.8, 0.95),
    n: int = 120,
) -> list[dict[str, Any]]:
    """Return a table of calls: what is asked for is k, of 0 to 3."""
    rng, rows = random.Random(0), []
    for number in range(n):
        k = rng.randrange(4)
        for model, cost, share in (("small", 1e-5, right[0]), ("large", 1e-3, right[1])):
            given = k if rng.random() < share else (k + rng.randrange(1, 4)) % 4
            rows.append({"prompt": f"Question {number}", "llm": model, "usd": cost})
            rows[-1] |= {"response": said(given), "expected": gold(k)}
    return rows


def own(path: Path, rows: list[dict[str, Any]], task: str = "text") -> Path:
    """Write such a table in the form of traces."""
    lines = [
        {
            "id": f"q{at}",
            "question": one["prompt"],
            "gold": one["expected"] if isinstance(one["expected"], list) else [one["expected"]],
            "task": task,
            "calls": [
                {"round": 1, "role": r["llm"], "answer": r["response"], "cost_usd": r["usd"]}
                for r in (one, other)
            ],
        }
        for at, (one, other) in enumerate(zip(rows[::2], rows[1::2], strict=True))
    ]
    path.write_text("\n".join(map(json.dumps, lines)) + "\n")
    return path


@pytest.mark.slow
@pytest.mark.parametrize(
    ("gold", "said", "beside", "advice"),
    [
        (lambda k: f"{k}.0", str, "'3.0' beside '3'", "match as the task gsm8k, which `farthing"),
        (lambda k: f"{k}%", str, "'3%' beside '3'", "match as the task gsm8k"),
        (lambda k: f"['{k}', '{k}.']", str, "\"['3', '3.']\" beside '3'", "as the task gsm8k"),
        (LETTERS.__getitem__, lambda k: f"({LETTERS[k]})", "'D' beside '(D)'", "multiple_choice"),
        (LETTERS.__getitem__, lambda k: f"option text {k}", "'D' beside 'opt", "no task matches"),
        pytest.param(  # read as mathematics, which takes long
            lambda k: f'{{"n": {k}}}',
            str,
            "beside '3'",
            "as the task gsm8k",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_gold_of_another_form_is_refused_with_examples_and_the_task(
    tmp_path: Path,
    refused: Refused,
    gold: Callable[[int], str],
    said: Callable[[int], str],
    beside: str,
    advice: str,
) -> None:
    path = own(tmp_path / "a.jsonl", log(gold, said))
    for command in (("recommend", path), ("train", path, "--out", "b", "--policy", "pool-gain")):
        told = refused(*command)
        assert "0 of 120 graded questions have a right answer" in told
        assert beside in told
        assert told.count(" beside ") == 3
        assert advice in told
    traces = ft.read_traces(path)
    for proves in (ft.recommend, lambda some: ft.fit("pool-gain", some)):
        with pytest.raises(InputError, match="0 of 120 graded questions have a right answer"):
            proves(traces)


@pytest.mark.slow
def test_the_task_that_is_named_grades_them(farthing: Farthing, tmp_path: Path) -> None:
    rows = log(lambda k: f"{k}.0")
    (tmp_path / "a.csv").write_text(
        "prompt,llm,usd,response,expected\n"
        + "".join(",".join(map(str, row.values())) + "\n" for row in rows)
    )
    done = farthing("traces", "import", "a.csv", "--task", "gsm8k", "--store", "traces.db")
    assert done.code == 0, done.err
    assert ft.read_traces("traces.db").arrays.correct.mean() > 0.8
    assert ft.fit("pool-gain", ft.read_traces("traces.db"), 0.2).method == "pool-gain"


@pytest.mark.slow
def test_a_bundle_is_neither_calibrated_nor_measured_on_such_gold(
    farthing: Farthing, refused: Refused, tmp_path: Path
) -> None:
    right, wrong = own(tmp_path / "a.jsonl", log(str)), own(tmp_path / "b.jsonl", log("x{}".format))
    done = farthing("train", right, "--policy", "pool-gain", "--out", tmp_path / "b")
    assert done.code == 0, done.err
    parity = ("--promise", "parity", "--epsilon", "0.1", "--delta", "0.1", "--reference", "large")
    for command in (("calibrate", *parity), ("evaluate",)):
        assert "0 of 120 graded" in refused(*command, "--bundle", tmp_path / "b", "--traces", wrong)


@pytest.mark.slow
def test_promises_that_read_no_gold_pass(tmp_path: Path) -> None:
    traces = ft.read_traces(own(tmp_path / "a.jsonl", log("x{}".format)))
    policy = ft.fit("pool-gain", traces[:60], 0.2, grade="same as large")
    with pytest.raises(InputError, match="do not prove"):
        policy.calibrate(traces[60:], ft.Agreement("large", 0.01))


def test_answers_that_are_all_recorded_as_wrong_are_refused_without_examples() -> None:
    rows = [row | {"passed": False} for row in log(str)]
    with pytest.raises(InputError, match="check what says which answers are right"):
        ft.recommend(ft.from_records(rows))


@pytest.mark.slow
@pytest.mark.parametrize("right", [(0.0, 0.03), (0.02, 0.02), (0.03, 0.03)])
def test_hard_questions_pass(right: tuple[float, float]) -> None:
    """Of 120 questions a few have a right answer, which no other form would make right."""
    policy = ft.fit("pool-gain", ft.from_records(log(str, right=right, n=400)), 0.2)
    assert policy.method == "pool-gain"


def test_letters_that_are_shifted_are_below_chance(tmp_path: Path, refused: Refused) -> None:
    """Gold counts from 1 and answers from 0: a model that is right 9 times of 10 is right never."""
    letter, next_one = LETTERS.__getitem__, lambda k: LETTERS[(k + 1) % 4]
    path = own(tmp_path / "a.jsonl", log(next_one, letter), "multiple_choice")
    told = refused("recommend", path)
    assert "every model is right less often than one that guesses, which is 25% of times" in told
    weak = own(tmp_path / "b.jsonl", log(letter, letter, (0.2, 0.22)), "multiple_choice")
    assert ft.fit("pool-gain", ft.read_traces(weak), 0.2).method == "pool-gain"


@pytest.mark.parametrize("cell", [math.nan, "nan"])
def test_an_empty_cell_is_no_gold(tmp_path: Path, cell: object) -> None:
    rows = log(lambda k: cell if k else "0")
    for traces in (
        ft.from_records(rows),
        ft.read_traces(
            own(tmp_path / "a.jsonl", [r | {"expected": str(r["expected"])} for r in rows])
        ),
    ):
        ungraded = traces.arrays.ungraded.all(axis=(1, 2))
        assert ungraded.tolist() == [str(row["expected"]) == "nan" for row in rows[::2]]


@pytest.mark.slow
@pytest.mark.parametrize("how", ["recommend", "calibrate"])
def test_a_reference_that_gold_never_matches_is_refused(how: str) -> None:
    """Else whoever is right at all is as good as it; a small model that never is stays honest."""
    rows = log(lambda _: "7", lambda k: "7" if k else "5", n=160)
    for row in rows[1::2]:
        row["response"] = f"seven, or {row['response']}"
    parity = ft.Parity("large", 0.05)
    traces = ft.from_records(rows)
    policy = ft.fit("always-small", traces)
    prove = policy.calibrate if how == "calibrate" else ft.recommend
    with pytest.raises(InputError, match=r"0 of 160 graded.* by large.* '7' beside 'seven, or 7'"):
        prove(traces, parity)
    for small, large in zip(rows[::2], rows[1::2], strict=True):
        small["response"], large["response"] = large["response"], small["response"]
    assert ft.recommend(ft.from_records(rows), parity).found.nothing_cheaper

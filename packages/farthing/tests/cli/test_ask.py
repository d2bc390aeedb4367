"""`farthing ask` with scripted models: what it prints, what it refuses, what it does not load."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from asked_job import CAPITAL, JOB, config, origin_of

from farthing.bundle.folder import save
from farthing.features.calls import CallFeatures
from farthing.methods.baselines.fixed import FixedDepthPolicy
from farthing.methods.forest import LEAF, Forest
from farthing.methods.lookahead.policy import GainEstimate, LookaheadPolicy
from farthing.traces.system import Origin

Farthing = Callable[..., Any]
Refused = Callable[..., str]
__all__ = ["config"]


def test_an_answer_in_a_few_lines(farthing: Farthing, config: str) -> None:
    done = farthing("ask", config, "--bundle", "bundle", CAPITAL)
    assert (done.code, done.err) == (0, "")
    assert [line.rstrip() for line in done.out.splitlines()] == [
        "answer   Lisbon",
        "set      Lisbon (1.00)",
        "cost     $0.000000, ended by the policy after 1 of 2 rounds",
        "promise  A new question is covered with probability at least 0.9, on average",
        "over draws of the 99 calibration questions: a right answer is in the returned",
        "set, or no model had one.",
    ]


def test_many_questions_are_lines_of_json(farthing: Farthing, config: str) -> None:
    many = [json.dumps({"id": f"q{i}", "question": f"{CAPITAL} {i}"}) for i in range(20)]
    Path("many.jsonl").write_text("\n".join(many))
    for store in ([], ["--store", "log.db"], ["--store", "log.db"]):
        done = farthing("ask", config, "--bundle", "bundle", "--questions", "many.jsonl", *store)
        found = [json.loads(line) for line in done.out.splitlines()]
        assert [answer["id"] for answer in found] == [f"q{i}" for i in range(20)]
        assert {answer["answer"] for answer in found} == {"Lisbon"}
        assert all(answer["trace"]["truncated"] for answer in found)


@pytest.mark.parametrize("task", ["gsm8k", "mmlu"])
def test_a_file_of_questions_needs_no_gold(farthing: Farthing, config: str, task: str) -> None:
    Path("job.toml").write_text(JOB.replace('"text"', f'"{task}"'))
    Path("many.jsonl").write_text(json.dumps({"id": "q", "question": CAPITAL}))
    done = farthing("ask", config, "--bundle", "bundle", "--questions", "many.jsonl")
    assert (done.code, json.loads(done.out)["answer"]) == (0, "Lisbon"), done.err


def test_other_models_are_named_before_and_after(farthing: Farthing, config: str) -> None:
    done = farthing("ask", config, "--bundle", "foreign", CAPITAL)
    assert done.code == 0
    assert done.err.startswith(
        "note: no promise holds: the bundle was made for the models small and huge"
    )
    assert "promise  The bundle's promise does not hold for this answer" in done.out


def test_without_a_certificate_it_says_so(farthing: Farthing, config: str) -> None:
    done = farthing("ask", config, "--bundle", "bare", CAPITAL, "--json")
    answer = json.loads(done.out)
    assert (answer["answer"], answer["guaranteed"], answer["certificate"]) == (
        "Lisbon",
        False,
        None,
    )
    assert answer["promise"].startswith("No certificate")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([CAPITAL], "--bundle"),
        (["--bundle", "bundle"], "either a question or --questions"),
        (["--bundle", "bundle", CAPITAL, "--questions", "questions.jsonl"], "either"),
        (["--bundle", "bundle", " "], "empty"),
        (["--bundle", "absent", CAPITAL], "absent"),
        (["--bundle", "bundle", CAPITAL, "--max-cost", "much"], "5.00"),
        (["--bundle", "bundle", "--questions", "absent.jsonl"], "absent.jsonl"),
        (["--bundle", "bundle", CAPITAL, "--store", "job.toml"], "job.toml"),
    ],
)
def test_wrong_input_is_one_line(
    refused: Refused, config: str, arguments: list[str], says: str
) -> None:
    assert says in refused("ask", config, *arguments)


def test_single_calls_are_bought_where_calls_are_independent(
    farthing: Farthing, config: str
) -> None:
    features = CallFeatures(roles=("base", "guide"), horizon=2, names=("calls",), missing=(0.0,))
    root = np.zeros(1, dtype=np.int32)
    leaf = Forest(root + LEAF, root.astype(np.float32), root, np.ones((1, 4)), root, 0)
    estimate = GainEstimate(leaf, np.zeros((0, 2)), np.zeros((0, 2)), np.ones(2), share=1.0)
    lazy = LookaheadPolicy("calls", features, estimate, 1.0)
    save("lazy", lazy, origin=origin_of("small", "large"), kappa=0.5)
    answer = json.loads(farthing("ask", config, "--bundle", "lazy", CAPITAL, "--json").out)
    assert (answer["answer"], answer["rounds"], answer["bought"]) == ("Lisbon", 4, "calls")
    assert {call["role"] for call in answer["trace"]["calls"]} == {"base", "guide"}


POOL = 'task = "text"\nquestions = "questions.jsonl"\npool = ["large", "small"]\n'


def test_a_pool_is_asked_in_the_order_of_the_bundle(farthing: Farthing, config: str) -> None:
    Path("pool.toml").write_text(POOL + JOB[JOB.index("[models.small]") :])
    origin = Origin(
        roles=("model",),
        models=("small -> large",),
        mean_cost_nano=(0,),
        horizon=2,
        fingerprint="f",
    )
    save("cascade", FixedDepthPolicy(1), origin=origin)
    done = farthing("ask", "pool.toml", "--bundle", "cascade", CAPITAL, "--json")
    answer = json.loads(done.out)
    assert (answer["answer"], answer["rounds"]) == ("Lisbon", 1)
    assert [call["role"] for call in answer["trace"]["calls"]] == ["small"]


def test_a_job_that_is_none_is_refused(refused: Refused, config: str) -> None:
    assert "absent.toml" in refused("ask", "absent.toml", "--bundle", "bundle", CAPITAL)
    Path("pool.toml").write_text(POOL + JOB[JOB.index("[models.small]") :])
    assert "is for base and guide" in refused("ask", "pool.toml", "--bundle", "bundle", CAPITAL)


@pytest.mark.slow
def test_asking_loads_neither_torch_nor_sklearn(config: str, tmp_path: Path) -> None:
    program = (
        "import sys\n"
        "from farthing.cli import main\n"
        f"code = main._run(['ask', {config!r}, '--bundle', 'bundle', {CAPITAL!r}])\n"
        "print('loaded', code, *({'torch', 'sklearn', 'scipy'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("answer   Lisbon\n")
    assert done.stdout.endswith("loaded 0\n")

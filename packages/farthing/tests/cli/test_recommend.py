"""`farthing recommend`: one screen, the same as JSON, a bundle, and refusals of a line."""

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_up_pool import pool, ungraded, write

import farthing as ft
from farthing.bundle import folder as bundles
from farthing.methods.cards import card
from farthing.recommendation import candidates, splits

Farthing = Callable[..., Any]
Refused = Callable[..., str]
FIVE = ("--promise", "parity", "--epsilon", "0.05", "--reference", "large")


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let few methods take part, so that it takes a moment."""
    names = ("agreement-cascade", "always", "conformal-arbitrage", "lookahead", "fixed")
    monkeypatch.setattr(candidates, "cards", lambda: [card(name) for name in names])


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("pool") / "pool.jsonl", pool(700))


def test_one_screen_says_everything_and_the_bundle_is_what_it_says(
    farthing: Farthing, traces: Path
) -> None:
    asked = ("recommend", "--traces", traces, *FIVE, "--holdout", "98", "--out", "b")
    done = farthing(*asked)
    assert (done.code, done.err) == (0, "bundle: b\n")
    lines = done.out.splitlines()
    assert max(map(len, lines)) <= 80
    assert len(lines) <= 15
    assert lines[0].startswith("pool.jsonl: use ")
    roles = splits.Roles(choose=False, measure=False, holdout=98)
    n = splits.split_four_ways(pool(700), 0, roles).distinct(pool(700).content)
    assert n == {"train": 210, "choose": 0, "prove": 392, "report": 98}
    kept = ft.load("b")
    assert kept.certificate is not None
    shown = (
        "You pay $2.00 per 1,000 requests (large alone)",
        "You would pay $",
        ", 90 % confidence)",
        f"Promise: {kept.certificate.plain_language()}",
        "It assumes a first proof on these questions",
        'Next: farthing ask job.toml --bundle b "a question"',
    )
    below = (
        ", proved",
        "large alone (reference)",
        "medium alone",
        "small alone",
        "expected USD per 1,000",
        kept.certificate.sentence(),
        "On these test questions: accuracy less that of large",
        f"{n['train']} questions trained, {n['prove']} proved. The figures are of 98 others.",
    )
    words = " ".join(done.out.split())
    assert all(said in words for said in shown)
    assert "95 %" not in words, "a screen has one confidence"
    assert not any(said in words for said in below)
    whole = farthing(*asked[:-2], "--details")
    assert max(map(len, whole.out.splitlines())) <= 80
    for said in (*shown[:-1], *below):
        assert said in " ".join(whole.out.split()), said


@pytest.mark.slow
def test_where_none_is_held_out_the_screen_says_of_whom_the_figures_are(
    farthing: Farthing, traces: Path
) -> None:
    done = farthing("recommend", "--traces", traces, *FIVE, "--details")
    assert done.code == 0
    shown = " ".join(done.out.split())
    assert max(map(len, done.out.splitlines())) <= 80
    for said in (
        "With confidence 0.9 in the draw of 490 questions",
        "210 questions trained, 490 proved. The figures are of those that proved; their",
        "intervals allow for the choice",
    ):
        assert said in shown, said
    assert "On these test questions" not in shown
    coverage = ("--promise", "coverage", "--alpha", "0.1", "--details")
    chosen = farthing("recommend", "--traces", traces, *coverage)
    assert "210 questions trained, 117 chose, 275 proved. The figures are of 98 others." in (
        " ".join(chosen.out.split())
    )


def test_more_are_not_held_out_than_there_are(refused: Refused, traces: Path) -> None:
    start = ("recommend", "--traces", traces, *FIVE, "--holdout")
    assert "486 questions are to be held out of 490 that do not train" in refused(*start, "486")
    assert "hold out 0, or from 5 to 485" in refused(*start, "3")
    assert "--holdout" in refused(*start, "-1")


@pytest.mark.slow
def test_json_is_all_of_stdout(traces: Path, tmp_path: Path) -> None:
    """In a process of its own, with a bundle that is written meanwhile."""
    script = str(Path(sys.executable).with_name("farthing"))
    options = ("--traces", str(traces), *FIVE, "--json", "--out", str(tmp_path / "b"))
    command = [script, "recommend", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    said = json.loads(done.stdout)
    assert {"reference", "chosen", "saved", "candidates"} <= set(said)
    assert {"name", "cost_usd", "accuracy"} <= set(said["reference"])
    assert {"method", "cost_usd", "accuracy", "promise", "kept"} <= set(said["chosen"])
    assert {"method", "cost_usd", "accuracy"} <= set(said["candidates"][0])
    assert said["reference"]["name"] == "large"
    assert said["reference"]["cost_usd"] == pytest.approx(0.002)
    chosen = said["chosen"]
    assert said["saved"] == pytest.approx(1 - chosen["cost_usd"] / said["reference"]["cost_usd"])
    assert chosen["promise"].startswith("With confidence 0.9 in the draw of")
    assert chosen["kept"] is True
    shares = {one["method"]: one["share"] for one in said["candidates"] if one["share"]}
    assert chosen["method"] in shares
    assert sum(shares.values()) == pytest.approx(1)
    assert len(shares) == 3
    costs = [one["cost_usd"] for one in said["candidates"]]
    assert costs == sorted(costs)
    assert (said["held_out"], said["questions"]["report"], said["training"]) == (
        False,
        0,
        [{"questions": 210, "cost_usd": said["training"][0]["cost_usd"]}],
    )
    assert bundles.load(tmp_path / "b").certificate is not None
    assert "bundle: " in done.stderr


@pytest.mark.slow
def test_what_is_printed_and_python_say_the_same(farthing: Farthing, traces: Path) -> None:
    said = json.loads(farthing("recommend", "--traces", traces, *FIVE, "--json").out)
    advice = ft.recommend(ft.read_traces(traces), ft.Parity("large", epsilon=0.05))
    assert said == json.loads(json.dumps(advice.to_json()))


@pytest.mark.slow
def test_where_nothing_is_proved_the_reference_answers(farthing: Farthing, traces: Path) -> None:
    hopeless = ("--traces", traces, "--epsilon", "0.0001", "--reference", "large")
    done = farthing("recommend", *hopeless, "--json", "--out", "b")
    assert done.code == 1
    assert bundles.load("b").kind == "always"
    said = json.loads(done.out)
    assert said["chosen"]["method"] == "always-large"
    assert "so large answers, which is always valid" in said["chosen"]["promise"]
    assert (said["chosen"]["kept"], said["saved"]) == (True, 0.0)
    done = farthing("recommend", *hopeless)
    assert done.code == 1
    assert done.out.startswith("pool.jsonl: no saving is proved; keep asking large\n")
    assert max(map(len, done.out.splitlines())) <= 80
    assert "You would pay" not in done.out
    whole = farthing("recommend", *hopeless, "--details")
    assert "Note: " in whole.out
    assert "always-large, proved" not in whole.out


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "promise"),
    [
        (["--promise", "coverage", "--alpha", "0.1"], "covered with probability at least 0.9, on"),
        (["--promise", "coverage", "--delta", "0.1"], "With confidence 0.9 in the draw of"),
        (["--promise", "selective", "--alpha", "0.1"], "an answer that is given is right"),
        (["--promise", "agreement", "--epsilon", "0.2"], "is the one that large would have given"),
        (["--epsilon", "0.2", "--deadline", "6"], "is above large's minus 0.2"),
    ],
)
def test_every_promise(farthing: Farthing, traces: Path, options: list[str], promise: str) -> None:
    done = farthing("recommend", "--traces", traces, *options, "--details")
    assert done.code == 0, done.err
    assert promise in " ".join(done.out.split())
    assert max(map(len, done.out.splitlines())) <= 80


@pytest.mark.slow
def test_what_nobody_graded_agrees_and_rounds_are_covered(
    farthing: Farthing, runs: Path, tmp_path: Path
) -> None:
    logs = write(tmp_path / "logs.jsonl", ungraded(pool(700)))
    said = json.loads(farthing("recommend", "--traces", logs, "--json").out)
    assert said["certificate"]["promise"]["kind"] == "agreement"
    assert said["reference"]["name"] == "large"
    assert said["measure"] == "agreement"
    said = json.loads(farthing("recommend", "--traces", runs, "--json").out)
    assert said["certificate"]["promise"]["kind"] == "split"
    assert said["reference"] is None


@pytest.mark.slow
def test_what_is_wrong_is_refused_in_a_line(
    farthing: Farthing, refused: Refused, traces: Path, tmp_path: Path
) -> None:
    few = write(tmp_path / "few.jsonl", pool(30))
    start = ("recommend", "--traces", traces)
    assert "unknown role 'larg'; did you mean 'large'" in refused(*start, "--reference", "larg")
    assert "there are 30 complete questions, and 40" in refused("recommend", "--traces", few)
    assert "--alpha means nothing to a promise of parity" in refused(*start, "--alpha", "0.1")
    for kind in ("coverage", "selective"):
        wrong = (*start, "--promise", kind, "--epsilon", "0.1")
        assert f"--epsilon means nothing to a promise of {kind}" in refused(*wrong)
    assert "it must be below 1" in refused(*start, "--epsilon", "2")
    assert "--promise" in refused(*start, "--promise", "budget")
    assert "cannot be read" in refused("recommend", "--traces", "absent.jsonl")
    assert " s, and 0.1 were given" in refused(*start, "--deadline", "0.1")
    assert "hold out 0, or from 5 to" in refused(*start, "--holdout", "699")
    for other in (("--promise", "coverage"), ("--per", "request")):
        assert "hold out 5 or more" in refused(*start, *other, "--holdout", "0")
    assert farthing(*start, "--out", "b").code == 0
    assert "holds a proved bundle" in refused(*start, "--out", "b")
    (tmp_path / "file").write_text("")
    assert "no folder that can be written to" in refused(*start, "--out", "file/b")


@pytest.mark.slow
def test_where_nobody_could_answer_instead_it_ends_in_exit_code_1(
    farthing: Farthing, tmp_path: Path
) -> None:
    """Silence rather than a wrong answer needs right answers: here there are hardly any."""
    answered = pool(200)
    wrong = (np.arange(200) % 20 > 0)[:, None, None]
    answer = (answered.answer + wrong).astype(np.int16)
    hopeless = write(tmp_path / "wrong.jsonl", replace(answered, answer=answer))
    done = farthing("recommend", "--traces", hopeless, "--promise", "selective")
    assert (done.code, done.out) == (1, "")
    assert "This promise has no reference that could answer instead." in done.err


def test_a_folder_that_holds_something_else_is_refused_before_the_work(refused: Refused) -> None:
    Path("mine").mkdir()
    Path("mine/notes.txt").write_text("")
    for command in ("recommend", "train"):
        said = refused(command, "--traces", "absent.jsonl", "--out", "mine")
        assert "mine holds notes.txt; name a new or empty folder for the bundle" in said


# questions that ask the same


@pytest.fixture(scope="module")
def repeated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a log of 700 questions, each of which was asked three times."""
    path = tmp_path_factory.mktemp("repeated") / "log.jsonl"
    lines = [json.loads(line) for line in write(path, pool(700)).read_text().splitlines()]
    with path.open("w", encoding="utf-8") as file:
        for time in range(3):
            for line in lines:
                asked = line | {"id": f"{line['id']}-{time}", "question": f"What is {line['id']}?"}
                file.write(json.dumps(asked) + "\n")
    return path


@pytest.mark.slow
@pytest.mark.parametrize("per", [(), ("--per", "question"), ("--per", "request")])
def test_the_screen_says_how_many_questions_are_distinct(
    farthing: Farthing, repeated: Path, per: tuple[str, ...]
) -> None:
    done = farthing("recommend", "--traces", repeated, *FIVE, *per, "--out", "r", "--details")
    shown = " ".join(done.out.split())
    assert "Note: 2,100 requests, 700 distinct questions; " in shown
    held = "request" in per  # as no interval is known for requests that prove
    n = 392 if held else 490
    assert f"in the draw of {n} distinct questions" in shown
    others = "98 others" if held else "those that proved"
    assert f"210 questions trained, {n} proved. The figures are of {others}" in shown
    certificate = bundles.load("r").certificate
    assert certificate is not None
    assert (certificate.n, certificate.requests) == (n, 3 * n)
    assert certificate.per_request == ("request" in per)
    assert ("It is about requests, here 1,176" in shown) == ("request" in per)
    # The steps by hand say it as well, and count likewise.
    parity = ("--promise", "parity", "--epsilon", "0.1", "--delta", "0.2", "--reference", "large")
    farthing("train", "--traces", repeated, "--policy", "agreement-cascade", "--out", "b")
    steps = farthing("calibrate", "--bundle", "b", "--traces", repeated, *parity, *per)
    assert "420 requests, 140 distinct questions" in steps.err
    assert ("of 420 requests 140 ask distinct" in " ".join(steps.out.split())) != ("request" in per)


@pytest.mark.slow
def test_other_promises_count_no_requests(refused: Refused, traces: Path) -> None:
    said = refused("recommend", "--traces", traces, "--promise", "coverage", "--per", "request")
    assert "coverage counts each question once; ask for parity or agreement per request" in said
    said = refused("recommend", "--traces", traces, *FIVE, "--per", "request")
    assert "a promise per request needs to know which requests ask the same, and " in said
    said = refused("calibrate", "--bundle", "b", "--traces", traces, "--per", "request")
    assert "--per means nothing to --promise coverage, only to parity or agreement" in said


@pytest.mark.slow
def test_what_stops_thoughts_is_asked_with_the_job_that_stops_them(
    farthing: Farthing, tmp_path: Path
) -> None:
    lines = []
    for k in range(400):
        calls = [
            {"round": t, "role": "base", "answer": str(k % 5), "cost_usd": 1e-4, "ended": t == 3}
            for t in (1, 2, 3)
        ]
        lines.append(json.dumps({"id": f"q{k}", "gold": [str(k % 5)], "calls": calls}))
    (tmp_path / "thoughts.jsonl").write_text("\n".join(lines))
    done = farthing("recommend", "thoughts.jsonl", "--epsilon", "0.2", "--out", "b")
    assert done.code == 0, done.err
    said = " ".join(done.out.split())
    assert "Next: farthing ask job.toml --bundle b" in said
    assert "with an [agents.thought] in job.toml that is stopped at these cuts" in said

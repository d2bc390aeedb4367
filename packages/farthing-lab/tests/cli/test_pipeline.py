"""`farthing train`, `calibrate`, `evaluate`: one policy from traces to a certificate."""

import csv
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_up_pool import pool as made_up
from made_up_pool import ungraded, write
from told_pool import both, records
from told_pool import write as write_records

from farthing.bundle import folder as bundles
from farthing.bundle.sealed import BODY
from farthing.methods.base import Fitted, Learner, Progress, Variant
from farthing.methods.cards import card
from farthing.recommendation.base import Candidate
from farthing_lab.methods.baselines.rounds import RandomPolicy
from farthing_lab.methods.ccpo.learner import CcpoConfig, CcpoLearner

Farthing = Callable[..., Any]


def ccpo_by(learner: Learner) -> Candidate:
    return Candidate(card("ccpo"), Variant("ccpo", "CCPO", learner))


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make `ccpo` train 30 updates only."""

    def candidates(*_: object) -> list[Candidate]:
        return [ccpo_by(CcpoLearner(CcpoConfig(updates=30)))]

    monkeypatch.setattr("farthing.recommendation.candidates.candidates", candidates)


@pytest.mark.slow
def test_from_traces_to_a_promise(farthing: Farthing, runs: Path) -> None:
    common = ("--bundle", "b", "--traces", runs)
    assert farthing("train", "--traces", runs, "--policy", "stopping", "--out", "b").code == 0
    assert "Nothing is promised" in farthing("evaluate", *common).out
    worth, _, promised = farthing("calibrate", *common, "--alpha", "0.2").out.partition("\n\n")
    assert worth.startswith("You: $0.000")
    assert worth.endswith("These figures are of the 40 questions that set the threshold.")
    assert "probability at least 0.8" in promised
    assert "of the 40 calibration questions" in promised
    measured = farthing("evaluate", *common)
    assert promised.splitlines()[0] in measured.out
    assert re.search(r"40 test questions +USD a question +Accuracy\n", measured.out)
    assert re.search(r"You +0.000\d+ +0.\d{3}\nAlways base +not recorded alone\n", measured.out)
    for out in (promised, measured.out):
        facts = " ".join(out.split())
        assert "rank 8 of 40 questions" in facts
        assert "in 95 % of such draws" in facts
        assert "holds if A new question is exchangeable" in facts
        assert "ends when The kind or mix of questions changes." in facts
    assert "120 to train, 40 to calibrate, 40 to test" in measured.err
    assert max(map(len, measured.out.splitlines())) <= 80


@pytest.mark.slow
def test_without_a_name_the_training_questions_choose(farthing: Farthing, tmp_path: Path) -> None:
    traces = write(tmp_path / "pool.jsonl", made_up(300))
    for named in ([], ["--policy", "auto"]):
        out = f"b{len(named)}"
        done = farthing("train", "--traces", traces, *named, "--out", out)
        assert (done.code, done.out) == (0, "")
        first, second, _ = done.err.splitlines()
        chosen = re.fullmatch(r"policy: (\S+), which is likely to keep its promise .*", first)
        assert chosen
        assert second == "questions: 180 to train, 60 to calibrate, 60 to test"
        again = farthing(
            "train", "--traces", traces, "--policy", chosen[1], "--out", f"{out}-named"
        )
        assert again.code == 0
        assert Path(out, BODY).read_bytes() == Path(f"{out}-named", BODY).read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["drawn", "unasked", "at worst"])
def test_evaluate_weighs_questions_that_were_not_drawn_alike_or_lack_calls(
    farthing: Farthing, kind: str
) -> None:
    """Those that small has wrong were drawn ten times as likely; or small was not asked them."""
    found = records("q", both(400, lost=200))
    for i, record in enumerate(found):
        if kind == "drawn":
            record["calls"][-1]["asked_probability"] = 1.0 if i < 200 else 0.1
        elif i % 4 == 0:
            record["calls"] = record["calls"][1:]
    write_records(Path("log.jsonl"), found)
    write_records(Path("train.jsonl"), records("train", both(60)))
    trained = ("train", "--policy", "always-small", "--out", "b", "--test", 1, "--traces")
    assert farthing(*trained, "train.jsonl").code == 0
    n = 298 if kind == "unasked" else 398
    asked = ("--bundle", "b", "--json", "--train", 1, "--calibrate", 1, "--test", n)
    asked = (*asked, *(("--missing", "worst") if kind == "at worst" else ()), "--traces")
    figures = json.loads(farthing("evaluate", *asked, "log.jsonl").out)["metrics"]
    low, high = {"drawn": (0.85, 0.97), "unasked": (0.49, 0.51), "at worst": (0.37, 0.38)}[kind]
    assert low < figures["accuracy"] < high


@pytest.mark.parametrize(
    ("method", "says"),
    [
        (["pac", "--delta", "0.1"], "With confidence 0.9"),
        (["online"], "updates"),
        (["split", "--population", "solvable"], "solvable question"),
    ],
)
def test_each_method_says_what_it_promises(
    farthing: Farthing, runs: Path, method: list[str], says: str
) -> None:
    farthing("train", "--traces", runs, "--policy", "random", "--out", "b")
    asked = ("calibrate", "--bundle", "b", "--traces", runs, "--alpha", "0.2", "--method", *method)
    assert says in " ".join(farthing(*asked).out.split())


def test_questions_that_may_have_trained_the_bundle_are_remarked_on(
    farthing: Farthing, runs: Path
) -> None:
    farthing("train", "--traces", runs, "--policy", "random", "--out", "b")
    asked = ("--bundle", "b", "--traces", runs)
    assert "note:" not in farthing("evaluate", *asked).err
    assert "test questions trained the policy" in farthing("evaluate", *asked, "--seed", 1).err


@pytest.mark.slow
def test_no_question_is_used_twice_without_a_word(farthing: Farthing, runs: Path) -> None:
    farthing("train", "--traces", runs, "--policy", "random", "--out", "b")
    asked = ("--bundle", "b", "--traces", runs)
    refused = farthing("calibrate", *asked, "--seed", 1)
    assert refused.code == 2
    assert "calibration questions trained the policy" in refused.err
    sizes = ("--train", 120, "--calibrate", 79, "--test", 1)
    assert farthing("calibrate", *asked, *sizes).code == 0
    met = farthing("evaluate", *asked).err
    assert re.search(r"(39|40) of the 40 test questions set its threshold", met)
    assert "note:" not in farthing("evaluate", *asked, *sizes).err


@pytest.mark.slow
def test_a_promise_is_not_replaced_without_a_word(farthing: Farthing, runs: Path) -> None:
    train = ("train", "--traces", runs, "--policy", "random", "--out", "b")
    calibrate = ("calibrate", "--bundle", "b", "--traces", runs, "--alpha")
    assert farthing(*train).code == farthing(*train).code == 0
    assert "replaced" not in farthing(*calibrate, "0.1").err
    assert "replaced: A new question is covered with probability at least 0.9" in " ".join(
        farthing(*calibrate, "0.2").err.split()
    )
    kept = Path("b/bundle.json").read_bytes()
    refused = farthing(*train)
    assert refused.code == 2
    assert "b: holds a proved bundle" in refused.err
    assert Path("b/bundle.json").read_bytes() == kept


def test_a_method_says_what_it_cannot_do(farthing: Farthing, runs: Path) -> None:
    farthing("train", "--traces", runs, "--policy", "random", "--out", "b")
    calibrate = ("calibrate", "--bundle", "b", "--traces", runs, "--method")
    refused = farthing(*calibrate, "split", "--delta", "0.1")
    assert refused.code == 2
    assert "delta goes with --method pac" in refused.err
    online = farthing(*calibrate, "online").err
    assert "begins at 2,021 updates of 10 questions each, and this stream gave 4" in online


@pytest.mark.slow
def test_a_feature_is_asked_for_by_name(farthing: Farthing, pool: Path) -> None:
    Path("a.jsonl").write_text(pool.read_text().replace('"correct"', '"depth": 3, "correct"', 17))
    train = ("train", "--traces", "a.jsonl", "--out", "b", "--feature", "depth", "--policy")
    assert farthing(*train, "stopping").code == 0
    described = bundles.load("b").features
    assert described
    assert described["extra"] == ["depth"]
    assert "uala read no features" in farthing(*train, "uala").err
    compare = ("compare", "--traces", "a.jsonl", "--splits", 2, "--out", "r", "--policies")
    assert farthing(*compare, "uala,stopping", "--feature", "depth").code == 0
    assert "did you mean 'depth'" in farthing(*compare, "stopping", "--feature", "dept").err


@pytest.mark.slow
@pytest.mark.usefixtures("quick")
def test_the_same_seed_gives_the_same_bytes(farthing: Farthing, runs: Path) -> None:
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        asked = ("train", "--traces", runs, "--policy", "ccpo", "--seed", seed, "--out", name)
        assert farthing(*asked).code == 0

    def written(name: str) -> list[bytes]:
        files = (f"{name}/bundle.json", f"{name}/weights.safetensors", f"{name}.curves.csv")
        return [Path(file).read_bytes() for file in files]

    assert written("a") == written("b")
    assert written("a") != written("c")


@pytest.mark.slow
@pytest.mark.usefixtures("quick")
def test_curves_have_a_line_an_update(farthing: Farthing, runs: Path) -> None:
    farthing("train", "--traces", runs, "--policy", "ccpo", "--out", "a")
    with Path("a.curves.csv").open() as file:
        lines = list(csv.DictReader(file))
    assert [line["update"] for line in lines] == [str(n) for n in range(1, 31)]
    assert all(0 <= float(line["coverage"]) <= 1 for line in lines)
    assert {"cost", "coverage", "kappa", "violation"} <= set(lines[0])


def test_an_interrupted_training_is_kept_and_said_so(
    farthing: Farthing, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Stopped:
        def fit(self, train: object, alpha: object, seed: int, progress: Progress) -> Fitted:
            progress.update(3, 10, {"cost": 1.0})
            return Fitted(RandomPolicy(), stopped_early=True)

    def candidates(*_: object) -> list[Candidate]:
        return [ccpo_by(Stopped())]

    monkeypatch.setattr("farthing.recommendation.candidates.candidates", candidates)
    done = farthing("train", "--traces", runs, "--policy", "ccpo", "--out", "a")
    assert done.code == 130
    assert "interrupted; the bundle holds" in done.err
    assert bundles.load("a").kind == "random"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (["selective", "--alpha", "0.6", "--delta", "0.2"], "answers given"),
        (
            ["selective", "--alpha=0.6", "--delta=0.2", "--escalate=guide", "--epsilon=0.3"],
            "accuracy less that of guide",
        ),
        (["parity", "--epsilon", "0.2", "--delta", "0.2"], "less that of guide"),
        (["parity", "--epsilon", "0.2", "--delta", "0.2", "--reference", "base"], "of base"),
        (["budget", "--budget", "0.0009", "--most", "0.01", "--delta", "0.2"], "USD a question"),
    ],
)
def test_another_promise_is_made_and_judged(
    farthing: Farthing, runs: Path, asked: list[str], says: str
) -> None:
    common = ("--bundle", "b", "--traces", runs)
    farthing("train", "--traces", runs, "--policy", "stopping", "--out", "b")
    made = farthing("calibrate", *common, "--promise", *asked)
    assert made.code == 0, made
    promised = made.out.partition("\n\n")[2]
    assert promised.startswith("With confidence 0.8 in the draw of 40 questions")
    measured = " ".join(farthing("evaluate", *common).out.split())
    assert " ".join(promised.split()) in measured
    assert says in measured
    assert "was promised: kept." in measured


def test_parity_on_a_pool_is_with_one_of_its_models(farthing: Farthing, pool: Path) -> None:
    common = ("--bundle", "b", "--traces", pool, "--train", 10, "--calibrate", 15, "--test", 5)
    farthing("train", *common[2:], "--policy", "fixed-1", "--out", "b")
    asked = ("--promise", "parity", "--epsilon", "0.6", "--delta", "0.3", "--reference")
    assert "large's minus 0.6" in " ".join(
        farthing("calibrate", *common, *asked, "large").out.split()
    )
    refused = farthing("calibrate", *common, *asked, "medium")
    assert (refused.code, "small" in refused.err) == (2, True)


def test_money_comes_first_beside_every_single_model(farthing: Farthing, pool: Path) -> None:
    """`large` is always right; `small`, at a tenth of its price, on two questions of three."""
    common = ("--traces", pool, "--train", 10, "--calibrate", 15, "--test", 5)
    farthing("train", *common, "--policy", "fixed-2", "--out", "b")
    said = farthing("calibrate", "--bundle", "b", *common, "--alpha", "0.4").out
    assert said.startswith("You: $0.0")
    assert "Always large alone: $0.0100 a question at accuracy 1.000.\n" in said
    assert "More expensive than always large: 10.0 % (95 % interval 10.0 to 10.0); accuracy" in said
    lines = farthing("evaluate", "--bundle", "b", *common).out.splitlines()
    assert lines[0].split() == ["5", "test", "questions", "USD", "a", "question", "Accuracy"]
    assert lines[2].startswith("You ")
    assert re.fullmatch(r"Always small +0\.00100 +0\.\d00", lines[3])
    assert re.fullmatch(r"Always large +0\.0100 +1\.000", lines[4])
    assert lines[5].startswith("More expensive than always large: 10.0 %")


@pytest.mark.slow
def test_the_mix_to_come_is_given_as_a_file(farthing: Farthing, runs: Path) -> None:
    common = ("--bundle", "b", "--traces", runs)
    farthing("train", "--traces", runs, "--policy", "stopping", "--out", "b")
    made = farthing("calibrate", *common, "--promise", "shift", "--target", runs, "--alpha", "0.2")
    assert "under the target mix, if that differs only in what round 1" in " ".join(
        made.out.split()
    )


@pytest.mark.slow
def test_a_mix_that_differs_in_more_than_round_1_is_refused(
    farthing: Farthing, refused: Callable[..., str], runs: Path
) -> None:
    other = ("--preset", "mmlu-llama3.2-3b", "--n", "200", "--out", "new.jsonl.gz")
    assert farthing("generate", *other).code == 0
    farthing("train", "--traces", runs, "--policy", "stopping", "--out", "b")
    common = ("--bundle", "b", "--traces", runs)
    said = refused("calibrate", *common, "--promise", "shift", "--target", "new.jsonl.gz")
    assert "differs in more than round 1 shows" in said
    assert "--promise coverage" in said
    assert "not calibrated" in farthing("evaluate", *common).out


@pytest.mark.slow
def test_what_cannot_be_proved_ends_in_exit_code_1(farthing: Farthing, runs: Path) -> None:
    common = ("--bundle", "b", "--traces", runs)
    farthing("train", "--traces", runs, "--policy", "stopping", "--out", "b")
    asked = ("--promise", "parity", "--epsilon", "0.001", "--delta", "0.1")
    done = farthing("calibrate", *common, *asked)
    assert done.code == 1
    assert "so guide answers, which is always valid" in " ".join(done.out.split())
    assert "the bundle is left as it was: in rounds nobody knows what guide says" in done.err
    assert "more questions would probably prove this promise" in " ".join(done.out.split())
    assert "(a chance of 80 %, if" in " ".join(done.out.split())
    assert "not calibrated" in farthing("evaluate", *common).out


@pytest.mark.slow
def test_where_nothing_is_proved_the_bundle_asks_the_reference(
    farthing: Farthing, pool: Path
) -> None:
    common = ("--bundle", "b", "--traces", pool, "--train", 10, "--calibrate", 15, "--test", 5)
    farthing("train", *common[2:], "--policy", "fixed-1", "--out", "b")
    asked = ("--promise", "parity", "--epsilon", "0.01", "--delta", "0.1")
    done = farthing("calibrate", *common, *asked)
    assert done.code == 1
    assert "Saved against always large: 0.0 %" in done.out
    assert "b now asks large for every question; the trained policy is kept inside" in done.err
    assert bundles.load("b").kind == "always"
    lines = farthing("evaluate", *common).out.splitlines()
    assert lines[2].split()[1:] == lines[4].split()[2:] == ["0.0100", "1.000"]
    assert farthing("calibrate", *common, "--alpha", "0.4").code == 0
    assert bundles.load("b").kind == "fixed"


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (["parity", "--delta", "0.1", "--confidence", "0.9"], "give --confidence or --delta"),
        (["selective", "--delta", "0.1", "--escalate", "guide"], "needs --epsilon"),
        (["parity", "--epsilon", "0.1", "--delta", "0.1", "--escalate", "x"], "only to selective"),
        (["budget", "--budget", "0.1", "--delta", "0.1"], "needs --most"),
        (
            ["budget", "--budget", "1", "--most", "0.00002", "--delta", "0.1"],
            "--budget is $1; it must be below --most, which is $0.00002,",
        ),
        (["budget", "--budget", "free", "--most", "1", "--delta", "0.1"], "US dollars"),
        (["shift"], "needs --target"),
        (["selective", "--delta", "0.1", "--target", "x"], "only to shift"),
        (["coverage", "--epsilon", "0.1"], "only to selective or parity"),
        (["parity", "--epsilon", "0.1", "--delta", "0.1", "--method", "pac"], "--method"),
        (["certainty"], "coverage"),
    ],
)
def test_options_that_do_not_go_together_are_refused(
    refused: Callable[..., str], runs: Path, asked: list[str], says: str
) -> None:
    assert says in refused("calibrate", "--bundle", "b", "--traces", runs, "--promise", *asked)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "says"),
    [
        (
            ["--promise", "budget", "--budget", "0.0003", "--most", "0.0004", "--delta", "0.1"],
            "the largest possible cost that was given, $0.0004: give a larger --most",
        ),
        (
            ["--question-budget", "0.0001", "--largest", "base=0.01", "--largest", "guide=0.02"],
            "cannot calibrate under a budget of $0.0001 a question: this budget reaches",
        ),
        (
            ["--question-budget", "1", "--largest", "base=0.0000002", "--largest", "guide=1"],
            "more than its bound of $0.0000002; give --largest base=USD",
        ),
        (["--question-budget", "1", "--largest", "base=x"], "--largest base=x: 'x' is no amount"),
        (["--question-budget", "0"], "'--question-budget': '0' is no amount of US dollars above 0"),
    ],
)
def test_amounts_are_said_in_dollars_with_their_option(
    farthing: Farthing, runs: Path, options: list[str], says: str
) -> None:
    farthing("train", "--traces", runs, "--policy", "stopping", "--out", "b")
    refused = farthing("calibrate", "--bundle", "b", "--traces", runs, *options)
    assert (refused.code, says in refused.err) == (2, True), refused.err
    assert "nano" not in refused.err
    assert not re.search(r"\de-\d", refused.err)


@pytest.mark.parametrize("promise", ["agreement", "parity"])
def test_what_nobody_graded_agrees_and_is_never_called_accurate(
    farthing: Farthing, tmp_path: Path, promise: str
) -> None:
    logs = write(tmp_path / "logs.jsonl", ungraded(made_up(300)))
    common = ("--bundle", "b", "--traces", logs)
    trained = ("--policy", "agreement-cascade", "--grade", "same as large", "--out", "b")
    assert farthing("train", "--traces", logs, *trained).code == 0
    before = farthing("evaluate", *common)
    asked = ("--promise", promise, "--epsilon", 0.4, "--delta", 0.2, "--reference", "large")
    proved = farthing("calibrate", *common, *asked)
    after = farthing("evaluate", *common)
    assert (before.code, proved.code, after.code) == (0, 0, 0), after.err
    assert "at agreement " in proved.out
    figures = proved.out.partition("With confidence")[0]
    assert "accuracy" not in figures
    for done in (before, after):
        table = done.out.partition("Nothing is promised")[0].partition("With confidence")[0]
        assert "accuracy" not in table.casefold()
        assert "right" not in table
        for heading in (
            "Agreement",
            "Of these questions, by the answers of large",
            "agreement of the best answer",
            "its answer in the set",
        ):
            assert heading in table
    last = " ".join(after.out.split()).rpartition("On these test questions: ")[2]
    parity = "accuracy less that of large, at worst, "
    assert last.startswith(parity if promise == "parity" else "answers that are large's ")


@pytest.mark.slow
def test_some_grades_are_no_agreement(farthing: Farthing, tmp_path: Path) -> None:
    """Accuracy at worst is what a parity of partly graded answers reads."""
    traces = made_up(300)
    unknown = np.broadcast_to(np.arange(300)[:, None, None] % 2 == 0, traces.correct.shape)
    logs = write(tmp_path / "logs.jsonl", replace(traces, ungraded=unknown))
    trained = ("--policy", "agreement-cascade", "--grade", "same as large", "--out", "b")
    assert farthing("train", "--traces", logs, *trained).code == 0
    asked = ("--promise", "parity", "--epsilon", 0.4, "--delta", 0.2, "--reference", "large")
    assert "at accuracy " in farthing("calibrate", "--bundle", "b", "--traces", logs, *asked).out

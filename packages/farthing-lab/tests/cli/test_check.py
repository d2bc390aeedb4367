"""`farthing check`: exit code 0 where the certificate still applies, 1 where it does not."""

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from farthing.bundle import folder as bundles
from farthing.promises.certificate import AskedOf, Certificate
from farthing.promises.kinds.budget import BudgetPromise
from farthing.promises.kinds.selective import SelectivePromise

Farthing = Callable[..., Any]
TENTH = Fraction(1, 10)
WORST = AskedOf(models=("small", "large"), questions=130, recorded=130, missing="worst")
SELECTIVE = SelectivePromise(alpha=TENTH, delta=TENTH, points=1, point=0, answered=90, rule=1)
BUDGET = BudgetPromise(budget_nano=9, most_nano=9, delta=TENTH, points=1, point=0, rule=1)
FALSE = {
    "worst": (Certificate(promise=SELECTIVE, asked_of=WORST), "counted as answers withheld"),
    "largest": (Certificate(promise=BUDGET), "its budget is the largest possible cost"),
}


@pytest.mark.slow
def test_new_questions_of_the_same_mix_and_of_another(farthing: Farthing, runs: Path) -> None:
    sizes = ("--train", 60, "--calibrate", 130, "--test", 10)
    common = ("--bundle", "b", "--traces", runs, *sizes)
    farthing("train", *common[2:], "--policy", "stopping", "--out", "b")
    refused = farthing("check", *common, "--new", runs)
    assert (refused.code, "not calibrated" in refused.err) == (2, True)
    farthing("calibrate", *common)
    farthing("generate", "--preset", "mmlu-llama2-7b", "--n", 300, "--out", "other.jsonl.gz")
    same = farthing("check", *common, "--new", runs)
    assert (same.code, "nothing speaks against" in " ".join(same.out.split())) == (0, True)
    other = farthing("check", *common, "--new", "other.jsonl.gz")
    assert (other.code, "does not apply" in " ".join(other.out.split())) == (1, True)


@pytest.mark.slow
@pytest.mark.parametrize("which", FALSE)
def test_what_an_older_rule_proved_falsely_is_named(
    which: str, farthing: Farthing, runs: Path
) -> None:
    certificate, why = FALSE[which]
    sizes = ("--train", 60, "--calibrate", 130, "--test", 10)
    farthing("train", "--traces", runs, *sizes, "--policy", "fixed-2", "--out", "b")
    made = bundles.load("b")
    common = ("check", "--bundle", "b", "--traces", runs, *sizes, "--new", runs)
    bundles.write("b", structs.replace(made, kappa=0.0, certificate=certificate))
    named = farthing(*common)
    said = " ".join(named.out.split())
    assert (named.code, said.startswith("The promise is not proved: ")) == (1, True)
    assert why in said
    assert said.endswith("Calibrate again with this version.")
    found = json.loads(farthing(*common, "--json").out)
    assert (found["applies"], found["p_value"], found["sentence"]) == (False, None, said)
    promise: Any = certificate.promise
    renewed = structs.replace(certificate, promise=structs.replace(promise, rule=2))
    bundles.write("b", structs.replace(made, kappa=0.0, certificate=renewed))
    assert farthing(*common).code == 2  # it goes on to compare questions, here others

"""`farthing check`: exit code 0 where the certificate still applies, 1 where it does not."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

Farthing = Callable[..., Any]


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

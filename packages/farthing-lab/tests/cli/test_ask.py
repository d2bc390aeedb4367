"""`farthing ask` of dialogues and of the laboratory's tasks."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from asked_job import CAPITAL, JOB, config, origin_of

from farthing.bundle.folder import save
from farthing.features.calls import CallFeatures
from farthing.methods.forest import LEAF, Forest
from farthing.methods.lookahead.policy import GainEstimate, LookaheadPolicy

Farthing = Callable[..., Any]
Refused = Callable[..., str]
__all__ = ["config"]
JUDGED = 'otherwise = "Yes"'.join(
    JOB.replace('mode = "independent"\n', "").rsplit('otherwise = "Answer: Lisbon"', 1)
)


@pytest.mark.parametrize("task", ["hotpotqa", "math"])
def test_a_file_of_questions_needs_no_gold(farthing: Farthing, config: str, task: str) -> None:
    Path("job.toml").write_text(JUDGED.replace('"text"', f'"{task}"'))
    Path("many.jsonl").write_text(json.dumps({"id": "q", "question": CAPITAL}))
    done = farthing("ask", config, "--bundle", "bundle", "--questions", "many.jsonl")
    assert (done.code, json.loads(done.out)["answer"]) == (0, "Lisbon"), done.err


def test_single_calls_are_not_bought_where_a_guide_would_judge(
    refused: Refused, config: str
) -> None:
    """It is refused before anything is paid."""
    Path("job.toml").write_text(JUDGED)
    features = CallFeatures(roles=("base", "guide"), horizon=2, names=("calls",), missing=(0.0,))
    root = np.zeros(1, dtype=np.int32)
    leaf = Forest(root + LEAF, root.astype(np.float32), root, np.ones((1, 4)), root, 0)
    estimate = GainEstimate(leaf, np.zeros((0, 2)), np.zeros((0, 2)), np.ones(2), share=1.0)
    lazy = LookaheadPolicy("calls", features, estimate, 1.0)
    save("lazy", lazy, origin=origin_of("small", "large"), kappa=0.5)
    said = refused("ask", config, "--bundle", "lazy", CAPITAL)
    assert "the bundle's policy buys call by call, and here calls see one another" in said
    assert 'write mode = "independent" in the job' in said

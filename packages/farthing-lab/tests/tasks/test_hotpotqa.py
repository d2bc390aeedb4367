"""Against the official script, written out again here, and against recorded grades."""

import gzip
import json
import re
import string
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farthing_lab.tasks.hotpotqa import HOTPOTQA, f1, normalise

RECORDED = Path(__file__).parents[4] / "../shared/data/traces/hotpotqa-seven-agents.jsonl.gz"
WORDS = st.lists(
    st.sampled_from(
        ["yes", "No", "noanswer", "the", "Eiffel", "eiffel", "tower!", "a", "of", "B."]
    ),
    max_size=6,
).map(" ".join)


def reference(prediction: str, gold: str) -> tuple[bool, float]:
    """Exact match and F1, step by step as the script goes about it."""

    def clean(answer: str) -> list[str]:
        kept = "".join(letter for letter in answer.lower() if letter not in string.punctuation)
        return re.sub(r"\b(a|an|the)\b", " ", kept).split()

    ours, theirs = clean(prediction), clean(gold)
    for tokens in (ours, theirs):
        if tokens in (["yes"], ["no"], ["noanswer"]) and ours != theirs:
            return False, 0.0
    left, shared = list(theirs), 0
    for token in ours:
        if token in left:
            left.remove(token)
            shared += 1
    if shared == 0:
        return ours == theirs, 0.0
    precision, recall = shared / len(ours), shared / len(theirs)
    return ours == theirs, 2 * precision * recall / (precision + recall)


@settings(deadline=None, max_examples=300)
@given(answer=WORDS, gold=WORDS)
def test_agrees_with_the_official_script(answer: str, gold: str) -> None:
    exact, score = reference(answer, gold)
    assert f1(answer, gold) == pytest.approx(score, abs=1e-12)
    assert (normalise(answer) == normalise(gold)) == exact


def test_no_answer_scores_nothing() -> None:
    assert f1(None, "yes") == 0.0
    assert f1("", "yes") == 0.0


def test_agrees_with_every_recorded_grade() -> None:
    if not RECORDED.exists():
        pytest.skip("the recorded HotpotQA traces are not beside this repository")
    with gzip.open(RECORDED, "rt") as lines:
        questions = [json.loads(line) for line in lines]
    for question in questions:
        for call in question["calls"]:
            best = max(f1(call["answer"], accepted) for accepted in question["gold"])
            assert best == pytest.approx(call["f1"], abs=1e-3)
            assert HOTPOTQA.grade(call["answer"], question["gold"]) == call["correct"]

"""Against the official script, written out again here, and against recorded grades."""

import gzip
import json
import re
import string
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farthing_lab.tasks.hotpotqa import HOTPOTQA, normalise

RECORDED = Path(__file__).parents[4] / "../shared/data/traces/hotpotqa-seven-agents.jsonl.gz"
WORDS = st.lists(
    st.sampled_from(
        ["yes", "No", "noanswer", "the", "Eiffel", "eiffel", "tower!", "a", "of", "B."]
    ),
    max_size=6,
).map(" ".join)


def reference(prediction: str, gold: str) -> bool:
    """Exact match, step by step as the script goes about it."""

    def clean(answer: str) -> list[str]:
        kept = "".join(letter for letter in answer.lower() if letter not in string.punctuation)
        return re.sub(r"\b(a|an|the)\b", " ", kept).split()

    return clean(prediction) == clean(gold)


@pytest.mark.slow
@settings(deadline=None, max_examples=300)
@given(answer=WORDS, gold=WORDS)
def test_agrees_with_the_official_script(answer: str, gold: str) -> None:
    assert (normalise(answer) == normalise(gold)) == reference(answer, gold)


def test_agrees_with_every_recorded_grade() -> None:
    if not RECORDED.exists():
        pytest.skip("the recorded HotpotQA traces are not beside this repository")
    with gzip.open(RECORDED, "rt") as lines:
        questions = [json.loads(line) for line in lines]
    for question in questions:
        for call in question["calls"]:
            assert HOTPOTQA.grade(call["answer"], question["gold"]) == call["correct"]

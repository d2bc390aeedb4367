"""One row of a table's real form, every field with its unit, and the whole trace it becomes.

No two numbers of a row are alike, so that a field or a unit that is taken for another is noticed.
"""

from collections.abc import Callable

from farthing.traces.base import Call, Trace

Import = Callable[..., Trace]
ASKED = "How many grams are in a kilogram?"
SAID = "There are 1000 grams.\nAnswer: 1000"


def test_a_row_of_routerbench(imported: Import) -> None:
    """As `routerbench_0shot.pkl` of `withmartian/routerbench` is headed: USD, a score a model."""
    row = {
        "sample_id": "grade-school-math.dev.7",
        "prompt": repr(["Answer with a number.", ASKED]),
        "eval_name": "grade-school-math",
        "gpt-4-1106-preview": 0.75,
        "mistralai/mistral-7b-chat": 0.25,
        "gpt-4-1106-preview|model_response": repr([SAID]),
        "mistralai/mistral-7b-chat|model_response": repr(["I think 100."]),
        "gpt-4-1106-preview|total_cost": 0.0021,
        "mistralai/mistral-7b-chat|total_cost": 0.000031,
        "oracle_model_to_route_to": "gpt-4-1106-preview",
    }
    calls = [
        Call(
            round=1,
            role="gpt-4-1106-preview",
            model="gpt-4-1106-preview",
            answer="1000",
            text=SAID,
            correct=True,
            score=0.75,
            cost_usd=0.0021,
        ),
        Call(
            round=1,
            role="mistralai/mistral-7b-chat",
            model="mistralai/mistral-7b-chat",
            answer="I think 100.",
            text="I think 100.",
            correct=False,
            score=0.25,
            cost_usd=0.000031,
        ),
    ]
    assert imported("wide.csv", [row]) == Trace(
        id="grade-school-math.dev.7",
        question=f"Answer with a number.\n{ASKED}",
        task="gsm8k",
        group="grade-school-math",
        independent=True,
        calls=calls,
    )


def test_a_score_at_the_threshold_is_right(imported: Import) -> None:
    for score, right in ((0.6, True), (0.59, False)):
        wide = {"sample_id": "s", "prompt": "2 + 2?", "m": score, "m|model_response": "4"}
        assert imported("w.csv", [wide], "--threshold", 0.6).calls[0].correct is right

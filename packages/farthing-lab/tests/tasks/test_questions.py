"""Loaders of the laboratory's tasks read the public files' own formats, and refuse by row."""

import json
from pathlib import Path
from typing import Any

import pytest

from farthing.errors import QuestionFormatError
from farthing.tasks.base import Question
from farthing.tasks.questions import load_questions

HOTPOT: list[dict[str, Any]] = [
    {
        "_id": "5a8b57f25542995d1e6f1371",
        "question": "Were Scott Derrickson and Ed Wood of the same nationality?",
        "answer": "yes",
        "type": "comparison",
        "level": "hard",
        "supporting_facts": [["Scott Derrickson", 0], ["Ed Wood", 0]],
        "context": [
            ["Scott Derrickson", ["Scott Derrickson is an American director.", " He was born."]],
            ["Ed Wood", ["Edward Davis Wood Jr. was an American filmmaker."]],
        ],
    },
    {"_id": "second", "question": "Who?", "answer": "Ed Wood", "type": "bridge", "context": []},
]
MATH = {
    "problem": "What is $\\frac{1}{4}+\\frac{1}{4}$?",
    "level": "Level 1",
    "type": "Prealgebra",
    "solution": "We add: $\\boxed{1}$? No, $\\boxed{\\frac{1}{2}}$.",
}


def jsonl(path: Path, rows: list[Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_hotpotqa_as_it_is_published(tmp_path: Path) -> None:
    path = tmp_path / "hotpot_dev_distractor_v1.json"
    path.write_text(json.dumps(HOTPOT))
    first, second = load_questions("hotpotqa", path)
    assert first == Question(
        id="5a8b57f25542995d1e6f1371",
        text="Were Scott Derrickson and Ed Wood of the same nationality?",
        gold=("yes",),
        group="comparison",
        split="calibrate",
        paragraphs=(
            ("Scott Derrickson", "Scott Derrickson is an American director. He was born."),
            ("Ed Wood", "Edward Davis Wood Jr. was an American filmmaker."),
        ),
    )
    assert second.paragraphs == ()


def test_hotpotqa_test_questions_have_no_answer(tmp_path: Path) -> None:
    rows = [{k: v for k, v in HOTPOT[0].items() if k not in {"answer", "type"}}]
    path = tmp_path / "hotpot_test_fullwiki_v1.json"
    path.write_text(json.dumps(rows))
    (question,) = load_questions("hotpotqa", path)
    assert (question.gold, question.group, question.split) == ((), None, "test")


def test_math_as_it_is_published(tmp_path: Path) -> None:
    for name in ("2", "10"):
        file = tmp_path / "MATH" / "test" / "prealgebra" / f"{name}.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(MATH))
    questions = load_questions("math", tmp_path / "MATH")
    assert [q.id for q in questions] == ["Prealgebra-test-2-1", "Prealgebra-test-10-1"]
    assert questions[0].gold == (r"\frac{1}{2}",)
    assert (questions[0].group, questions[0].split) == ("Prealgebra", "test")


def test_math_500_in_json_lines(tmp_path: Path) -> None:
    row = {
        "problem": "How many?",
        "solution": r"$\boxed{9}$",
        "answer": "9",
        "subject": "Number Theory",
        "level": 3,
        "unique_id": "test/number_theory/572.json",
    }
    (question,) = load_questions("math", jsonl(tmp_path / "math500_test.jsonl", [row]))
    assert (question.id, question.gold, question.group) == (
        "test/number_theory/572.json",
        ("9",),
        "Number Theory",
    )


def test_your_own_json_lines(tmp_path: Path) -> None:
    row = {
        "id": "q7",
        "question": "Capital of Portugal?",
        "gold": ["Lisbon", "Lisboa"],
        "group": "capitals",
        "split": "train",
        "choices": ["Oslo", "Lisbon"],
        "paragraphs": [["Lisbon", "It is the capital."]],
    }
    path = jsonl(tmp_path / "mine.jsonl", [row])
    assert load_questions("hotpotqa", path) == load_questions("text", path)


@pytest.mark.parametrize(
    ("task", "name", "content", "message"),
    [
        ("hotpotqa", "d.json", '[{"_id": "a", "question": "?"}, {"_id": "b"}]', "row 2, question"),
        ("hotpotqa", "d.json", '[{"question": "?"}]', "row 1, _id or id: is missing"),
        ("hotpotqa", "d.json", '[{"_id":"a","question":"?","context":[3]}]', "row 1, context"),
        ("hotpotqa", "d.json", "[{", "row 1, row: is broken JSON"),
        ("hotpotqa", "d.json", "[1]", "row 1, row: is no object"),
        ("math", "t.jsonl", '{"problem": "?", "solution": "9"}', "line 1, solution: has no"),
        ("math", "t.jsonl", '{"problem": " ", "answer": "9"}', "line 1, problem: is ' '"),
    ],
)
def test_refusals_name_file_row_and_field(
    tmp_path: Path, task: str, name: str, content: str, message: str
) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(QuestionFormatError) as caught:
        load_questions(task, tmp_path / name)
    assert message in str(caught.value)
    assert str(tmp_path / name) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.extras("datasets")
def test_a_data_set_of_another_task_is_refused(tmp_path: Path) -> None:
    (tmp_path / "gsm").mkdir()
    jsonl(tmp_path / "gsm" / "train.jsonl", [{"question": "2 + 2?", "answer": "#### 4"}])
    with pytest.raises(QuestionFormatError, match=r"gsm \(\w+\), row 1, problem"):
        load_questions("math", f"dataset:{tmp_path / 'gsm'}")


def test_rows_of_the_hub_have_their_own_shapes(monkeypatch: pytest.MonkeyPatch) -> None:
    hotpot = {**HOTPOT[0], "id": HOTPOT[0]["_id"]}
    del hotpot["_id"]
    hotpot["context"] = {
        "title": [title for title, _ in HOTPOT[0]["context"]],
        "sentences": [sentences for _, sentences in HOTPOT[0]["context"]],
    }

    class Library:
        @staticmethod
        def load_dataset(name: str, config: str | None) -> dict[str, list[dict[str, Any]]]:
            return {"validation": [hotpot]}

    monkeypatch.setitem(__import__("sys").modules, "datasets", Library)
    (question,) = load_questions("hotpotqa", "dataset:any:hotpot")
    assert question.paragraphs[1] == ("Ed Wood", HOTPOT[0]["context"][1][1][0])


UNGRADED = [
    ("math", "q.json", '{"problem": "2 + 2?", "type": "Algebra"}'),
    ("math", "q.json", '{"question": "2 + 2?"}'),
    ("hotpotqa", "q.json", '{"question": "2 + 2?", "_id": "q", "context": []}'),
    ("hotpotqa", "q.jsonl", '{"question": "2 + 2?"}'),
    ("hotpotqa", "q.jsonl", '{"question": "2 + 2?", "paragraphs": [["A", "B"]], "answer": ""}'),
]


@pytest.mark.parametrize(("task", "name", "text"), UNGRADED)
def test_questions_that_are_only_asked_need_no_gold(
    tmp_path: Path, task: str, name: str, text: str
) -> None:
    (tmp_path / name).write_text(text)
    (question,) = load_questions(task, tmp_path / name, graded=False)
    assert (question.text, question.gold, question.choices) == ("2 + 2?", (), ())


def test_what_is_right_is_kept_where_it_is_said(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "q.jsonl", [{"problem": "2 + 2?", "answer": "4"}])
    (question,) = load_questions("math", path, graded=False)
    assert question.gold == ("4",)


def test_questions_to_be_graded_need_gold(tmp_path: Path) -> None:
    task, name, text = UNGRADED[0]
    (tmp_path / name).write_text(text)
    with pytest.raises(QuestionFormatError):
        load_questions(task, tmp_path / name)


def test_a_row_that_is_no_question_is_refused_as_its_task_says_it(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "mine.jsonl", [{"questions": "2 + 2?"}])
    with pytest.raises(QuestionFormatError, match=r"problem: is missing"):
        load_questions("math", path, graded=False)

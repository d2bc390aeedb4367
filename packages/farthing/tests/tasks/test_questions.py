"""Loaders read the public files' own formats, and refuse with file, row and field."""

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest

from farthing import plugins
from farthing.errors import InputError, MissingExtraError, QuestionFormatError, UnknownNameError
from farthing.tasks.base import Question, Task
from farthing.tasks.questions import load_questions

GSM8K = [
    {
        "question": "Natalia sold 48 clips, and then half as many. How many in all?",
        "answer": "48/2 = <<48/2=24>>24\n48+24 = <<48+24=72>>72\n#### 72",
    },
    {"question": "How much is 1,000 + 80?", "answer": "It is\n#### 1,080"},
]
MMLU = """"Find the degree of Q(sqrt(2), sqrt(3)) over Q.",0,4,2,6,B
"A question, with ""quotes""
and two lines",yes,no,both,neither,D
"""


def jsonl(path: Path, rows: list[Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_mmlu_as_it_is_published(tmp_path: Path) -> None:
    for part, subject in (("test", "abstract_algebra"), ("test", "moral"), ("dev", "moral")):
        (tmp_path / "data" / part).mkdir(parents=True, exist_ok=True)
        (tmp_path / "data" / part / f"{subject}_{part}.csv").write_text(MMLU)
    (tmp_path / "data" / "README.txt").write_text("not a question")
    questions = load_questions("mmlu", tmp_path / "data")
    assert len(questions) == 6
    tested = load_questions("mmlu", tmp_path / "data", split="test")
    assert [(q.id, q.group) for q in tested] == [
        ("abstract_algebra-test-1", "abstract_algebra"),
        ("abstract_algebra-test-2", "abstract_algebra"),
        ("moral-test-1", "moral"),
        ("moral-test-2", "moral"),
    ]
    assert tested[0].choices == ("0", "4", "2", "6")
    assert tested[0].gold == ("B",)
    assert tested[1].text == 'A question, with "quotes"\nand two lines'


def test_gsm8k_as_it_is_published(tmp_path: Path) -> None:
    first, second = load_questions("gsm8k", jsonl(tmp_path / "test.jsonl", GSM8K))
    assert (first.id, first.gold, first.split) == ("test-1", ("72",), "test")
    assert second.gold == ("1,080",)
    assert plugins.load("tasks", "gsm8k").grade("1080", second.gold)


def test_gsm8k_folder_gives_both_parts(tmp_path: Path) -> None:
    jsonl(tmp_path / "train.jsonl", GSM8K)
    jsonl(tmp_path / "test.jsonl", GSM8K)
    assert [q.split for q in load_questions("gsm8k", tmp_path)] == ["test"] * 2 + ["train"] * 2
    assert [q.id for q in load_questions("gsm8k", tmp_path, split="train")] == [
        "train-1",
        "train-2",
    ]


def test_your_own_json_lines_for_any_task(tmp_path: Path) -> None:
    row = {
        "id": "q7",
        "question": "Capital of Portugal?",
        "gold": ["Lisbon", "Lisboa"],
        "group": "capitals",
        "split": "train",
        "choices": ["Oslo", "Lisbon"],
        "paragraphs": [["Lisbon", "It is the capital."]],
    }
    expected = Question(
        id="q7",
        text="Capital of Portugal?",
        gold=("Lisbon", "Lisboa"),
        group="capitals",
        split="train",
        choices=("Oslo", "Lisbon"),
        paragraphs=(("Lisbon", "It is the capital."),),
    )
    path = jsonl(tmp_path / "mine.jsonl", [row])
    assert load_questions("text", path) == load_questions("json", path) == [expected]
    packed = tmp_path / "packed.jsonl.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert load_questions("text", packed) == [expected]


def test_a_task_without_a_loader_reads_your_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plugins, "names", lambda group: [])
    path = jsonl(tmp_path / "mine.jsonl", [{"question": "2 + 2?", "answer": "4"}])
    assert [q.gold for q in load_questions("gsm8k", path)] == [("4",)]


def test_the_limit_takes_the_first_or_draws_by_seed(tmp_path: Path) -> None:
    rows = [{"id": str(i), "question": f"{i}?", "gold": str(i)} for i in range(100)]
    path = jsonl(tmp_path / "mine.jsonl", rows)
    assert [q.id for q in load_questions("text", path, limit=3)] == ["0", "1", "2"]
    drawn = [q.id for q in load_questions("text", path, limit=10, seed=1)]
    assert drawn == [q.id for q in load_questions("text", path, limit=10, seed=1)]
    assert drawn != [q.id for q in load_questions("text", path, limit=10, seed=2)]
    assert len(set(drawn)) == 10
    assert drawn == sorted(drawn, key=int) != [str(i) for i in range(10)]
    assert len(load_questions("text", path, limit=1_000, seed=1)) == 100


@pytest.mark.parametrize(
    ("task", "name", "content", "message"),
    [
        ("mmlu", "a_test.csv", "q,1,2,3,4,A\nq,1,2,3,4,E\n", "row 2, column 6: is 'E'"),
        ("mmlu", "a_test.csv", "q,1,2,3,4,AB\n", "row 1, column 6: is 'AB'"),
        ("mmlu", "a_test.csv", "alone\n", "row 1, choices: are 0"),
        ("mmlu", "a_test.csv", '"open\n', "row: is broken CSV"),
        (
            "gsm8k",
            "t.jsonl",
            '\n{"question": "?", "answer": "72"}',
            "line 2, answer: has no number",
        ),
        ("gsm8k", "t.jsonl", '{"question": "?", "answer": 72}', "line 1, answer: is 72"),
        ("text", "t.jsonl", '{"question": "?", "golds": "9"}', "line 1, golds: is no field"),
        ("text", "t.jsonl", '{"question": "?", "gold": 9}', "line 1, gold: is 9"),
        ("text", "t.jsonl", '{"question": "?", "gold": [], "split": "dev"}', "split: is 'dev'"),
        ("text", "t.jsonl", '{"question": "?", "paragraphs": ["x"]}', "paragraphs: hold 'x'"),
        ("text", "t.jsonl", '{"id":"a","question":"?"}\n' * 2, "line 2, id: 'a' is that of"),
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


def test_nothing_to_load_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        load_questions("text", tmp_path / "gone.jsonl")
    with pytest.raises(InputError, match="holds no file of questions"):
        load_questions("text", tmp_path)
    jsonl(tmp_path / "train.jsonl", GSM8K)
    with pytest.raises(InputError, match="no question of the split test"):
        load_questions("gsm8k", tmp_path, split="test")
    with pytest.raises(InputError, match="the split is 'dev'"):
        load_questions("gsm8k", tmp_path, split="dev")
    with pytest.raises(InputError, match="give at least 1"):
        load_questions("gsm8k", tmp_path, limit=0)
    with pytest.raises(UnknownNameError, match="unknown task 'gsm8'; did you mean 'gsm8k'"):
        load_questions("gsm8", tmp_path)


@pytest.mark.parametrize("name", plugins.names("questions"))
def test_every_loader_belongs_to_a_task(name: str) -> None:
    assert isinstance(plugins.load("tasks", name), Task)


@pytest.mark.extras("datasets")
def test_a_data_set_loads_through_the_datasets_library(tmp_path: Path) -> None:
    jsonl(tmp_path / "gsm" / "train.jsonl", GSM8K)
    jsonl(tmp_path / "gsm" / "test.jsonl", GSM8K[:1])
    questions = load_questions("gsm8k", f"dataset:{tmp_path / 'gsm'}")
    assert sorted((q.id, q.split, q.gold[0]) for q in questions) == [
        ("test-1", "test", "72"),
        ("train-1", "train", "72"),
        ("train-2", "train", "1,080"),
    ]
    with pytest.raises(InputError, match="cannot be loaded"):
        load_questions("gsm8k", f"dataset:{tmp_path / 'gone'}")


def test_a_data_set_without_the_library_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "datasets", None)
    with pytest.raises(MissingExtraError, match=re.escape('"./packages/farthing[datasets]"')):
        load_questions("gsm8k", "dataset:openai/gsm8k:main")


def test_rows_of_the_hub_have_their_own_shapes(monkeypatch: pytest.MonkeyPatch) -> None:
    mmlu = {"question": "2 + 2?", "subject": "algebra", "choices": ["3", "4"], "answer": 1}

    class Library:
        @staticmethod
        def load_dataset(name: str, config: str | None) -> dict[str, list[dict[str, Any]]]:
            return {"validation": [mmlu]}

    monkeypatch.setitem(__import__("sys").modules, "datasets", Library)
    (question,) = load_questions("mmlu", "dataset:any:mmlu")
    assert (question.id, question.gold) == ("algebra-calibrate-1", ("B",))


UNGRADED = [
    ("gsm8k", "q.jsonl", '{"question": "2 + 2?"}'),
    ("gsm8k", "q.jsonl", '{"question": "2 + 2?", "answer": null}'),
    ("mmlu", "q.jsonl", '{"question": "2 + 2?", "choices": ["3", "4"], "subject": "sums"}'),
    ("mmlu", "q.jsonl", '{"question": "2 + 2?", "choices": ["3", "4"], "answer": -1}'),
    ("mmlu", "q.jsonl", '{"id": "q", "question": "2 + 2?", "choices": ["3", "4"]}'),
    ("mmlu", "q.csv", "2 + 2?,3,4\n"),
    ("text", "q.jsonl", '{"question": "2 + 2?", "gold": []}'),
]


@pytest.mark.parametrize(("task", "name", "text"), UNGRADED)
def test_questions_that_are_only_asked_need_no_gold(
    tmp_path: Path, task: str, name: str, text: str
) -> None:
    (tmp_path / name).write_text(text)
    (question,) = load_questions(task, tmp_path / name, graded=False)
    assert (question.text, question.gold) == ("2 + 2?", ())
    assert question.choices in {(), ("3", "4")}


def test_every_task_reads_questions_without_gold(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "mine.jsonl", [{"id": "a", "question": "2 + 2?"}])
    for task in plugins.names("tasks"):
        (question,) = load_questions(task, path, graded=False)
        assert (question.text, question.gold) == ("2 + 2?", ()), task


@pytest.mark.parametrize(
    ("task", "name", "text", "gold"),
    [
        ("gsm8k", "q.jsonl", '{"question": "2 + 2?", "answer": "#### 4"}', "4"),
        ("gsm8k", "q.jsonl", '{"question": "2 + 2?", "answer": "4"}', "4"),
        ("mmlu", "q.csv", "2 + 2?,3,4,B\n", "B"),
        ("mmlu", "q.jsonl", '{"question": "2 + 2?", "choices": ["3", "4"], "answer": 1}', "B"),
    ],
)
def test_what_is_right_is_kept_where_it_is_said(
    tmp_path: Path, task: str, name: str, text: str, gold: str
) -> None:
    (tmp_path / name).write_text(text)
    (question,) = load_questions(task, tmp_path / name, graded=False)
    assert question.gold == (gold,)


@pytest.mark.parametrize(("task", "name", "text"), [UNGRADED[0], *UNGRADED[2:6]])
def test_questions_to_be_graded_need_gold(tmp_path: Path, task: str, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(QuestionFormatError):
        load_questions(task, tmp_path / name)

"""`farthing traces import` of other tools' files: all of it or nothing, and every gap named."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import farthing as ft

Farthing = Callable[..., Any]
Refused = Callable[..., str]
SECRET = "sk-proj-abcdefghijklmnop"
QUESTIONS = {"2 + 2?": "4", "3 + 3?": "6"}
ANSWERS = {"gpt-4o-mini": ("4", "7"), "house-model": ("4", "6")}


def spend_log(**changes: Any) -> str:
    """Return LiteLLM's log of two questions that two models were asked."""
    rows = [
        {
            "request_id": f"{model}-{i}",
            "call_type": "acompletion",
            "api_key": SECRET,
            "spend": 0.0,
            "model": model,
            "prompt_tokens": 1_000,
            "completion_tokens": 100,
            "messages": [{"role": "user", "content": question}],
            "response": {"choices": [{"message": {"content": ANSWERS[model][i]}}]},
            **changes,
        }
        for model in ANSWERS
        for i, question in enumerate(QUESTIONS)
    ]
    return "".join(json.dumps(row) + "\n" for row in rows)


def exported(farthing: Farthing, store: str) -> list[dict[str, Any]]:
    assert farthing("traces", "export", "--store", store, "--out", "out.jsonl").code == 0
    return [json.loads(line) for line in Path("out.jsonl").read_text().splitlines()]


def test_a_log_is_imported_and_what_it_lacks_is_said(farthing: Farthing) -> None:
    Path("spend.jsonl").write_text(spend_log())
    done = farthing("traces", "import", "spend.jsonl", "--store", "a.db")
    assert (done.code, done.out) == (0, "")
    *notes, last = done.err.splitlines()
    assert last == "imported 2 questions into a.db"
    assert all(note.startswith("note: ") for note in notes)
    for says in (
        "no question is graded; --gold FILE",
        "costs of gpt-4o-mini are worked out from its tokens at its list price, $0.15 in",
        "costs are not known of house-model (2 calls); --price MODEL=IN,OUT",
    ):
        assert sum(says in note for note in notes) == 1, says
    assert SECRET not in done.err
    assert SECRET.encode() not in b"".join(file.read_bytes() for file in Path().glob("a.db*"))
    assert [trace["gold"] for trace in exported(farthing, "a.db")] == [[], []]


def test_options_supply_what_a_log_lacks(farthing: Farthing) -> None:
    Path("spend.jsonl").write_text(spend_log())
    Path("gold.csv").write_text("question;gold\n2 + 2?;4\n3 + 3?;6\n")
    supplied = ("--gold", "gold.csv", "--task", "gsm8k", "--price", "house-model=1,10")
    done = farthing("traces", "import", "spend.jsonl", "--store", "a.db", *supplied)
    assert done.code == 0
    assert "graded" not in done.err
    assert "not known" not in done.err
    traces = exported(farthing, "a.db")
    assert [(trace["task"], trace["gold"]) for trace in traces] == [
        ("gsm8k", ["4"]),
        ("gsm8k", ["6"]),
    ]
    assert [call["cost_usd"] for call in traces[0]["calls"]] == [0.00021, 0.002]
    assert "house-model" in farthing("traces", "info", "a.db").out


def test_files_of_several_models_are_one_import(farthing: Farthing) -> None:
    for model, answers in ANSWERS.items():
        rows = [f"{q},{model},{a},0.001" for q, a in zip(QUESTIONS, answers, strict=True)]
        Path(f"{model}.csv").write_text("\n".join(["prompt,llm,said,usd", *rows]))
    files = [f"{model}.csv" for model in ANSWERS]
    asked = ("traces", "import", *files, "--store", "a.db", "--from", "table")
    assert farthing(*asked, "--column", "answer=said").code == 0
    assert [len(trace["calls"]) for trace in exported(farthing, "a.db")] == [2, 2]
    again = farthing(*asked, "--column", "answer=said")
    assert (again.code, "stored already" in again.err) == (2, True)


def test_a_mistake_in_the_last_line_imports_nothing(refused: Refused) -> None:
    last = json.loads(spend_log().splitlines()[0]) | {"spend": -1, "api_key": SECRET}
    for text, field in (('{"request_id": "x"', "line"), (json.dumps(last), "spend")):
        Path("spend.jsonl").write_text(f"{spend_log()}{text}\n")
        said = refused("traces", "import", "spend.jsonl", "--store", "a.db")
        assert f"spend.jsonl, line 5, {field}: is " in said
        assert SECRET not in said
        assert not list(Path().glob("a.db*"))


def test_what_is_imported_must_fit_the_store(farthing: Farthing, runs: Path) -> None:
    assert farthing("traces", "import", runs, "--store", "a.db").code == 0
    Path("spend.jsonl").write_text(spend_log())
    done = farthing("traces", "import", "spend.jsonl", "--store", "a.db")
    assert done.code == 2
    assert "spend.jsonl, line 1, calls: have the shape 'pool', but a.db has 'paper'" in done.err
    assert "questions 200" in farthing("traces", "info", "a.db").out


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--from", "litelm"], "unknown format 'litelm'; did you mean 'litellm'?"),
        (["--price", "gpt-4o"], "'gpt-4o' is no MODEL=IN,OUT in USD per million tokens"),
        (["--price", "gpt-4o=1"], "'gpt-4o=1' is no MODEL=IN,OUT"),
        (["--price", "gpt-4o=-1,2"], "'gpt-4o=-1,2' is no MODEL=IN,OUT"),
        (["--column", "answer"], "'answer' is no NAME=VALUE"),
        (["--threshold", "nan"], "--threshold is nan; give a number"),
        (["--task", "sums"], "unknown task 'sums'"),
        (["--gold", "absent.csv"], "absent.csv: cannot be read"),
        (["--gold", "spend.jsonl"], "spend.jsonl, line 1, id: is missing"),
        (["--from", "inspect"], "eval.model: is missing; this is no eval log"),
    ],
)
def test_a_wrong_option_is_said(refused: Refused, options: list[str], says: str) -> None:
    Path("spend.jsonl").write_text(spend_log())
    assert says in refused("traces", "import", "spend.jsonl", "--store", "a.db", *options)


def test_traces_say_all_of_it_themselves(refused: Refused, runs: Path) -> None:
    said = refused("traces", "import", runs, "--store", "a.db", "--task", "gsm8k")
    assert "is in the form of traces already" in said
    said = refused("traces", "import", runs, runs, "--store", "a.db")
    assert "files of traces are imported one by one" in said


def table(n: int, *, ids: bool = True) -> str:
    """Return a table of n tickets, each put to two models, with or without an id that is known."""
    lines = [f"{'id' if ids else 'ticket'},question,model,answer,cost"]
    for i in range(n):
        lines += [f"T{i},How much is {i}?,{model},{i % 3},0.001" for model in ("small", "large")]
    return "\n".join(lines) + "\n"


def test_a_second_import_under_other_ids_is_refused_as_a_whole(
    farthing: Farthing, refused: Refused
) -> None:
    Path("calls.csv").write_text(table(30, ids=False))
    asked = ("traces", "import", "calls.csv", "--store", "y.db")
    assert farthing(*asked, "--column", "id=ticket").code == 0
    said = refused(*asked)
    assert "30 of the 30 questions of calls.csv are stored already under other ids" in said
    assert "is 'T0' there); nothing was imported" in said
    assert len(exported(farthing, "y.db")) == 30


def test_traces_of_our_own_form_are_not_imported_twice_either(
    farthing: Farthing, refused: Refused
) -> None:
    Path("calls.csv").write_text(table(30))
    assert farthing("traces", "import", "calls.csv", "--store", "y.db").code == 0
    renamed = [trace | {"id": f"my-{trace['id']}"} for trace in exported(farthing, "y.db")]
    Path("again.jsonl").write_text("".join(json.dumps(trace) + "\n" for trace in renamed))
    said = refused("traces", "import", "again.jsonl", "--store", "y.db")
    assert "('my-T0' is 'T0' there)" in said


def test_a_file_with_a_question_under_two_ids_is_imported_with_a_note(farthing: Farthing) -> None:
    Path("calls.csv").write_text(table(30) + table(30).partition("\n")[2].replace("T", "U"))
    done = farthing("traces", "import", "calls.csv", "--store", "y.db")
    assert done.code == 0
    assert "note: 30 questions stand here twice, with the same text and answers" in done.err
    done = farthing("traces", "info", "y.db", "--json")
    assert any("30 questions stand here twice" in note for note in json.loads(done.out)["notes"])
    assert "note: 30 questions stand here twice" in done.err


def test_questions_that_stand_twice_are_counted_alike_everywhere(farthing: Farthing) -> None:
    """Of 30 questions that come again, the models swap what they say of 10 the second time."""
    lines = ["ticket,question,model,answer,cost"]
    for name, again in (("T", "ab"), ("U", "ba")):
        for i in range(30):
            answers = again if i < 10 else "ab"
            for model, answer in zip(("small", "large"), answers, strict=True):
                lines.append(f"{name}{i},How much is {i}?,{model},{answer},0.001")
    Path("calls.csv").write_text("\n".join(lines))
    asked = ("traces", "import", "calls.csv", "--store", "y.db", "--column", "id=ticket")
    said = "note: 20 questions stand here twice, with the same text and answers under two ids"
    assert said in farthing(*asked).err
    assert farthing("traces", "export", "--store", "y.db", "--out", "y.jsonl").code == 0
    for file in ("y.db", "y.jsonl"):
        assert said in farthing("traces", "info", file).err
    with pytest.warns(UserWarning, match="20 questions stand here twice"):
        ft.from_records([json.loads(line) for line in Path("y.jsonl").read_text().splitlines()])


def test_what_stands_twice_says_how_a_proof_per_request_counts(farthing: Farthing) -> None:
    Path("calls.csv").write_text(table(30) + table(30).partition("\n")[2].replace("T", "U"))
    proved = ("--promise", "agreement", "--epsilon", 0.5, "--delta", 0.2, "--reference", "large")
    said = farthing("recommend", "--traces", "calls.csv", *proved, "--per", "request").err
    assert "counts each of them once, and a proof per request each time;" in said


def test_a_table_that_lacks_a_column_says_which(farthing: Farthing, refused: Refused) -> None:
    Path("calls.csv").write_text("ticket,question,answer\nT0,2 + 2?,4\n")
    said = refused("traces", "import", "calls.csv", "--store", "y.db")
    assert "calls.csv: no column is named model; map one with --column model=COLUMN" in said
    assert "(there are answer, question, ticket)" in said
    asked = ("traces", "import", "calls.csv", "--store", "y.db")
    Path("calls.csv").write_text("ticket,question,bot,answer\nT0,2 + 2?,small,4\n")
    assert farthing(*asked, "--column", "model=bot").code == 0
    Path("named.csv").write_text("ticket,bot\nT0,small\n")
    assert "or the columns of a table" in refused("traces", "import", "named.csv", *asked[3:])
    Path("named.jsonl").write_text('{"asked": "2 + 2?", "bot": "small", "said": "4"}\n')
    columns = [
        part
        for name in ("question=asked", "model=bot", "answer=said")
        for part in ("--column", name)
    ]
    assert farthing("traces", "import", "named.jsonl", "--store", "z.db", *columns).code == 0


def test_another_command_says_where_columns_are_mapped(refused: Refused) -> None:
    Path("calls.csv").write_text("ticket,question,answer\nT0,2 + 2?,4\n")
    said = refused("recommend", "--traces", "calls.csv")
    assert "--column model=COLUMN" in said
    assert "farthing traces import calls.csv --store traces.db" in said


def test_a_column_that_is_not_read_names_what_it_could_be(farthing: Farthing) -> None:
    Path("calls.csv").write_text(table(3, ids=False))
    said = farthing("traces", "import", "calls.csv", "--store", "y.db").err
    assert "columns that are not read: ticket; --column NAME=COLUMN, with NAME one of id, " in said
    assert " cost," not in said.splitlines()[0]


@pytest.mark.slow
def test_every_command_reads_another_tools_file(farthing: Farthing, refused: Refused) -> None:
    """Training, calibrating, evaluating and grading go by a table as it is."""
    Path("calls.csv").write_text(table(90))
    agreement = ("--promise", "agreement", "--epsilon", 0.5, "--delta", 0.2, "--reference", "large")
    trained = ("--policy", "always-small", "--grade", "same as large", "--out", "b")
    for command in (
        ("traces", "info", "calls.csv"),
        ("train", "--traces", "calls.csv", *trained),
        ("calibrate", "--bundle", "b", "--traces", "calls.csv", *agreement),
        ("evaluate", "--bundle", "b", "--traces", "calls.csv"),
        ("recommend", "--traces", "calls.csv", *agreement),
        ("grade", "--bundle", "b", "--traces", "calls.csv", *agreement[2:]),
    ):
        done = farthing(*command)
        assert done.code in {0, 1}, done  # 1: nothing is proved of so few
        if command[0] != "grade":
            assert "note: no question is graded; --gold FILE" in done.err, command
            assert "farthing traces import calls.csv --store traces.db" in done.err
    assert "cannot be read" in refused("recommend", "--traces", "absent.csv")

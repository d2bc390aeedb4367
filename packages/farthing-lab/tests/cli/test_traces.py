"""`farthing traces` and `farthing generate`: what goes in comes out again."""

import gzip
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from farthing import read_traces

Farthing = Callable[..., Any]


def test_a_file_survives_the_way_through_a_store(farthing: Farthing, runs: Path) -> None:
    assert "200 questions" in farthing("traces", "import", runs, "--store", "a.db").err
    assert farthing("traces", "export", "--store", "a.db", "--out", "b.jsonl").code == 0
    assert Path("b.jsonl").read_text() == gzip.decompress(runs.read_bytes()).decode()


@pytest.mark.slow
def test_what_is_only_read_stays_as_it_is(farthing: Farthing, runs: Path) -> None:
    farthing("traces", "import", runs, "--store", "a.db")
    Path("closed").mkdir()
    Path("a.db").rename("closed/a.db")
    Path("closed/b.jsonl.gz").write_bytes(runs.read_bytes())

    def seen() -> list[object]:
        files = sorted(Path("closed").iterdir())
        return [[f, f.stat().st_mtime_ns, f.read_bytes()] for f in files]

    before = seen()
    for name in ("a.db", "b.jsonl.gz"):
        for extra in ([], ["--json"]):
            assert farthing("traces", "info", f"closed/{name}", *extra).code == 0
    assert farthing("traces", "export", "--store", "closed/a.db", "--out", "c.jsonl").code == 0
    assert seen() == before


def test_a_mistake_in_the_last_line_imports_nothing(farthing: Farthing, runs: Path) -> None:
    whole = gzip.decompress(runs.read_bytes()).decode()
    Path("a.jsonl").write_text(whole + whole.splitlines()[0])
    refused = farthing("traces", "import", "a.jsonl", "--store", "a.db")
    assert (refused.code, "line 201" in refused.err) == (2, True)
    assert not list(Path().glob("a.db*")), "a store that nobody asked for"
    assert farthing("traces", "import", runs, "--store", "a.db").code == 0
    assert farthing("traces", "import", "a.jsonl", "--store", "a.db").code == 2
    assert "questions 200" in farthing("traces", "info", "a.db").out


def test_an_import_must_fit_what_the_store_holds(
    farthing: Farthing, runs: Path, pool: Path
) -> None:
    assert farthing("traces", "import", runs, "--store", "a.db").code == 0
    asked = ("generate", "--preset", "mmlu-llama2-7b", "--n", 1, "--horizon", 3)
    assert "wrote 1 generated question of 3 rounds" in farthing(*asked, "--out", "b.jsonl").err
    for file, says in ((pool, "'pool', but a.db has 'paper'"), ("b.jsonl", "round 4 is missing")):
        refused = farthing("traces", "import", file, "--store", "a.db")
        assert refused.code == 2
        assert "line 1, calls" in refused.err
        assert says in refused.err
    assert "questions 200" in farthing("traces", "info", "a.db").out
    assert (
        "imported 1 question into" in farthing("traces", "import", "b.jsonl", "--store", "b.db").err
    )
    longer = farthing("traces", "import", runs, "--store", "b.db")
    assert "have 4 rounds, but b.db has 3" in longer.err


def test_what_cannot_be_imported_is_said(farthing: Farthing, runs: Path) -> None:
    Path("notes.txt").write_text("to do\nimport")
    farthing("traces", "import", runs, "--store", "b.db")
    arrays = pa.table({"id": ["q"]}).replace_schema_metadata({b"farthing.traces": b"{}"})
    pq.write_table(arrays, "own.parquet")
    for file, store, says in (
        (runs, "a.jsonl", "a store is named .db or .sqlite"),
        ("absent.csv", "a.db", "absent.csv: cannot be read"),
        ("own.parquet", "a.db", "export the store again as .jsonl"),
        ("notes.txt", "a.db", "looks like none of the known formats; name its format with --from"),
    ):
        refused = farthing("traces", "import", file, "--store", store)
        assert refused.code == 2
        assert says in refused.err
        assert not Path(store).exists()
    assert "import" in farthing("traces").out
    said = farthing("traces", "info", "own.parquet").err
    assert "holds arrays that an older farthing exported" in said
    said = farthing("traces", "export", "--store", "b.db", "--out", "b.parquet").err
    assert "name it .jsonl or .jsonl.gz" in said


@pytest.mark.slow
def test_every_form_of_the_same_traces_is_described_alike(farthing: Farthing, runs: Path) -> None:
    farthing("traces", "import", runs, "--store", "a.db")
    farthing("traces", "export", "--store", "a.db", "--out", "a.jsonl")
    said = [farthing("traces", "info", name).out for name in (runs, "a.db", "a.jsonl")]
    assert len({text.split("\n", 1)[1] for text in said}) == 1
    assert "questions 200" in said[0]


def test_a_description_fits_80_columns_and_counts_right(farthing: Farthing, pool: Path) -> None:
    said = farthing("traces", "info", pool).out
    assert "played as a cascade of 2 rounds" in " ".join(said.split())
    assert max(map(len, said.splitlines())) <= 80
    small = next(line for line in said.splitlines() if line.startswith("small"))
    assert "0.667" in small  # every third answer of the small model is wrong
    assert "independent" in said


def test_the_schema_accepts_what_is_generated(farthing: Farthing, runs: Path) -> None:
    schema = json.loads(farthing("traces", "schema").out)
    validator = jsonschema.Draft202012Validator(schema)
    for line in gzip.decompress(runs.read_bytes()).decode().splitlines()[:5]:
        trace = json.loads(line)
        assert validator.is_valid(trace)
        assert not validator.is_valid(trace | {"calls": 4})


def test_info_says_which_models_some_questions_lack(farthing: Farthing, pool: Path) -> None:
    assert "lack" not in farthing("traces", "info", pool).out
    lines = [json.loads(line) for line in pool.read_text().splitlines()]
    for line, kept in ((lines[0], "small"), (lines[1], "large"), (lines[2], "small")):
        line["calls"] = [call for call in line["calls"] if call["role"] == kept]
    Path("gaps.jsonl").write_text("\n".join(map(json.dumps, lines)))
    said = farthing("traces", "info", "gaps.jsonl").out
    assert "missing   2 questions lack a call of large, 1 of small; a model cannot" in said
    assert repr(read_traces("gaps.jsonl")).endswith(
        "1 x small, large (1 lack small, 2 lack large)>"
    )
    assert repr(read_traces(pool)).endswith("1 x small, large>")


def test_info_says_nothing_of_what_nobody_graded(farthing: Farthing, pool: Path) -> None:
    lines = [json.loads(line) for line in pool.read_text().splitlines()]
    for line in lines:
        for call in line["calls"]:
            del call["correct"]
    lines[0]["calls"] = [{"round": 1, "role": "small", "error": {"type": "timeout", "message": ""}}]
    Path("log.jsonl").write_text("\n".join(map(json.dumps, lines)))
    said = farthing("traces", "info", "log.jsonl").out
    assert "solvable  –, since nobody graded a question" in said
    (small,) = (line.split() for line in said.splitlines() if line.startswith("small"))
    assert small[2:5] == ["29", "–", "–"]
    found = json.loads(farthing("traces", "info", "log.jsonl", "--json").out)
    assert found["solvable"] is None
    assert [role["accuracy"] for role in found["roles"]] == [None, None]
    assert [role["accuracy_by_round"] for role in found["roles"]] == [[None], [None]]


def test_info_counts_what_is_graded_alone(farthing: Farthing, pool: Path) -> None:
    """Of three questions one is graded, with two answers of which one is right."""
    lines = [json.loads(line) for line in pool.read_text().splitlines()][:3]
    for line in lines[1:]:
        for call in line["calls"]:
            del call["correct"]
    Path("log.jsonl").write_text("\n".join(map(json.dumps, lines)))
    said = farthing("traces", "info", "log.jsonl")
    assert "solvable  100.0% of the 1 graded ones have a right answer" in said.out
    found = json.loads(farthing("traces", "info", "log.jsonl", "--json").out)
    by_role = {role["role"]: role for role in found["roles"]}
    assert (found["solvable"], by_role["small"]["accuracy"]) == (1.0, 0.0)
    assert by_role["large"]["accuracy"] == 1.0


def test_info_counts_no_call_that_was_not_made(farthing: Farthing, pool: Path) -> None:
    """Large is asked 4 of 30 questions and right on 3; a call of it that failed is not right."""
    lines = [json.loads(line) for line in pool.read_text().splitlines()]
    for i, line in enumerate(lines):
        small, large = sorted(line["calls"], key=lambda call: call["role"] == "large")
        line["calls"] = [small, large | {"correct": i > 0}] if i < 4 else [small]
    Path("holes.jsonl").write_text("\n".join(map(json.dumps, lines)))
    said = farthing("traces", "info", "holes.jsonl").out
    (large,) = (line.split() for line in said.splitlines() if line.startswith("large"))
    assert large[2:5] == ["4", "0.750", "0.75"]
    failed = {"round": 1, "role": "large", "error": {"type": "timeout", "message": ""}}
    lines[4]["calls"].append(failed | {"cost_usd": 0})
    Path("holes.jsonl").write_text("\n".join(map(json.dumps, lines)))
    found = json.loads(farthing("traces", "info", "holes.jsonl", "--json").out)
    (role,) = (role for role in found["roles"] if role["role"] == "large")
    assert (role["answers"], role["accuracy"], role["accuracy_by_round"]) == (4, 0.6, [0.6])
    paid = sum(call["cost_usd"] for line in lines for call in line["calls"][1:])
    assert role["call_cost_usd"] == pytest.approx(paid / 5)


@pytest.mark.parametrize(
    ("unknown", "says"),
    [
        (("large", "small"), "cost      unknown\n"),
        (("small",), "of those known; unknown of small\n"),
        ((), "a question\n"),
    ],
)
def test_info_says_no_cost_that_nobody_knows(
    farthing: Farthing, pool: Path, unknown: tuple[str, ...], says: str
) -> None:
    lines = [json.loads(line) for line in pool.read_text().splitlines()]
    for line in lines:
        for call in line["calls"]:
            if call["role"] in unknown:
                del call["cost_usd"]
    Path("log.jsonl").write_text("\n".join(map(json.dumps, lines)))
    said = farthing("traces", "info", "log.jsonl").out
    assert says in said
    assert "$0.0000" not in said
    whole = " ".join(said.split())
    assert ("the cheapest first" in whole) == (not unknown)
    not_known = f"in the order of their costs, which are not known of {', '.join(unknown)};"
    assert (not_known in whole) == bool(unknown)
    found = json.loads(farthing("traces", "info", "log.jsonl", "--json").out)
    assert (found["cost_usd"] is None, found["total_cost_usd"] is None) == (bool(unknown),) * 2
    for role in found["roles"]:
        assert (role["call_cost_usd"] is None) == (role["role"] in unknown)


def test_info_says_that_a_free_model_costs_nothing(farthing: Farthing, pool: Path) -> None:
    lines = [json.loads(line) for line in pool.read_text().splitlines()]
    for line in lines:
        for call in line["calls"]:
            call["cost_usd"] *= call["role"] == "large"
    Path("log.jsonl").write_text("\n".join(map(json.dumps, lines)))
    found = json.loads(farthing("traces", "info", "log.jsonl", "--json").out)
    costs = {role["role"]: role["call_cost_usd"] for role in found["roles"]}
    assert costs["small"] == 0
    assert costs["large"] > 0


def test_generated_traces_depend_on_the_seed_alone(farthing: Farthing) -> None:
    for name, seed in (("a.jsonl", 1), ("b.jsonl", 1), ("c.jsonl", 2)):
        asked = ("--preset", "mmlu-llama2-7b", "--n", 20, "--seed", seed, "--horizon", 3)
        assert farthing("generate", *asked, "--out", name).code == 0
    first, again, other = (Path(name).read_text() for name in ("a.jsonl", "b.jsonl", "c.jsonl"))
    assert first == again != other
    assert max(call["round"] for call in json.loads(first.splitlines()[0])["calls"]) == 3


def test_the_version_is_printed(farthing: Farthing) -> None:
    assert farthing("--version").out.startswith("farthing ")


@pytest.mark.slow
def test_commands_that_need_no_learner_load_neither_torch_nor_sklearn(
    farthing: Farthing, runs: Path
) -> None:
    """Loading torch takes seconds; and what serves must do without it."""
    assert farthing("train", "--traces", runs, "--policy", "stopping", "--out", "b").code == 0
    for line in (
        ["--help"],
        ["traces", "info", str(runs)],
        ["calibrate", "--bundle", "b", "--traces", str(runs)],
        ["evaluate", "--bundle", "b", "--traces", str(runs)],
    ):
        program = (
            "import sys\nfrom farthing.cli import main\n"
            f"sys.argv = ['farthing', *{line}]\n"
            "try:\n    main.run()\nexcept SystemExit as stop:\n    code = stop.code\n"
            "print(code, *({'torch', 'sklearn', 'matplotlib'} & set(sys.modules)))"
        )
        done = subprocess.run(
            [sys.executable, "-c", program], check=True, capture_output=True, text=True
        )
        assert done.stdout.splitlines()[-1] == "0", line


def test_no_column_is_ignored(tmp_path: Path, refused: Callable[..., str]) -> None:
    wide = tmp_path / "wide.csv"
    wide.write_text("sample_id,prompt,eval_name,small,large\nq,2 + 2?,sums,1.0,1.0\n")
    read_as = ("--from", "routerbench", "--column", "id=prompt")
    said = refused("traces", "import", wide, *read_as, "--store", "a.db")
    assert (
        "wide.csv: routerbench reads no --column id=prompt; leave it out, or read the file" in said
    )


def test_a_file_that_is_no_result_of_a_benchmark_is_refused(refused: Callable[..., str]) -> None:
    Path("spend.jsonl").write_text('{"request_id": "r", "model": "m", "spend": 0.1}\n')
    said = refused("traces", "import", "spend.jsonl", "--store", "a.db", "--from", "llmrouterbench")
    assert "model_name: is missing" in said

"""Wordings of one question and clusters, from a table to what is proved."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import farthing as ft
from farthing.bundle import folder as bundles
from farthing.methods.cards import card
from farthing.recommendation import candidates
from farthing.traces.copies import n_distinct

Farthing = Callable[..., Any]
Refused = Callable[..., str]
WORDINGS: tuple[Callable[[str], str], ...] = (
    lambda text: text,
    lambda text: f" {text} ",
    str.upper,
    lambda text: text.removesuffix("?"),
    lambda text: text.replace(" ", "\u00a0"),
)
NAMES = [first + last for first in ("Bo", "Ka", "Mu", "Te", "Zi", "Ru") for last in (
    "radan", "finol", "gelsk", "hustri", "jompe", "lyvat", "nubec", "pixor", "quade", "twerz",
)]  # fmt: skip


def table(path: Path, *columns: str) -> Path:
    """Write 60 questions in five wordings, other gold in each, that two models answered."""
    rows = []
    for i, name in enumerate(NAMES):
        for which, worded in enumerate(WORDINGS):
            about = {
                "id": f"q{i}-{which}",
                "question": worded(f"Who wrote {name} and the sea?"),
                "gold": "A" if which else "B",
                "ticket": f"t{i // 2}",
                "label": "",
            }
            kept = {"id", "question", *columns}
            for model, cost in (("small", 0.0001), ("large", 0.002)):
                known = {key: value for key, value in about.items() if key in kept}
                rows.append(known | {"model": model, "answer": "A", "cost": cost, "correct": "yes"})
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    return path


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(candidates, "cards", lambda: [card("agreement-cascade"), card("always")])


@pytest.mark.slow
def test_wordings_count_once_in_what_is_recommended(farthing: Farthing, tmp_path: Path) -> None:
    file = table(tmp_path / "calls.csv", "gold")
    asked = ("--promise", "agreement", "--epsilon", "0.3", "--reference", "large")
    done = farthing("recommend", file, *asked, "--out", "b", "--json")
    assert done.code == 0, done.err
    assert "other accepted answers under another id: 240 (first 'q0-0' and 'q0-1')" in done.err
    found = json.loads(done.out)
    assert "300 requests, 60 distinct questions" in " ".join(found["notes"])
    certificate = bundles.load(tmp_path / "b").certificate
    assert certificate is not None
    assert certificate.promises
    assert (certificate.n, certificate.requests) == (42, 210)


@pytest.mark.parametrize("form", ["db", "jsonl"])
def test_a_cluster_stays_wherever_its_questions_are_kept(
    farthing: Farthing, tmp_path: Path, form: str
) -> None:
    file = table(tmp_path / "calls.csv", "ticket")
    done = farthing("traces", "import", file, "--store", "a.db", "--cluster", "ticket")
    assert done.code == 0, done.err
    if form != "db":
        assert farthing("traces", "export", "--store", "a.db", "--out", f"a.{form}").code == 0
    info = json.loads(farthing("traces", "info", f"a.{form}", "--json").out)
    assert info["questions"] == 300
    said = farthing("traces", "info", f"a.{form}").out
    assert "300 requests, 30 distinct questions" in said


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_python_takes_a_cluster_as_a_column(tmp_path: Path) -> None:
    file = table(tmp_path / "calls.csv", "ticket")
    plain, joined = ft.read_traces(file), ft.read_traces(file, columns={"cluster": "ticket"})
    assert n_distinct(plain.arrays.content) == 60
    assert n_distinct(joined.arrays.content) == 30
    assert joined[0].cluster == "t0"
    again = ft.from_records(joined.to_frame())
    assert [one.cluster for one in again] == [one.cluster for one in joined]


def test_without_ids_a_question_of_two_clusters_is_two_that_ask_the_same() -> None:
    rows = [
        {"question": text, "talk": talk, "model": model, "answer": "A", "cost": 0.1}
        for talk, text in (("x", "Hello"), ("x", "And now?"), ("y", "Hello"), ("z", "Bye"))
        for model in ("small", "large")
    ]
    with pytest.warns(UserWarning, match="1 question stands here twice"):
        found = ft.from_records(rows, columns={"cluster": "talk"})
    assert len(found) == 4
    assert n_distinct(found.arrays.content) == 2


def test_a_cluster_that_no_column_names_is_refused(refused: Refused, tmp_path: Path) -> None:
    file = table(tmp_path / "calls.csv")
    said = refused("traces", "import", file, "--store", "a.db", "--cluster", "talk")
    assert "has no column talk; there are answer, correct" in said
    rows = [{"id": "q", "model": "m", "answer": "A", "cost": 1, "at": at} for at in ("x", "y")]
    with (tmp_path / "two.csv").open("w", newline="") as two:
        writer = csv.DictWriter(two, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    said = refused("traces", "import", two.name, "--store", "a.db", "--cluster", "at")
    assert "'q' has another cluster in line 2; one id is one question" in said


@pytest.mark.slow
def test_what_is_worded_alike_is_said_beside_a_proof(farthing: Farthing, tmp_path: Path) -> None:
    calls = [
        {"round": 1, "role": r, "answer": "A", "cost_usd": c} for r, c in (("s", 1e-4), ("l", 2e-3))
    ]
    with (tmp_path / "t.jsonl").open("w") as file:
        for i, name in enumerate(NAMES):
            for which, text in enumerate(
                (f"Who wrote {name}?", f"Please tell me who wrote {name}")
            ):
                line = {"id": f"q{i}-{which}", "question": text, "gold": ["A"], "calls": calls}
                print(json.dumps(line), file=file)
    asked = ("--promise", "agreement", "--epsilon", "0.3", "--reference", "l")
    done = farthing("recommend", "t.jsonl", *asked, "--out", "b", "--json")
    note = "yet counted as independent of it: 60 ('q0-0' and 'q0-1', 'q1-0' and 'q1-1', "
    assert note in " ".join(json.loads(done.out)["notes"])
    train = ("train", "t.jsonl", "--policy", "agreement-cascade", "--out", "c")
    assert farthing(*train).code == 0
    calibrated = farthing("calibrate", "t.jsonl", "--bundle", "c", *asked)
    assert note in calibrated.err
    assert "--cluster COLUMN" in calibrated.err
    assert note in farthing("traces", "info", "t.jsonl").err
    seen = json.loads(farthing("evaluate", "t.jsonl", "--bundle", "c", "--json").out)
    assert "yet counted as independent of it: " in " ".join(seen["notes"])
    found = ft.recommend(ft.read_traces("t.jsonl"), ft.Agreement("l", "0.3", "0.1"))
    assert 'columns={"cluster": "COLUMN"}' in " ".join(found.found.notes)

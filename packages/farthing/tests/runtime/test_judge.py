"""The judge: a strict yes or no, asked once, within its budget, and found again in the journal."""

from pathlib import Path
from typing import Any

import pytest

from farthing.errors import ConfigError, InputError
from farthing.models.config import models_from
from farthing.runtime.agents.judge import Judge, Judgement
from farthing.tasks.base import Question
from farthing.traces.store import Store

PRICED = {"prices": {"j": {"input_per_million": 1.0, "output_per_million": 1.0}}}
WANTED = [Judgement(Question(f"q{i}", f"{i}?"), str(i), None if i % 2 else "7") for i in range(6)]


def judge(tmp_path: Path, reply: str, cap_nano: int = 10**9, **more: Any) -> Judge:
    tables = {"models": {"j": {"provider": "scripted", "model": "j", "otherwise": reply}}} | more
    return Judge(models_from(tables, "t"), "j", tmp_path / "j.db", cap_nano)


@pytest.mark.parametrize(
    ("reply", "says"), [("Yes.", True), ("no", False), ("Perhaps", None), ("Yes, but no", None)]
)
def test_what_is_yes_or_no_and_nothing_else_is_kept(
    tmp_path: Path, reply: str, says: bool | None
) -> None:
    kept: list[Judgement] = []
    assert judge(tmp_path, reply).ask(WANTED, kept.append) is None
    if says is None:
        assert kept == []
        return
    assert sorted(one.question.id for one in kept) == [f"q{i}" for i in range(6)]
    assert {one.says for one in kept} == {says}


def test_a_judge_that_was_paid_is_not_paid_again(tmp_path: Path) -> None:
    kept: list[Judgement] = []
    judge(tmp_path, "yes", 10**7, **PRICED).ask(WANTED, kept.append)
    again: list[Judgement] = []
    # The cap would not pay for a single call.
    assert judge(tmp_path, "yes", 1, **PRICED).ask(WANTED, again.append) is None
    assert len(again) == len(kept) == 6
    assert {one.says for one in again} == {True}


def test_where_the_money_ends_it_says_so_and_what_was_said_is_kept(tmp_path: Path) -> None:
    kept: list[Judgement] = []
    left = judge(tmp_path, "yes", 800_000, **PRICED).ask(WANTED, kept.append)
    assert left is not None
    assert "$0.0008" in left
    assert 0 < len(kept) < 6


def test_a_judge_that_is_no_model_of_the_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "m.toml"
    file.write_text('[models.j]\nprovider = "scripted"\n')
    with pytest.raises(ConfigError, match=r"models.k: is missing; there are j"):
        Judge.read(file, "k", tmp_path / "j.db", 1)
    assert Judge.read(file, "j", tmp_path / "j.db", 1).name == "j"


def many(n: int, at: int = 0) -> list[Judgement]:
    return [Judgement(Question(f"q{i}", f"{i}?"), str(i), "7") for i in range(at, at + n)]


def paid(tmp_path: Path) -> int:
    with Store.read(tmp_path / "j.db") as store:
        return int(store.connection.execute("SELECT count(*) FROM call_log").fetchone()[0])


def test_a_judge_that_never_says_yes_or_no_is_asked_no_more(tmp_path: Path) -> None:
    thinks = judge(tmp_path, "Well, let me think", 10**9, **PRICED)
    with pytest.raises(InputError, match=r"none of the first 20 replies of the judge j is yes or"):
        thinks.ask(many(200), list[Judgement]().append)
    before = paid(tmp_path)
    assert 20 <= before < 20 + 16
    with pytest.raises(InputError, match=r"'Well, let me think'.*MODEL@low"):
        thinks.ask(many(20), list[Judgement]().append)
    assert paid(tmp_path) == before, "what it said is known"


def test_a_judge_that_spoke_may_be_silent_later(tmp_path: Path) -> None:
    kept: list[Judgement] = []
    judge(tmp_path, "yes", 10**9, **PRICED).ask(many(1), kept.append)
    assert judge(tmp_path, "Hm.", 10**9, **PRICED).ask(many(30, at=1), kept.append) is None
    assert [one.question.id for one in kept] == ["q0"]

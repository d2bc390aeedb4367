"""`farthing collect` of dialogues: what a guide may be asked again, and what cannot be read."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from chat_server import Endpoint
from two_model_job import MODELS

Farthing = Callable[..., Any]
ARGUMENTS = ("collect", "job.toml", "--store", "a.db", "--max-cost")
DIALOGUE = (
    """
task = "text"
questions = "questions.jsonl"
rounds = 2
agents.base.model = "small"
agents.guide.model = "large"
at_once = 1
"""
    + MODELS
)


def write(folder: Path, job: str, n: int = 5) -> None:
    lines = [json.dumps({"id": f"q{k}", "question": f"Number {k}?", "gold": "4"}) for k in range(n)]
    (folder / "questions.jsonl").write_text("\n".join(lines))
    (folder / "job.toml").write_text(job)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ("", "5 more times for each verdict where its endpoint returns no log-probabilities: at"),
        ("samples = 1", "1 more time for each verdict where its endpoint returns no"),
        ("top_logprobs = 0", "5 more times for each verdict since top_logprobs = 0 asks for no"),
    ],
)
def test_a_dry_run_says_that_a_guide_may_be_asked_again(
    farthing: Farthing, endpoint: Endpoint, tmp_path: Path, settings: str, says: str
) -> None:
    job = DIALOGUE.replace("URL", endpoint.url)
    told = f"agents.guide.{settings}\n" if settings else ""
    write(tmp_path, job.replace("at_once", f"{told}at_once"), n=3)
    priced = farthing(*ARGUMENTS, "5", "--dry-run")
    assert (priced.code, endpoint.requests) == (0, [])
    assert f"note: guide's model large is asked {says}" in priced.err
    samples = 1 if "samples" in settings else 5
    assert f"at most {6 * samples} of these calls; samples = 0 under [agents.guide]" in priced.err
    assert f"at most {6 * (2 + samples)} calls to models" in priced.out


def test_a_dry_run_says_nothing_of_a_guide_that_is_asked_once(
    farthing: Farthing, tmp_path: Path
) -> None:
    job = DIALOGUE.replace("URL", "http://localhost:1/v1")
    write(tmp_path, job.replace("at_once", "agents.guide.samples = 0\nat_once"))
    priced = farthing(*ARGUMENTS, "5", "--dry-run")
    assert (priced.code, priced.err) == (0, "")
    assert "at most 20 calls to models" in priced.out


SCRIPTED = """
task = "text"
questions = "questions.jsonl"
rounds = 1
at_once = 1
agents.base.model = "small"
agents.guide.model = "large"
models.small = { provider = "scripted", otherwise = "BASE" }
models.large = { provider = "scripted", otherwise = "GUIDE" }
"""
CANNOT_TELL = "Well, " + "hm " * 50 + "I cannot tell"


def unread(farthing: Farthing, folder: Path, n: int, base: str, guide: str) -> list[str]:
    """Collect n questions with models that always say the same; return what is warned of."""
    write(folder, SCRIPTED.replace("BASE", base).replace("GUIDE", guide), n)
    done = farthing(*ARGUMENTS, "5")
    assert done.code == 0
    assert done.out.startswith(f"{n} questions recorded")
    return list(done.err.splitlines())


def test_ten_answers_that_cannot_be_read_are_warned_of_once(
    farthing: Farthing, tmp_path: Path
) -> None:
    (line,) = unread(farthing, tmp_path, 12, CANNOT_TELL, "No Lisbon")
    first = f"'{CANNOT_TELL[:50]} ... {CANNOT_TELL[-50:]}'"
    said = f"10 of base's 10 replies so far cannot be read, the first of them {first}: they may be"
    assert line.startswith(f"warning: {said} cut off at max_tokens, or think aloud")


def test_a_guide_that_gives_no_verdict_and_a_model_that_says_nothing_are_warned_of(
    farthing: Farthing, tmp_path: Path
) -> None:
    base, guide = unread(farthing, tmp_path, 11, "", "Let me think\\nYes")
    assert "10 of base's 10 replies so far cannot be read, the first of them empty" in base
    assert "10 of guide's 10 replies so far cannot be read, the first of them 'Let me" in guide


def test_nine_are_not_warned_of_nor_is_a_verdict_on_no_answer(
    farthing: Farthing, tmp_path: Path
) -> None:
    assert unread(farthing, tmp_path, 9, "I cannot tell", "No Lisbon") == []

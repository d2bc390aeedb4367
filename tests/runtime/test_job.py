"""Jobs from files: which agents they make, tools included, and what an estimate bounds."""

import json
import re
from pathlib import Path

import pytest
from chat_server import Endpoint

from farthing.errors import ConfigError
from farthing.runtime.job import Job, read_job
from farthing.runtime.local_engine import collect_locally, price
from farthing.traces.store import Store

MODELS = """
[models.small]
provider = "openai-compatible"
model = "small"
url = "URL"
[models.large]
provider = "openai-compatible"
model = "large"
url = "URL"
extra = { reasoning_effort = "low" }
[prices.small]
input_per_million = 1
output_per_million = 2
[prices.large]
input_per_million = 5
output_per_million = 10
"""
HEAD = """
task = "hotpotqa"
questions = "questions.jsonl"
rounds = 2
[agents.guide]
model = "large"
[agents.base]
model = "small"
search = "own"
[agents.policy-gpt]
model = "large"
coverage = 0.8
[agents.exit-base]
model = "small"
"""


def write(folder: Path, url: str, head: str = HEAD, models: str = MODELS) -> Job:
    question = {
        "id": "q0",
        "question": "Capital of Portugal?",
        "gold": "Lisbon",
        "paragraphs": [["Portugal", "Its capital is Lisbon."], ["Norway", "Oslo."]],
    }
    (folder / "questions.jsonl").write_text(json.dumps(question))
    (folder / "job.toml").write_text(head + models.replace("URL", url))
    return read_job(folder / "job.toml")


def play(messages: list[dict[str, str]]) -> str:
    """Search once, then answer; judge, decide and exit."""
    last = messages[-1]["content"]
    if "Its capital is Lisbon." in last:
        return "Action: finish[Lisbon]"
    if re.search(r"\bsearch\[", messages[0]["content"]):
        return "Action: search[capital of Portugal]"
    return "Yes"


def test_a_dialogue_with_tools_and_deciders_is_recorded_and_rebuilt(
    endpoint: Endpoint, tmp_path: Path
) -> None:
    endpoint.answer = play
    job, store = write(tmp_path, endpoint.url), tmp_path / "a.db"
    priced, _ = price(job, store, 10**12)
    report = collect_locally(job, store, 10**12)
    assert report.progress.left == 0
    assert report.balance.settled_nano <= priced.largest_nano
    with Store.open(store) as opened:
        (trace,) = opened.traces()
        tools = opened.connection.execute(
            "SELECT round, role, state, count(*) FROM call_log"
            " WHERE asked = 'search' GROUP BY 1, 2, 3"
        ).fetchall()
        opened.connection.execute("DELETE FROM traces")
    roles = ["base", "guide", "policy-gpt", "exit-base"]
    assert [(c.round, c.role) for c in trace.calls] == [(t, r) for t in (1, 2) for r in roles]
    assert [(c.answer, c.tool_calls) for c in trace.calls if c.role == "base"] == [
        ("Lisbon", 1)
    ] * 2
    assert tools == [(1, "base", "completed", 1), (2, "base", "completed", 1)]
    asked = len(endpoint.requests)
    collect_locally(job, store, 10**12)
    assert len(endpoint.requests) == asked
    with Store.open(store) as opened:
        assert list(opened.traces()) == [trace]


def test_other_settings_of_a_model_are_other_calls_and_another_address_is_not(
    endpoint: Endpoint, tmp_path: Path
) -> None:
    endpoint.answer = play
    head = 'task = "text"\nquestions = "questions.jsonl"\npool = ["small", "large"]\n'
    store = tmp_path / "a.db"

    def collect(models: str, url: str = endpoint.url) -> int:
        before = len(endpoint.requests)
        collect_locally(write(tmp_path, url, head, models), store, 10**12)
        with Store.open(store) as opened:
            opened.connection.execute("DELETE FROM traces")
        return len(endpoint.requests) - before

    assert collect(MODELS) == 2
    assert collect(MODELS, endpoint.url.replace("127.0.0.1", "localhost")) == 0
    assert collect(MODELS.replace('"low"', '"high"')) == 1


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("[agents.base]", "[agents.bass]"), r"agents: needs \[agents.base\] and \[agents.guide\]"),
        (("[agents.exit-base]", "[agents.judge]"), r"agents.judge: is no role"),
        (("rounds = 2", 'rounds = 2\nmode = "independent"'), r"agents.\S+: is no role"),
        (("coverage = 0.8", "coverage = 8"), r"agents\S*coverage|<= 1"),
        (("rounds = 2", "rounds = 0"), r"job.toml, rounds: must be a whole number, at least 1"),
        (
            ("rounds = 2", 'rounds = 2\nmode = "odd"'),
            r"mode: is .odd.; write dialogue or independent",
        ),
        (("rounds = 2", "rounds = = 2"), r"job.toml: is not TOML"),
    ],
)
def test_a_wrong_job_is_refused(tmp_path: Path, change: tuple[str, str], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        write(tmp_path, "http://localhost:1/v1", HEAD.replace(*change))


def test_a_job_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"absent.toml: there is no such file; check the path"):
        read_job(tmp_path / "absent.toml")

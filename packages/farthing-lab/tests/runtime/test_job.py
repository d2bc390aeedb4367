"""Jobs of dialogues: which agents they make, tools included, and what an estimate bounds."""

import re
from pathlib import Path

import pytest
from chat_server import Endpoint
from two_model_job import MODELS
from two_model_job import write as write_job

from farthing.errors import ConfigError
from farthing.runtime.collect import collect_locally, price
from farthing.runtime.job import Job, sent_mark
from farthing.traces.store import Store
from farthing.traces.system import changes

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
    return write_job(folder, url, head, models)


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


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("[agents.base]", "[agents.bass]"), r"agents: needs \[agents.base\] and \[agents.guide\]"),
        (("[agents.exit-base]", "[agents.judge]"), r"agents.judge: is no role"),
        (("rounds = 2", 'rounds = 2\nmode = "independent"'), r"agents.\S+: is no role"),
        (("coverage = 0.8", "coverage = 8"), r"agents.policy-gpt.coverage: must be .*, at most 1$"),
        (("rounds = 2", "rounds = 0"), r"job.toml, rounds: must be a whole number, at least 1"),
        (
            ("rounds = 2", 'rounds = 2\nmode = "odd"'),
            r"mode: is .odd.; write dialogue or independent or samples",
        ),
    ],
)
def test_a_wrong_job_is_refused(tmp_path: Path, change: tuple[str, str], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        write(tmp_path, "http://localhost:1/v1", HEAD.replace(*change))


TAKES_BASE = r"it takes model, search, max_tokens, temperature and top_logprobs$"


@pytest.mark.parametrize(
    ("agent", "line", "says"),
    [
        ("guide", 'search = "own"', r"guide: takes no `search`; it takes model, max_tokens, temp"),
        ("guide", "sample = 3", r"guide: takes no `sample`; .* samples and top_logprobs$"),
        ("guide", "samples = -1", r"guide.samples: must be a whole number, at least 0"),
        ("guide", "temperature = 3", r"guide.temperature: must be a number, at most 2"),
        ("base", "samples = 3", r"base: takes no `samples`; it takes .* tracker and verify$"),
        ("exit-base", "samples = 1\ncoverage = 0.5", r"takes no `samples`, `coverage`; it takes"),
        ("policy-gpt", "max_steps = 3", r"policy-gpt: takes no `max_steps`; it takes .*coverage$"),
    ],
)
def test_a_field_that_means_nothing_to_an_agent_is_refused_with_those_that_do(
    tmp_path: Path, agent: str, line: str, says: str
) -> None:
    head = HEAD.replace(f"[agents.{agent}]", f"[agents.{agent}]\n{line}")
    with pytest.raises(ConfigError, match=rf"job.toml, agents\.(exit-base: )?{says}"):
        write(tmp_path, "http://localhost:1/v1", head)


def test_without_search_there_are_no_steps_and_alone_a_guide_is_no_judge(tmp_path: Path) -> None:
    plain = HEAD.replace('search = "own"', "max_steps = 3")
    with pytest.raises(ConfigError, match=rf"agents.base: takes no `max_steps`; {TAKES_BASE}"):
        write(tmp_path, "http://localhost:1/v1", plain)
    alone = HEAD.partition("[agents.policy-gpt]")[0].replace(
        "rounds", 'mode = "independent"\nrounds'
    )
    alone = alone.replace("[agents.guide]", "[agents.guide]\nsamples = 2")
    with pytest.raises(ConfigError, match=rf"agents.guide: takes no `samples`; {TAKES_BASE}"):
        write(tmp_path, "http://localhost:1/v1", alone)


def test_what_agents_are_told_is_what_is_sent(endpoint: Endpoint, tmp_path: Path) -> None:
    endpoint.answer = play
    told = {
        "guide": "max_tokens = 33\ntemperature = 0.25\nsamples = 2\ntop_logprobs = 3",
        "base": "max_tokens = 44\ntemperature = 0.5\nmax_steps = 1",
        "policy-gpt": "max_tokens = 55\ntemperature = 0.75",
        "exit-base": "max_tokens = 66\ntemperature = 2",
    }
    head = HEAD.replace("rounds = 2", "rounds = 1")
    for agent, lines in told.items():
        head = head.replace(f"[agents.{agent}]", f"[agents.{agent}]\n{lines}")
    collect_locally(write(tmp_path, endpoint.url, head), tmp_path / "a.db", 10**12)
    names = ("max_tokens", "temperature", "top_logprobs")
    assert [tuple(sent.get(name) for name in names) for sent in endpoint.requests] == [
        (44, 0.5, None),
        (33, 0.25, 3),
        *[(8, 1.0, None)] * 2,
        (55, 0.75, None),
        (66, 2.0, None),
    ]


def test_what_agents_are_not_told_is_as_they_have_it(endpoint: Endpoint, tmp_path: Path) -> None:
    endpoint.answer = play
    collect_locally(write(tmp_path, endpoint.url), tmp_path / "a.db", 10**12)
    sent = {(r["max_tokens"], r["temperature"], r.get("top_logprobs")) for r in endpoint.requests}
    assert sent == {(1024, 0, None), (1024, 1, None), (64, 0, 5), (8, 1, None), (16, 0, None)}


def test_another_temperature_is_another_system(tmp_path: Path) -> None:
    before = write(tmp_path, "http://localhost:1/v1").system()
    head = HEAD.replace("[agents.guide]", "[agents.guide]\nsamples = 2\ntemperature = 0.5")
    now = write(tmp_path, "http://localhost:1/v1", head).system()
    assert changes(before, now) == [
        "samples of guide (2 instead of 5)",
        "temperature of guide (0.5 instead of nothing)",
    ]


def test_a_model_beside_the_job_is_the_same_system_in_any_folder(tmp_path: Path) -> None:
    local = MODELS.replace('provider = "openai-compatible"\nmodel = "small"\nurl = "URL"', LOCAL)
    jobs = []
    for name in ("here", "there"):
        (tmp_path / name / "weights").mkdir(parents=True)
        jobs.append(write(tmp_path / name, "http://localhost:1/v1", models=local))
    here, there = jobs
    settings = [job.models.sections["small"].settings for job in jobs]
    assert [one.path for one in settings] == [  # type: ignore[attr-defined]
        str(tmp_path / name / "weights") for name in ("here", "there")
    ]
    assert changes(here.system(), there.system()) == []
    assert sent_mark(here.models, "small") == sent_mark(there.models, "small")


LOCAL = 'provider = "local"\nmodel = "small"\npath = "weights"'

"""Jobs from files: which agents they make, tools included, and what an estimate bounds."""

import json
import re
from pathlib import Path

import pytest
from chat_server import Endpoint

from farthing.errors import ConfigError, MissingPackageError
from farthing.runtime.collect import collect_locally, price
from farthing.runtime.job import Job, read_job, sent_mark
from farthing.traces.store import Store
from farthing.traces.system import changes
from farthing.traces.trace_kind import shape_of

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


def test_an_agent_that_is_not_installed_says_which_package_brings_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("farthing.plugins._registered", lambda _: {})
    says = r"section 'guide' needs farthing-lab; in a clone: pip install \./packages/farthing-lab"
    with pytest.raises(MissingPackageError, match=says):
        write(tmp_path, "http://localhost")


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
        (("coverage = 0.8", "coverage = 8"), r"agents.policy-gpt.coverage: must be .*, at most 1$"),
        (("rounds = 2", "rounds = 0"), r"job.toml, rounds: must be a whole number, at least 1"),
        (
            ("rounds = 2", 'rounds = 2\nmode = "odd"'),
            r"mode: is .odd.; write dialogue or independent or samples",
        ),
        (("rounds = 2", "rounds = = 2"), r"job.toml: is not TOML"),
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


def test_a_job_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"absent.toml: there is no such file; check the path"):
        read_job(tmp_path / "absent.toml")


ALONE = """
task = "text"
questions = "questions.jsonl"
rounds = 3
mode = "independent"
[agents.base]
model = "small"
[agents.guide]
model = "GUIDE"
"""


@pytest.mark.parametrize(
    ("guide", "seeds"),
    [
        ("small", [None, 2, 3, None, 1_000_002, 1_000_003]),
        ("large", [None, 2, 3, None, 2, 3]),  # as ever: what was recorded goes on to count
    ],
)
def test_independent_roles_of_one_model_draw_samples_of_their_own(
    endpoint: Endpoint, tmp_path: Path, guide: str, seeds: list[int | None]
) -> None:
    job = write(tmp_path, endpoint.url, ALONE.replace("GUIDE", guide))
    collect_locally(job, tmp_path / "a.db", 10**12)
    sent = [json.dumps(body, sort_keys=True) for body in endpoint.requests]
    later = [one for one in sent if json.loads(one).get("seed")]
    assert len(set(later)) == len(later) == 4, "no two are the same request"
    found = [(body.get("model"), body.get("seed")) for body in endpoint.requests]
    models = ["small"] * 3 + [guide] * 3
    assert sorted(found, key=str) == sorted(zip(models, seeds, strict=True), key=str)
    streams = {role: part.agent.get("stream") for role, part in job.system().items()}
    assert streams == {"base": None, "guide": 1 if guide == "small" else None}


SAMPLES = """
task = "text"
questions = "questions.jsonl"
rounds = 3
mode = "samples"
[agents.base]
model = "small"
"""


def test_samples_are_alike_and_come_in_as_sample_traces(endpoint: Endpoint, tmp_path: Path) -> None:
    job = write(tmp_path, endpoint.url, SAMPLES)
    collect_locally(job, tmp_path / "a.db", 10**12)
    found = [(body.get("temperature"), body.get("seed")) for body in endpoint.requests]
    assert sorted(found) == [(1.0, 1), (1.0, 2), (1.0, 3)]
    with Store.read(tmp_path / "a.db") as store:
        (trace,) = store.traces()
    assert shape_of(trace) == "samples"
    assert sorted((call.round, call.role) for call in trace.calls) == [
        (1, "base"), (2, "base"), (3, "base"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("rounds = 3", "rounds = 1"), "rounds: is 1; it says how many samples, at least 2"),
        (('"small"', '"small"\ntemperature = 0'), r"agents.base.temperature: is 0, at which all"),
        (("[agents.base]", "[agents.guide]"), r"agents: needs \[agents.base\] alone"),
        (('mode = "samples"', ""), r"agents: needs \[agents.base\] and \[agents.guide\]; the base"),
    ],
)
def test_what_gives_no_samples_is_refused(
    tmp_path: Path, change: tuple[str, str], said: str
) -> None:
    with pytest.raises(ConfigError, match=said):
        write(tmp_path, "http://localhost:1", SAMPLES.replace(*change))

"""Jobs from files: what they ask of whom, and what is refused."""

import json
from pathlib import Path

import pytest
from chat_server import Endpoint
from two_model_job import MODELS, write

from farthing.errors import ConfigError, MissingPackageError
from farthing.runtime.collect import collect_locally
from farthing.runtime.job import read_job
from farthing.traces.store import Store
from farthing.traces.trace_kind import shape_of

ALONE = """
task = "text"
questions = "questions.jsonl"
rounds = 3
mode = "independent"
[agents.guide]
model = "GUIDE"
[agents.base]
model = "small"
"""


def test_an_agent_that_is_not_installed_says_which_package_brings_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("farthing.plugins._registered", lambda _: {})
    says = r"section 'guide' needs farthing-lab; in a clone: pip install \./packages/farthing-lab"
    with pytest.raises(MissingPackageError, match=says):
        write(tmp_path, "http://localhost", ALONE.replace("independent", "dialogue"))


def test_other_settings_of_a_model_are_other_calls_and_another_address_is_not(
    endpoint: Endpoint, tmp_path: Path
) -> None:
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
        (
            ("[agents.guide]", "[agents.judge]"),
            r"agents: needs \[agents.base\] and \[agents.guide\]",
        ),
        (("rounds = 3", "rounds = 0"), r"job.toml, rounds: must be a whole number, at least 1"),
        (("rounds = 3", "rounds = = 2"), r"job.toml: is not TOML"),
        (
            ("[agents.base]", "[agents.base]\nsamples = 3"),
            r"agents.base: takes no `samples`; it takes model, search, .* and top_logprobs$",
        ),
        (
            ("[agents.base]", "[agents.base]\ntemperature = 3"),
            r"base.temperature: must be .* most 2",
        ),
    ],
)
def test_a_wrong_job_is_refused(tmp_path: Path, change: tuple[str, str], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        write(tmp_path, "http://localhost:1/v1", ALONE.replace(*change))


def test_a_job_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"absent.toml: there is no such file; check the path"):
        read_job(tmp_path / "absent.toml")


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
        (('"samples"', '"odd"'), "mode: is .odd.; write dialogue or independent or samples"),
        (('mode = "samples"', ""), r"agents: needs \[agents.base\] and \[agents.guide\]; the base"),
    ],
)
def test_what_gives_no_samples_is_refused(
    tmp_path: Path, change: tuple[str, str], said: str
) -> None:
    with pytest.raises(ConfigError, match=said):
        write(tmp_path, "http://localhost:1", SAMPLES.replace(*change))

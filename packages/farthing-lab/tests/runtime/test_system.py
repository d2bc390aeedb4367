"""A promise is about prompts, parameters, prices and models, and ends when one changes."""

import json
import re
import shutil
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path

import msgspec
import pytest
from chat_server import Endpoint, Messages
from sums import farthing, write_job

from farthing.bundle import folder as bundles
from farthing.models import prices
from farthing.models.prices import Rates, TokenPrice
from farthing.models.scripted import ScriptedModel
from farthing.runtime.agents.base import BaseAgent
from farthing.runtime.answer import Answer
from farthing.runtime.job import read_job
from farthing.runtime.protocol import Dialogue, Independent
from farthing.runtime.provenance import made_with
from farthing.runtime.runner import PolicyRunner, answer_all
from farthing.runtime.system import system_of
from farthing.tasks.base import Question
from farthing.tasks.numbers import NUMBERS
from farthing.tasks.templates import PromptTemplates
from farthing.traces.assemble import assemble
from farthing.traces.base import Call, Trace
from farthing.traces.jsonl import write_traces
from farthing.traces.store import Store
from farthing.traces.system import ALONE, Origin, RoleSetup, SentRequest, changes, fingerprint
from farthing_lab.agents.guide import GuideAgent

QUESTIONS, NEW = 60, "What is 301 + 301?"
AGENTS = """
prompts = "prompts"
agents.base.search = "corpus.jsonl"
"""
GUIDE = "Judge an answer\n{question}\n{reasoning}\n{answer}\nYes or No?\n"
CALIBRATE = ("calibrate", "--alpha", "0.1", "--bundle")
Edit = Callable[[Path], None]


def say(messages: Messages) -> str:
    """Answer as a base or as its guide; every fourth question takes the base a second attempt."""
    asked = re.search(r"What is (\d+) \+", messages[0]["content"])
    assert asked
    right = 2 * int(asked[1])
    if "Judge an answer" in messages[0]["content"]:
        return "Yes" if f"Answer: {right}" in messages[0]["content"] else "No 0"
    earlier = any(message["role"] == "assistant" for message in messages)
    return f"Answer: {right if int(asked[1]) % 4 or earlier else 1}"


@pytest.fixture(scope="module")
def server() -> Iterator[Endpoint]:
    with Endpoint(answer=say) as running:
        yield running


@pytest.fixture(scope="module")
def calibrated(server: Endpoint, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a job, its store, and a bundle whose promise holds."""
    folder = tmp_path_factory.mktemp("calibrated")
    write_job(folder, server.url, questions=QUESTIONS, rounds=2, mode="dialogue")
    job = folder / "job.toml"
    job.write_text(AGENTS + job.read_text())
    (folder / "prompts").mkdir()
    (folder / "prompts" / "guide.txt").write_text(GUIDE)
    (folder / "corpus.jsonl").write_text('{"title": "Two", "text": "One and one."}\n')
    store = folder / "traces.db"
    assert farthing("collect", job, "--store", store, "--max-cost", "1") == 0
    made = ("--traces", store)
    assert farthing("train", *made, "--policy", "stopping", "--out", folder / "bundle") == 0
    assert farthing(*CALIBRATE, folder / "bundle", *made) == 0
    return folder


@pytest.fixture
def folder(calibrated: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """Return a copy of the job, in a place of its own."""
    capsys.readouterr()
    return Path(shutil.copytree(calibrated, tmp_path / "elsewhere"))


def in_job(before: str, now: str) -> Edit:
    def edit(folder: Path) -> None:
        text = (folder / "job.toml").read_text()
        assert before in text
        (folder / "job.toml").write_text(text.replace(before, now))

    return edit


def in_file(name: str, text: str) -> Edit:
    def edit(folder: Path) -> None:
        (folder / name).write_text(text)

    return edit


def dearer(whose: str, now: str, before: str = "", extra: str = "") -> str:
    unit = "per million tokens"
    return f"the price of {whose} ({now} {unit}{extra} instead of {before or now} {unit})"


SMALL, LARGE = 'model = "small", ', 'model = "large", '
ENDED: dict[str, tuple[Edit, list[str]]] = {
    "prompt": (in_file("prompts/guide.txt", GUIDE + "Be strict."), ["the prompt 'guide' of guide"]),
    "new prompt": (
        in_file("prompts/react.txt", "{question} {tools} {steps}"),
        ["the prompt 'react' of base"],
    ),
    "output price": (
        in_job("output_per_million = 0.4", "output_per_million = 40"),
        [dearer("base's model small", "$0.1 in and $40 out", "$0.1 in and $0.4 out")],
    ),
    "price of a call": (
        in_job("output_per_million = 10 ", "output_per_million = 10, per_request = 0.01 "),
        [dearer("guide's model large", "$2.5 in and $10 out", extra=", and $0.01 a call")],
    ),
    "token limit": (
        in_job(AGENTS, AGENTS + "agents.base.max_tokens = 512\n"),
        ["max_tokens of base (512 instead of 1024)"],
    ),
    "model": (
        in_job('agents.guide.model = "large"', 'agents.guide.model = "huge"'),
        ["the model of guide (huge instead of large)"],
    ),
    "temperature": (
        in_job(SMALL, SMALL + "extra = { temperature = 0.5 }, "),
        ["extra.temperature of base (0.5 instead of nothing)"],
    ),
    "omitted parameter": (in_job(LARGE, LARGE + 'omit = ["seed"], '), ["omit of guide"]),
    "corpus": (
        in_file("corpus.jsonl", '{"title": "Two", "text": "One and two."}\n'),
        ["search of base"],
    ),
    "no search": (
        in_job('agents.base.search = "corpus.jsonl"', ""),
        [
            "the agent of base (BaseAgent instead of ReactAgent)",
            "search of base",
        ],
    ),
}


@pytest.mark.parametrize("change", ENDED)
def test_one_change_ends_the_promise_and_is_named(
    folder: Path, capsys: pytest.CaptureFixture[str], change: str
) -> None:
    edit, named = ENDED[change]
    edit(folder)
    ask = ("ask", folder / "job.toml", "--bundle", folder / "bundle", NEW, "--json")
    assert farthing(*ask) == 0
    printed = capsys.readouterr()
    answer = json.loads(printed.out)
    expected = [f"{what} is not that of the bundle's traces" for what in named]
    assert (answer["answer"], answer["guaranteed"]) == ("602", False)
    assert answer["caveats"] == expected
    assert printed.err.splitlines() == [f"note: no promise holds: {clause}" for clause in expected]


def many(folder: Path) -> None:
    """Change whatever leaves the calls and their prices as they are."""
    (folder / "prompts").rename(folder / "texts")
    (folder / "texts" / "guide.txt").write_text(GUIDE + "\n\n")
    (folder / "texts" / "policy.txt").write_text("{question} of nobody's")
    (folder / "corpus.jsonl").rename(folder / "paragraphs.jsonl")
    (folder / "key").write_text("secret")
    in_job('prompts = "prompts"', 'prompts = "texts"\nlimit = 5\nseed = 3')(folder)
    in_job("at_once = 1", "at_once = 2")(folder)
    in_job("corpus.jsonl", "paragraphs.jsonl")(folder)
    in_job("output_per_million = 0.4", "output_per_million = 0.40")(folder)
    in_job("input_per_million = 25,", "input_per_million = 26,")(folder)
    more = f'{SMALL}timeout_s = 7.5, key_file = "{folder / "key"}", limits = "few", '
    in_job(SMALL, f"{more}retries = {{ tries = 3 }}, ")(folder)
    in_job("models.huge", "limits.few = { concurrent = 3 }\nmodels.huge")(folder)


@pytest.mark.parametrize("edit", [lambda _: None, many], ids=["nothing", "what does not matter"])
def test_what_no_call_and_no_price_shows_ends_nothing(
    folder: Path, capsys: pytest.CaptureFixture[str], edit: Edit
) -> None:
    edit(folder)
    ask = ("ask", folder / "job.toml", "--bundle", folder / "bundle", NEW, "--json")
    assert farthing(*ask) == 0
    printed = capsys.readouterr()
    answer = json.loads(printed.out)
    assert (answer["guaranteed"], answer["caveats"], printed.err) == (True, [], "")


def test_the_reason_is_said_before_anything_is_paid(folder: Path, server: Endpoint) -> None:
    in_job("output_per_million = 0.4", "output_per_million = 40")(folder)
    before, said = len(server.requests), []

    def doubt(clause: str) -> None:
        said.append((clause, len(server.requests) - before))

    job, bundle = read_job(folder / "job.toml"), bundles.load(folder / "bundle")
    answer_all(job, bundle, [Question("q", NEW)], show=lambda _: None, doubt=doubt)
    assert [(clause.partition(" (")[0], paid) for clause, paid in said] == [
        ("the price of base's model small", 0)
    ]
    assert len(server.requests) > before


def test_agents_without_a_job_are_compared_by_what_they_say_of_themselves(folder: Path) -> None:
    """Prompts and limits are known, settings and prices are not."""
    bundle = bundles.load(folder / "bundle")
    base, guide = (ScriptedModel({}, name=name) for name in ("small", "large"))
    agents = (BaseAgent(base), GuideAgent(guide, PromptTemplates(folder / "prompts"), samples=9))
    doubts = PolicyRunner(bundle, Dialogue(agents, 2), NUMBERS).validity.invalid_because
    assert [doubt.removesuffix(" is not that of the bundle's traces") for doubt in doubts] == [
        "the agent of base (BaseAgent instead of ReactAgent)",
        "samples of guide (9 instead of 5)",
    ]


def test_a_role_of_which_nothing_is_said_is_a_doubt(folder: Path) -> None:
    bundle = bundles.load(folder / "bundle")
    base, guide = (ScriptedModel({}, name=name) for name in ("small", "large"))
    system = {"base": bundle.origin.system["base"]} if bundle.origin.system else {}
    plan = Dialogue((BaseAgent(base), GuideAgent(guide)), 2)
    doubts = PolicyRunner(bundle, plan, NUMBERS, system=system).validity.invalid_because
    assert doubts == ("the role guide is not that of the bundle's traces",)


def test_a_bundle_that_does_not_say_is_unknown_and_not_broken(folder: Path) -> None:
    body = json.loads((folder / "bundle" / "bundle.json").read_text())
    origin = body["origin"]
    assert origin.pop("system")["base"]["model"] == "small"
    assert msgspec.convert(origin, Origin).system is None
    old = msgspec.structs.replace(
        bundles.load(folder / "bundle"), origin=msgspec.convert(origin, Origin)
    )
    in_job("output_per_million = 0.4", "output_per_million = 40")(folder)
    answers: list[Answer] = []
    job = read_job(folder / "job.toml")
    answer_all(job, old, [Question("q", NEW)], show=answers.append, doubt=pytest.fail)
    assert answers[0].guaranteed


@pytest.mark.slow
def test_a_store_of_two_systems_makes_a_bundle_of_none(
    folder: Path, server: Endpoint, capsys: pytest.CaptureFixture[str]
) -> None:
    store, bundle = folder / "traces.db", folder / "bundle"
    job = read_job(folder / "job.toml")
    write_job(folder, server.url, questions=80, rounds=2, mode="dialogue")
    in_job("rounds", f"{AGENTS}rounds")(folder)
    assert farthing("collect", folder / "job.toml", "--store", store, "--max-cost", "1") == 0
    assert "made otherwise" not in capsys.readouterr().err
    in_file("prompts/guide.txt", GUIDE + "Be strict.")(folder)
    shutil.move(folder / "prompts", folder / "others")  # what was read before is kept by its place
    in_job('prompts = "prompts"', 'prompts = "others"')(folder)
    ids = [json.loads(line) for line in (folder / "questions.jsonl").read_text().splitlines()]
    more = [{**one, "id": f"again {one['id']}"} for one in ids[:5]]
    (folder / "questions.jsonl").write_text("\n".join(map(json.dumps, more)))
    collect = ("collect", folder / "job.toml", "--store", store, "--max-cost", "1")
    assert farthing(*collect, "--dry-run") == 0
    assert "made otherwise; changed: the prompt 'guide' of guide" in capsys.readouterr().err
    assert farthing(*collect) == 0
    with Store.open(store, create=False) as opened:
        assert opened.systems() == [job.system(), read_job(folder / "job.toml").system()]
    capsys.readouterr()
    assert farthing("traces", "info", store) == 0
    assert "not all was made alike; changed: the prompt 'guide'" in capsys.readouterr().err
    sizes = ("--train", "40", "--calibrate", "30", "--test", "10")
    new = ("train", "--traces", store, *sizes, "--policy", "stopping", "--out", folder / "new")
    assert farthing(*new) == 0
    assert farthing(*CALIBRATE, folder / "new", "--traces", store, *sizes) == 0
    said = capsys.readouterr().err
    assert said.count("was collected under 2 systems, so the bundle holds none of them") == 1
    assert "changed: the prompt 'guide' of guide" in said
    assert bundles.load(folder / "new").origin.system is None
    assert bundles.load(bundle).origin.system == job.system()
    refused = (*CALIBRATE, folder / "new", "--traces", store, *sizes, "--job", folder / "job.toml")
    assert farthing(*refused) == 2
    assert "leave the job out" in capsys.readouterr().err


def test_a_store_that_an_older_version_began_is_of_one_system(tmp_path: Path) -> None:
    """It says nothing of what single calls send, which is no other system."""
    sent = SentRequest(system=("sha256:1",))
    new = RoleSetup(model="m", kind="BaseAgent", agent={}, prompts={"base": "sha256:2"}, sent=sent)
    old = msgspec.structs.replace(new, sent=None)
    path, call = tmp_path / "t.db", Call(round=1, role="m", model="m", answer="4")
    with Store.open(path) as store:
        for name, part in (("a", old), ("b", new)):
            store.made_with({"m": part})
            store.append(Trace(id=name, calls=[call]), "collect")
        assert len(store.systems()) == 2
        arrays = assemble(list(store.traces()))
    behind = made_with([path], arrays)
    assert (behind.system, behind.note) == ({"m": new}, "")


@pytest.mark.slow
def test_a_store_with_imports_is_known_once_a_job_declares_them(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store, file, job = folder / "traces.db", folder / "more.jsonl", folder / "job.toml"
    with Store.open(store) as opened:
        (first, *_) = opened.traces()
    write_traces(file, [msgspec.structs.replace(first, id="imported", question="Another one?")])
    assert farthing("traces", "import", file, "--store", store) == 0
    new, made = folder / "new", ("--traces", store)
    assert farthing("train", *made, "--policy", "stopping", "--out", new) == 0
    assert bundles.load(new).origin.system is None
    capsys.readouterr()
    assert farthing(*CALIBRATE, new, *made) == 0
    assert "does not say what all of it was made with" in capsys.readouterr().err
    assert farthing(*CALIBRATE, new, *made, "--job", job) == 0
    assert bundles.load(new).origin.system == read_job(job).system()


@pytest.mark.slow
def test_a_file_says_nothing_and_a_job_declares_it(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, new, job = folder / "traces.jsonl", folder / "new", folder / "job.toml"
    farthing("traces", "export", "--store", folder / "traces.db", "--out", file)
    train = ("train", "--traces", file, "--policy", "stopping", "--out", new)
    assert farthing(*train) == 0
    assert bundles.load(new).origin.system is None
    assert farthing(*CALIBRATE, new, "--traces", file) == 0
    assert capsys.readouterr().err.count("name its job with --job") == 1
    assert farthing(*CALIBRATE, new, "--traces", file, "--job", job) == 0
    assert "--job" not in capsys.readouterr().err
    assert bundles.load(new).origin.system == read_job(job).system()
    shutil.rmtree(new)
    assert farthing(*train, "--job", job) == 0
    assert bundles.load(new).origin.system == read_job(job).system()


@pytest.mark.slow
def test_a_job_that_made_no_such_traces_is_refused(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, job = folder / "traces.jsonl", folder / "job.toml"
    farthing("traces", "export", "--store", folder / "traces.db", "--out", file)
    before = (folder / "bundle" / "bundle.json").read_bytes()
    capsys.readouterr()
    for edit, says, traces in (
        (lambda _: None, "absent.toml, file: is not", file),
        (
            in_job(AGENTS, AGENTS + "agents.base.max_tokens = 9\n"),
            "max_tokens of base",
            "traces.db",
        ),
        (in_job('agents.guide.model = "large"', 'agents.guide.model = "huge"'), "its guide", file),
        (in_job('"corpus.jsonl"', '"gone.jsonl"'), "gone.jsonl: cannot be read", file),
    ):
        edit(folder)
        named = folder / "absent.toml" if "absent" in says else job
        command = (*CALIBRATE, folder / "bundle", "--traces", folder / traces, "--job", named)
        assert farthing(*command) == 2, says
        said = capsys.readouterr().err
        assert said.count("\n") == 1
        assert says.removesuffix(", file: is not") in said
    assert (folder / "bundle" / "bundle.json").read_bytes() == before


@pytest.mark.slow
def test_a_promise_is_about_the_traces_that_calibrated(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Trained at one price, calibrated at another: the latter is what must stay."""
    in_job("output_per_million = 0.4", "output_per_million = 0.5")(folder)
    job, store = folder / "job.toml", folder / "dearer.db"
    assert farthing("collect", job, "--store", store, "--max-cost", "1") == 0
    assert farthing(*CALIBRATE, folder / "bundle", "--traces", store) == 0
    said = " ".join(capsys.readouterr().err.split())
    assert "the promise is about these; changed: the price of base's model small ($0.1 in" in said
    assert farthing("ask", job, "--bundle", folder / "bundle", NEW, "--json") == 0
    assert json.loads(capsys.readouterr().out)["guaranteed"]


def test_published_prices_count_by_their_figures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new table of `genai-prices` matters where a figure, of any tier, is another one."""
    sold = [TokenPrice((Rates(Decimal(1), Decimal(2)), Rates(Decimal(2), Decimal(4), 200)))]
    monkeypatch.setattr(prices, "_published", lambda *_: sold[0])
    write_job(tmp_path, "http://127.0.0.1:9/v1", questions=1, rounds=1, mode="dialogue")
    in_job("prices.large", "prices.other")(tmp_path)
    job = read_job(tmp_path / "job.toml")
    before = job.system()
    sold[0] = TokenPrice(
        (Rates(Decimal("1.0"), Decimal("2.00")), Rates(Decimal(2), Decimal(4), 200))
    )
    assert changes(before, job.system()) == []
    sold[0] = TokenPrice((Rates(Decimal(1), Decimal(2)), Rates(Decimal(2), Decimal(5), 200)))
    told = "$1 in and $2 out; above 200 input tokens $2 in and "
    assert changes(before, job.system()) == [
        dearer("guide's model large", f"{told}$5 out", f"{told}$4 out")
    ]


POOL = """
task = "gsm8k"
questions = "questions.jsonl"
pool = ["first", "second"]
models.first = {{ provider = "openai-compatible", model = "small", url = "{url}" }}
models.second = {{ provider = "openai-compatible", model = "large", url = "{url}" }}
prices.small = {{ input_per_million = 0.1, output_per_million = 0.4 }}
prices.large = {{ input_per_million = 2.5, output_per_million = 10 }}
"""


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["stopping", "lazy"])
def test_the_models_of_a_pool_are_found_by_their_names(
    folder: Path, server: Endpoint, capsys: pytest.CaptureFixture[str], policy: str
) -> None:
    """A cascade knows its models by name alone, and sections may have been renamed."""
    job, store, bundle = folder / "job.toml", folder / "pool.db", folder / "pool"
    job.write_text(POOL.format(url=server.url))
    assert farthing("collect", job, "--store", store, "--max-cost", "1") == 0
    assert farthing("train", "--traces", store, "--policy", policy, "--out", bundle) == 0
    assert farthing(*CALIBRATE, bundle, "--traces", store) == 0
    if policy == "stopping":
        job.write_text(job.read_text().replace("first", "weak").replace("second", "strong"))
    capsys.readouterr()
    ask = ("ask", job, "--bundle", bundle, NEW, "--json")
    assert farthing(*ask) == 0
    assert json.loads(capsys.readouterr().out)["guaranteed"]
    in_job("output_per_million = 0.4", "output_per_million = 40")(folder)
    assert farthing(*ask) == 0
    (caveat,) = json.loads(capsys.readouterr().out)["caveats"]
    role = "weak" if policy == "stopping" else "first"
    assert caveat.startswith(f"the price of {role}'s model small ($0.1 in and $40 out")


def test_no_text_of_a_job_is_in_a_bundle_but_the_names_of_models(folder: Path) -> None:
    in_job(SMALL, SMALL + 'extra = { user = "somebody", temperature = 1 }, ')(folder)
    text = json.dumps(msgspec.to_builtins(read_job(folder / "job.toml").system()))
    assert "extra.temperature" in text
    for private in ("somebody", str(folder), "http", "Judge"):
        assert private not in text


def test_earlier_rounds_are_shown_in_a_dialogue_alone() -> None:
    """So the prompt that shows them matters there alone."""
    base = BaseAgent(ScriptedModel({}))
    assert set(system_of(Dialogue((base,), 2))["base"].prompts) == {"base", "review"}
    assert set(system_of(Independent((base,), 2, NUMBERS))["base"].prompts) == {"base"}


def test_a_question_without_marks_is_sent_otherwise_than_with_them(tmp_path: Path) -> None:
    """What an older version marked in the same prompt was another request."""
    (tmp_path / "base.txt").write_text("{question}")
    base = BaseAgent(ScriptedModel({}), PromptTemplates(tmp_path))
    (now,) = system_of(Independent((base,), 1, NUMBERS))["base"].prompts.values()
    assert now != fingerprint(base.prompts["base"].messages)
    assert system_of(Independent((base,), 2, NUMBERS))["base"].sent is None
    alone = system_of(Independent((base,), 1, NUMBERS))["base"].sent
    assert alone
    assert (alone.around, alone.system) == (ALONE, (fingerprint(""),))
    assert alone.parameters == {"max_tokens": 1024, "temperature": 0.0}


def test_roles_come_and_go() -> None:
    part = RoleSetup(model="m", kind="A", agent={}, prompts={})
    assert changes({"a": part}, {"b": part}) == ["the role a", "the role b, which is new"]

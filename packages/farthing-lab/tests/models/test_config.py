"""Sections become models; every mistake is named by file and field."""

import asyncio
import sys
import tomllib
from pathlib import Path

import pytest
from chat_server import Endpoint

from farthing import plugins
from farthing.errors import ConfigError, MissingExtraError, ModelError
from farthing.models.base import Completion, Message, Prompt, Usage
from farthing.models.config import ModelsConfig, models_from, read_models
from farthing.models.retry import Try, complete
from farthing_lab.models.embedded import WEIGHTS
from farthing_lab.models.local import LocalSettings

WHOLE = """
[models.base]
provider = "openai-compatible"
model = "small"
url = "{url}"
key_env = "A_KEY"
limits = "here"
retries = {{ tries = 4, first_s = 0.01 }}

[models.guide]
provider = "scripted"
model = "large"
replies = {{ "2 + 2?" = "4" }}
otherwise = "no idea"
limits = "here"

[limits.here]
concurrent = 1

[prices]
"small" = {{ input_per_million = 1, output_per_million = 2.5, per_request = 0.001 }}
"large" = {{ per_second = 0.002 }}

[somebody]
elses = "section"
"""


def ask(text: str) -> Prompt:
    return Prompt((Message("user", text),))


def test_a_whole_file_opens_and_answers(
    endpoint: Endpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A_KEY", "sk-1")
    file = tmp_path / "job.toml"
    file.write_text(WHOLE.format(url=endpoint.url))
    endpoint.faults = {"429": 1.0}
    endpoint.only_first = True

    async def run() -> list[Completion]:
        models = read_models(file).open()
        try:
            return [
                await models["base"].complete(ask("hello")),
                await models["guide"].complete(ask("2 + 2?")),
                await models["guide"].complete(ask("3 + 3?")),
            ]
        finally:
            for model in models.values():
                await model.aclose()

    base, known, unknown = asyncio.run(run())
    assert (base.text, base.model, base.tries) == ("reply to hello", "small", 2)
    assert base.usage == Usage(1, 3)
    assert base.cost_nano == 1_000 + 3 * 2_500 + 1_000_000
    assert (known.text, unknown.text) == ("4", "no idea")
    assert known.model == "large"
    assert known.cost_nano is not None
    assert endpoint.headers[0]["Authorization"] == "Bearer sk-1"


def test_what_is_put_around_a_try_sees_every_try(endpoint: Endpoint) -> None:
    endpoint.faults = {"500": 1.0}
    seen: list[str] = []

    async def around(attempt: Try) -> Completion:
        try:
            return await attempt()
        except ModelError as error:
            seen.append(error.kind)
            raise

    async def run() -> None:
        text = WHOLE.format(url=endpoint.url).replace('key_env = "A_KEY"', "")
        model = models_from(tomllib.loads(text), "job.toml").open()["base"]
        try:
            with pytest.raises(ModelError) as caught:
                await complete(model, ask("hello"), around)
        finally:
            await model.aclose()
        assert caught.value.tries == 4

    asyncio.run(run())
    assert seen == ["connection"] * 4


def test_models_that_name_the_same_limits_share_them() -> None:
    text = """
    [models]
    a = { provider = "scripted", otherwise = "yes", latency_s = 0.2, limits = "one" }
    b = { provider = "scripted", otherwise = "yes", latency_s = 0.2, limits = "one" }
    c = { provider = "scripted", otherwise = "yes", latency_s = 0.2 }
    [limits]
    one = { concurrent = 1 }
    """

    async def seconds(*names: str) -> float:
        models = models_from(tomllib.loads(text), "job.toml").open()
        clock = asyncio.get_running_loop().time
        started = clock()
        await asyncio.gather(*(models[name].complete(ask("hi")) for name in names))
        return clock() - started

    assert asyncio.run(seconds("a", "b", "a")) >= 0.6
    assert asyncio.run(seconds("a", "c", "c")) < 0.6


def test_workers_share_the_limits() -> None:
    text = '[models]\na = { provider = "scripted" }\n[limits]\none = { concurrent = 1 }'
    config = models_from(tomllib.loads(text), "job.toml")
    config.open(workers=1)
    with pytest.raises(Exception, match="2 workers cannot share concurrent = 1"):
        config.open(workers=2)


def config(text: str) -> ModelsConfig:
    return models_from(tomllib.loads(text), "job.toml")


GOOD_URL = 'url = "http://host/v1"'


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("models = 3", "job.toml, models: must be a table"),
        ("models.base = 3", "job.toml, models.base: must be a table"),
        ("[models.base]", "job.toml, models.base: lacks the field `provider`"),
        ("[models.base]\nprovider = 3", "job.toml, models.base.provider: must be text in quotes"),
        (
            '[models.base]\nprovider = "opnai-compatible"',
            "job.toml, models.base.provider: unknown model 'opnai-compatible'; did you mean",
        ),
        (
            '[models.base]\nprovider = "openai-compatible"\nmodel = "m"',
            "job.toml, models.base: lacks the field `url`",
        ),
        (
            f'[models.base]\nprovider = "openai-compatible"\nmodel = "m"\n{GOOD_URL}\nkey = "sk"',
            "job.toml, models.base: has no field `key`; did you mean `key_env`? there are",
        ),
        (
            '[models.base]\nprovider = "openai-compatible"\nmodel = "m"\nurl = "host"',
            "job.toml, models.base: `url` must look like",
        ),
        (
            f'[models.base]\nprovider = "openai-compatible"\nmodel = "m"\n{GOOD_URL}\ntimeout_s=""',
            "job.toml, models.base.timeout_s: must be a number",
        ),
        (
            '[models.base]\nprovider = "scripted"\nlimits = "there"',
            "job.toml, models.base.limits: is 'there', and there is no section [limits.there]",
        ),
        (
            '[models.base]\nprovider = "scripted"\nretries = { tries = 0 }',
            "job.toml, models.base.retries.tries: must be a whole number, at least 1",
        ),
        (
            "[limits.one]\nconcurrent = 0",
            "job.toml, limits.one.concurrent: must be a whole number, at least 1",
        ),
        ("[limits.one]\nsequential = 1", "job.toml, limits.one: has no field"),
        ('[prices]\n"m" = { input_per_million = 1 }', 'job.toml, prices."m": give input_per'),
        (
            '[prices]\n"m" = { per_second = -1 }',
            'job.toml, prices."m".per_second: must be a number',
        ),
        (
            '[prices]\n"m" = { per_second = 1, per_request = 1 }',
            'job.toml, prices."m": give input_per_million and output_per_million, which may be 0',
        ),
    ],
)
def test_a_mistake_is_named(text: str, says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        config(text)
    assert str(caught.value).startswith(says)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"absent.toml: there is no such file"):
        read_models(tmp_path / "absent.toml")
    (tmp_path / "bad.toml").write_text("[models")
    with pytest.raises(ConfigError, match="is not TOML"):
        read_models(tmp_path / "bad.toml")


SETTINGS = {
    "any-llm": {"vendor": "anthropic", "model": "m"},
    "calculator": {"model": "m"},
    "embedded": {"model": "small"},
    "local": {"model": "m", "path": "nowhere"},
    "openai-compatible": {"model": "m", "url": "http://host/v1"},
    "scripted": {"model": "m"},
}
EXTRAS = {
    "any-llm": ("any_llm", "anyllm"),
    "local": ("transformers", "lm"),
}


def test_every_provider_is_known_here() -> None:
    assert plugins.names("models") == sorted(SETTINGS)


@pytest.mark.parametrize("provider", EXTRAS)
def test_an_absent_extra_is_named(provider: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, extra = EXTRAS[provider]
    monkeypatch.setitem(sys.modules, module, None)
    tables = {
        "models": {"base": {"provider": provider} | SETTINGS[provider]},
        "prices": {"m": {"per_second": 1.0}},
    }
    with pytest.raises(MissingExtraError, match=rf"pip install .*\[{extra}\]"):
        models_from(tables, "job.toml").open()


LOCAL = '[models.a]\nprovider = "local"\nmodel = "a"\npath = "{path}"\n'


def test_a_path_is_relative_to_the_file_where_something_lies_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("weights", "smollm2"):
        (tmp_path / "there" / name).mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    file = Path("there/models.toml")

    def path_of(written: str) -> str:
        file.write_text(LOCAL.format(path=written))
        settings = read_models(file).sections["a"].settings
        assert isinstance(settings, LocalSettings)
        return settings.path

    assert path_of("weights") == str(tmp_path / "there" / "weights")
    assert path_of(str(tmp_path)) == str(tmp_path)
    for elsewhere in ("owner/on-the-hub", "smollm2"):
        assert path_of(elsewhere) == elsewhere


def test_an_embedded_model_s_folder_and_a_key_are_found_beside_the_file(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("secret\n")
    (tmp_path / "weights").symlink_to(WEIGHTS)
    file = tmp_path / "models.toml"
    file.write_text(
        '[models.a]\nprovider = "embedded"\nmodel = "small"\nfolder = "weights"\n'
        '[models.b]\nprovider = "openai-compatible"\nmodel = "b"\nurl = "http://localhost/v1"\n'
        'key_file = "key"\n'
    )
    sections = read_models(file).sections
    assert sections["a"].written == {"folder": "weights"}
    assert sections["b"].settings.key() is not None  # type: ignore[attr-defined]

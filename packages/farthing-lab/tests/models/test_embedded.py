"""The models that ship: listed without PyTorch, opened like any other, priced by their list."""

import asyncio
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from tiny_models import write_models

from farthing.errors import ConfigError, InputError, UnknownNameError
from farthing.models.base import Completion, Message, Prompt
from farthing.models.config import models_from
from farthing.models.prices import PriceTable, Rates, TokenPrice
from farthing_lab.models.embedded import EmbeddedSettings, find, known

NAMES = ("small", "large")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_models(tmp_path_factory.mktemp("weights"), NAMES)


def ask(text: str, **wanted: Any) -> Prompt:
    return Prompt((Message("system", "low:"), Message("user", text)), **wanted)


def answers(settings: EmbeddedSettings, *prompts: Prompt) -> list[Completion]:
    model = settings.open(PriceTable())

    async def ask_all() -> list[Completion]:
        return list(await asyncio.gather(*map(model.complete, prompts)))

    return asyncio.run(ask_all())


@pytest.mark.slow
def test_the_package_lists_five_models_without_loading_pytorch() -> None:
    program = (
        "import sys\n"
        "from farthing.models.config import models_from\n"
        "from farthing_lab.models.embedded import known\n"
        "models_from({'models': {'a': {'provider': 'embedded', 'model': 'small'}}}, 'job.toml')\n"
        "print(*sorted(model.name for model in known()))\n"
        "print(*({'torch', 'transformers'} & sys.modules.keys()))"
    )
    names, loaded = subprocess.check_output([sys.executable, "-c", program], text=True).split("\n")[
        :2
    ]
    assert names.split() == ["controller", "large", "products", "small", "sums"]
    assert loaded == ""
    for model in known():
        assert model.meaning
        assert model.parameters > 100_000
        assert model.price.rates[0].output > 0


def test_the_listed_prices_set_a_controller_apart_from_its_experts() -> None:
    prices = {model.name: model.output_per_million for model in known()}
    assert prices["controller"] < prices["small"] < prices["large"]


def test_a_model_answers_and_costs_what_its_list_says(folder: Path) -> None:
    settings = EmbeddedSettings(model="large", folder=str(folder))
    [done] = answers(settings, ask("a=4;a?", max_tokens=20, top_logprobs=2))
    assert done.model == "large"
    assert done.usage.input_tokens == len("low:a=4;a?"), "messages are joined, a symbol a token"
    assert len(done.logprobs) == done.usage.output_tokens
    assert done.cost_nano == 10_000 * done.usage.input_tokens + 40_000 * done.usage.output_tokens
    largest = settings.open(PriceTable()).largest_cost_nano(ask("a=4;a?", max_tokens=20))
    assert done.cost_nano <= largest


def test_models_differ_and_sample(folder: Path) -> None:
    wanted: dict[str, Any] = {"max_tokens": 20, "temperature": 1.0}
    prompts = [ask("a=4;a?", seed=seed, **wanted) for seed in (1, 1, 2)]
    one, same, other = answers(EmbeddedSettings(model="small", folder=str(folder)), *prompts)
    assert one.text == same.text != other.text
    [large] = answers(EmbeddedSettings(model="large", folder=str(folder)), prompts[0])
    assert large.text != one.text


def test_the_users_own_price_comes_first(folder: Path) -> None:
    settings = EmbeddedSettings(model="small", folder=str(folder))
    own = TokenPrice((Rates(Decimal(7), Decimal(8)),))
    assert settings.price(PriceTable({"small": own})) == own
    assert settings.price(PriceTable({"large": own})) == find("small", folder).price


def test_an_unknown_name_is_answered_with_those_there_are(folder: Path) -> None:
    with pytest.raises(UnknownNameError, match=r"'smal'; did you mean 'small'\? Known: large, sma"):
        find("smal", folder)
    tables = {"models": {"base": {"provider": "embedded", "model": "gpt-4o"}}}
    with pytest.raises(ConfigError) as caught:
        models_from(tables, "job.toml")
    assert str(caught.value) == (
        "job.toml, models.base: unknown embedded model 'gpt-4o'. "
        "Known: controller, large, products, small, sums"
    )


def test_a_folder_without_models_is_the_users_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is no list of embedded models"):
        known(tmp_path)
    (tmp_path / "models.json").write_text('[{"name": "small"}]')
    with pytest.raises(InputError, match="missing required field `meaning`"):
        known(tmp_path / ".." / tmp_path.name)


def test_a_listed_model_without_weights_is_said(tmp_path: Path, folder: Path) -> None:
    (tmp_path / "models.json").write_bytes((folder / "models.json").read_bytes())
    with pytest.raises(InputError, match="small' cannot be loaded"):
        EmbeddedSettings(model="small", folder=str(tmp_path)).open(PriceTable())

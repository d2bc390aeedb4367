"""Models by name alone: `openai/gpt-4.1-nano`, `http://localhost:8000/v1#llama`, `gpt-4o`.

A provider's key comes from its usual environment variable; no file is needed. All are asked through
their OpenAI-compatible endpoints.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

from farthing.errors import InputError, UnknownNameError
from farthing.models.config import ModelsConfig, ModelSection, at_effort
from farthing.models.openai_compatible import OpenAISettings
from farthing.models.prices import Price, PriceTable
from farthing.models.retry import RetryPolicy
from farthing.models.thinking import split_name


@dataclass(frozen=True)
class Provider:
    """Who sells models behind an OpenAI-compatible endpoint."""

    url: str
    keys: tuple[str, ...]
    """Environment variables that may hold the key; the first that is set counts."""
    prices: str
    """Its name in `genai-prices`."""
    limit_name: Literal["max_completion_tokens", "max_tokens"] = "max_tokens"
    cheap: tuple[str, ...] = ()
    """Models of it that are worth a try in place of an expensive one."""

    @property
    def key_env(self) -> str:
        """The variable that holds the key; the usual one where none does."""
        return next((name for name in self.keys if os.environ.get(name)), self.keys[0])

    @property
    def has_key(self) -> bool:
        """Whether a key is there."""
        return bool(os.environ.get(self.key_env))


PROVIDERS: Mapping[str, Provider] = {
    "openai": Provider(
        "https://api.openai.com/v1",
        ("OPENAI_API_KEY",),
        "openai",
        "max_completion_tokens",
        ("gpt-4.1-nano", "gpt-4.1-mini"),
    ),
    "anthropic": Provider(
        "https://api.anthropic.com/v1",
        ("ANTHROPIC_API_KEY",),
        "anthropic",
        cheap=("claude-haiku-4-5", "claude-3-5-haiku-latest"),
    ),
    "gemini": Provider(
        "https://generativelanguage.googleapis.com/v1beta/openai",
        ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        "google",
        cheap=("gemini-2.5-flash-lite", "gemini-2.5-flash"),
    ),
    "mistral": Provider(
        "https://api.mistral.ai/v1",
        ("MISTRAL_API_KEY",),
        "mistral",
        cheap=("mistral-small-latest",),
    ),
    "groq": Provider(
        "https://api.groq.com/openai/v1",
        ("GROQ_API_KEY",),
        "groq",
        cheap=("llama-3.1-8b-instant",),
    ),
    "deepseek": Provider(
        "https://api.deepseek.com/v1", ("DEEPSEEK_API_KEY",), "deepseek", cheap=("deepseek-chat",)
    ),
    "openrouter": Provider("https://openrouter.ai/api/v1", ("OPENROUTER_API_KEY",), "openrouter"),
    "together": Provider("https://api.together.xyz/v1", ("TOGETHER_API_KEY",), "together"),
    "fireworks": Provider(
        "https://api.fireworks.ai/inference/v1", ("FIREWORKS_API_KEY",), "fireworks"
    ),
    "cerebras": Provider("https://api.cerebras.ai/v1", ("CEREBRAS_API_KEY",), "cerebras"),
    "xai": Provider("https://api.x.ai/v1", ("XAI_API_KEY",), "x-ai"),
}
"""By the name that goes before a model's, as any-llm and LiteLLM have it."""
_ALSO = {"google": "gemini", "x-ai": "xai", "together_ai": "together", "fireworks_ai": "fireworks"}


def settings_of(name: str) -> OpenAISettings:
    """Return how a model is reached, by `PROVIDER/MODEL`, `URL#MODEL`, or a name of one seller.

    With `@EFFORT` behind it, or a budget in tokens, it thinks so long.

    >>> settings_of("http://localhost:8000/v1#llama").model
    'llama'
    >>> settings_of("deepseek/deepseek-chat@low").reasoning_effort
    'low'
    """
    whole, said = split_name(name)
    if said is None:
        return _reached(name)
    try:
        return at_effort(_reached(whole), said)
    except InputError as problem:
        raise InputError(f"{name}: {problem}") from None


def _reached(name: str) -> OpenAISettings:
    if name.startswith(("http://", "https://")):
        url, _, model = name.partition("#")
        if not model:
            raise InputError(f"{name}: says no model; write {name}#MODEL")
        try:
            return OpenAISettings(model=model, url=url)
        except ValueError as problem:
            raise InputError(f"{name}: {problem}") from None
    seller, slash, model = name.partition("/")
    provider = _ALSO.get(seller, seller)
    if not (slash and provider in PROVIDERS):
        found = seller_of(name)
        if found is None:
            raise UnknownNameError("model", name, _known())
        provider, model = found, name
    one = PROVIDERS[provider]
    return OpenAISettings(
        model=model,
        url=one.url,
        key_env=one.key_env,
        price_provider=one.prices,
        limit_name=one.limit_name,
    )


def seller_of(model: str) -> str | None:
    """Return the provider whose model bears a name; None where no price list has it.

    >>> seller_of("gpt-4o"), seller_of("my-own")
    ('openai', None)
    """
    from genai_prices import Usage, calc_price  # noqa: PLC0415 - its table takes long to load

    try:
        sold_by = calc_price(Usage(input_tokens=1, output_tokens=1), model).provider.id
    except LookupError:
        return None
    return next((name for name, one in PROVIDERS.items() if one.prices == sold_by), None)


def models_named(names: Sequence[str], prices: Mapping[str, Price]) -> ModelsConfig:
    """Return models by name as a configuration has them, each in a section of its own name.

    A model that is named with an effort has it in the name of its section, as `o4-mini@low`.

    Raises:
        InputError: a name is unknown or given twice, or a key or a price is missing.
    """
    sections: dict[str, ModelSection] = {}
    for name in names:
        settings = settings_of(name)
        if settings.key_env is not None and not os.environ.get(settings.key_env):
            raise InputError(
                f"{name}: needs a key, and the environment variable {settings.key_env} holds none; "
                f"export {settings.key_env}=..."
            )
        effort = split_name(name)[1]
        role = settings.model if effort is None else f"{settings.model}@{effort}"
        if role in sections:
            raise InputError(f"{role}: is named twice; name each model once")
        if settings.price(PriceTable(prices)) is None:
            raise InputError(
                f"{name}: nothing says what {settings.model} costs; give --price "
                f"{settings.model}=IN,OUT, in USD per million tokens (0,0 for one of your own)"
            )
        sections[role] = ModelSection(settings, None, RetryPolicy())
    return ModelsConfig(sections, {}, PriceTable(prices))


def hosts(config: ModelsConfig) -> list[str]:
    """Return the hosts that would receive what is sent, each once."""
    found = [str(getattr(section.settings, "url", "")) for section in config.sections.values()]
    return list(dict.fromkeys(urlsplit(url).netloc for url in found))


def cheaper_models(than: Price | None, tokens: tuple[int, int], most: int = 2) -> list[str]:
    """Return a few models that cost less for a request; those with a key at hand first.

    Args:
        than: what is paid today; None: nobody knows.
        tokens: input and output tokens of a typical request.
        most: how many.
    """
    from farthing.models.base import Usage  # noqa: PLC0415 - only here

    usage = Usage(*tokens)
    limit = None if than is None else than.cost_nano(usage, 0.0) / 2
    found: list[tuple[bool, int, str]] = []
    for seller, one in PROVIDERS.items():
        for model in one.cheap:
            price = PriceTable().find(model, provider=one.prices)
            if price is None:
                continue
            nano = price.cost_nano(usage, 0.0)
            if limit is None or nano <= limit:
                found.append((not one.has_key, nano, f"{seller}/{model}"))
    return [name for _, _, name in sorted(found)[:most]]


def missing_keys(names: Iterable[str]) -> tuple[str, ...]:
    """Return the environment variables that models of providers need, and that hold no key."""
    sellers = (PROVIDERS.get(name.partition("/")[0]) for name in names)
    return tuple(dict.fromkeys(one.key_env for one in sellers if one and not one.has_key))


def _known() -> Iterable[str]:
    from genai_prices.data_snapshot import get_snapshot  # noqa: PLC0415 - as above

    ours = {one.prices: name for name, one in PROVIDERS.items()}
    for provider in get_snapshot().providers:
        if provider.id in ours:
            yield from (f"{ours[provider.id]}/{model.id}" for model in provider.models)

"""Models from a configuration file.

    [models.base]
    provider = "openai-compatible"
    model = "gpt-4o-mini"
    url = "https://api.openai.com/v1"
    key_env = "OPENAI_API_KEY"
    limits = "openai"

    [limits.openai]
    requests_per_minute = 500
    concurrent = 64

    [prices]
    "my-model" = { input_per_million = 0.15, output_per_million = 0.60 }

A name such as `base@low` stands for the section `base` with another effort, or with a budget in
tokens (`base@4096`), wherever a file names a model; see `thinking.py`.

A provider is registered under `farthing.models`: a msgspec struct of its settings, with a method
`open(prices)` that returns the model. Its class variable `paths` may name the fields that are
paths; what such a field names is looked for beside the file first, but for what `carried` names.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Protocol, TypeVar

import msgspec

from farthing import plugins
from farthing.errors import ConfigError, InputError, MissingExtraError
from farthing.models.adaptive import Gate, Noticed
from farthing.models.base import Model
from farthing.models.prices import Price, PriceTable, Rates, SecondPrice, TokenPrice
from farthing.models.rate_limit import Limited, RateLimiter, RateLimits
from farthing.models.retry import Retrying, RetryPolicy
from farthing.models.thinking import split_name
from farthing.models.toml import convert, read_toml

Dollars = Annotated[float, msgspec.Meta(ge=0)]


class ModelSettings(Protocol):
    """What a provider registers."""

    @property
    def model(self) -> str:
        """Name of the model, as prices and traces call it."""
        ...

    def price(self, prices: PriceTable) -> Price | None:
        """Return what the model costs; None where nothing says so."""
        ...

    def open(self, prices: PriceTable) -> Model:
        """Return the model; InputError says what is amiss with its settings."""
        ...


Settings = TypeVar("Settings", bound=ModelSettings)


@dataclass(frozen=True)
class ModelSection:
    """One section `[models.NAME]`."""

    settings: ModelSettings
    limits: str | None
    """Name of the section `[limits.NAME]` that it shares with others at the same endpoint."""
    patience: RetryPolicy
    written: Mapping[str, str] = field(default_factory=dict)
    """Paths as the file has them, where the settings say where that is on this machine."""


@dataclass(frozen=True)
class ModelsConfig:
    """All models of a configuration."""

    sections: Mapping[str, ModelSection]
    limits: Mapping[str, RateLimits]
    prices: PriceTable
    file: str = ""
    """Its name, for messages."""

    def admissions(self, *, workers: int = 1) -> dict[str, RateLimiter]:
        """Return this process's share of each limit, by name; whoever is to keep it takes it."""
        return {name: RateLimiter(limits.share(workers)) for name, limits in self.limits.items()}

    def open(
        self,
        *,
        workers: int = 1,
        admissions: Mapping[str, RateLimiter] | None = None,
        gate: Gate | None = None,
    ) -> dict[str, Model]:
        """Open every model: retries around its limits around the provider.

        The limits are shared by workers; `admissions` are given where others keep them as well. A
        gate learns from each try how many calls the endpoints take at once.
        """
        shared = self.admissions(workers=workers) if admissions is None else admissions
        models: dict[str, Model] = {}
        for name, section in self.sections.items():
            with self.said_of(name):
                model = section.settings.open(self.prices)
            if gate is not None:
                model = Noticed(model, gate)
            if section.limits is not None:
                model = Limited(model, shared[section.limits], section.patience.asked_s)
            models[name] = Retrying(model, section.patience)
        return models

    def with_efforts(self, names: Iterable[str]) -> "ModelsConfig":
        """Return the models with a section for each of these names that is another one's effort.

        Raises:
            ConfigError: the model's provider has no such effort or budget.
        """
        sections = dict(self.sections)
        for name in names:
            model, said = split_name(name)
            if name not in sections and said is not None and model in sections:
                with self.said_of(name):
                    settings = at_effort(sections[model].settings, said)
                sections[name] = replace(sections[model], settings=settings)
        return replace(self, sections=sections)

    @contextmanager
    def said_of(self, name: str) -> Iterator[None]:
        """Say of what is amiss with a model which section of which file it is."""
        try:
            yield
        except MissingExtraError:
            raise
        except InputError as error:
            if not self.file:
                raise
            raise ConfigError(self.file, f"models.{name}", str(error)) from None


def at_effort(settings: Settings, said: str | int) -> Settings:
    """Return settings of a model that is to think so long: an effort, or a budget in tokens.

    Raises:
        InputError: its provider has no such thing.
    """
    given: dict[str, Any] = msgspec.structs.asdict(settings)  # type: ignore[arg-type]
    if "reasoning_effort" not in given:
        raise InputError("has no efforts: only models at an endpoint do")
    effort, budget = (said, given["thinking_budget"]) if isinstance(said, str) else (None, said)
    changed = {"reasoning_effort": effort, "thinking_budget": budget}
    try:
        return type(settings)(**(given | changed))
    except ValueError as problem:
        raise InputError(str(problem)) from None


def read_models(file: Path) -> ModelsConfig:
    """Read the models of a TOML file; other sections are somebody else's."""
    return models_from(read_toml(file), str(file), file.absolute().parent)


def models_from(tables: Mapping[str, Any], file: str, folder: Path | None = None) -> ModelsConfig:
    """Read the tables `models`, `limits` and `prices` of a configuration file.

    Paths are relative to the folder; None: they stay as they are.
    """
    limits = {
        name: convert(table, RateLimits, file, f"limits.{name}")
        for name, table in _tables(tables, "limits", file)
    }
    prices = {
        name: convert(table, _PriceLine, file, f'prices."{name}"').price()
        for name, table in _tables(tables, "prices", file)
    }
    sections = {
        name: _section(table, limits, (file, f"models.{name}"), folder)
        for name, table in _tables(tables, "models", file)
    }
    return ModelsConfig(sections, limits, PriceTable(prices), file)


class _PriceLine(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    input_per_million: Dollars | None = None
    output_per_million: Dollars | None = None
    cached_input_per_million: Dollars | None = None
    cache_write_per_million: Dollars | None = None
    cache_write_hour_per_million: Dollars | None = None
    audio_input_per_million: Dollars | None = None
    audio_output_per_million: Dollars | None = None
    per_request: Dollars = 0.0
    per_tool_use: Dollars | None = None
    per_second: Dollars | None = None

    def __post_init__(self) -> None:
        tokens = (self.input_per_million, self.output_per_million)
        by_token = None not in tokens and self.per_second is None
        cache = (self.cached_input_per_million, self.cache_write_per_million)
        more = (self.cache_write_hour_per_million, self.per_tool_use)
        none = {*tokens, *cache, *more, *self._sound} == {None} and not self.per_request
        by_time = none and self.per_second is not None
        if not by_token and not by_time:
            raise ValueError(
                "give input_per_million and output_per_million, which may be 0 beside per_request, "
                "or per_second alone"
            )

    def price(self) -> Price:
        if self.per_second is not None:
            return SecondPrice(_exact(self.per_second))
        sound = zip(("audio_input", "audio_output"), self._sound, strict=True)
        rates = Rates(
            input=_exact(self.input_per_million or 0),
            output=_exact(self.output_per_million or 0),
            cached_input=_maybe(self.cached_input_per_million),
            cache_write=_maybe(self.cache_write_per_million),
            cache_write_hour=_maybe(self.cache_write_hour_per_million),
            more=tuple((name, _exact(usd)) for name, usd in sound if usd is not None),
        )
        unasked = rates.cache_write is not None
        request, use = _exact(self.per_request), _maybe(self.per_tool_use)
        return TokenPrice((rates,), request, writes_unasked=unasked, use=use)

    @property
    def _sound(self) -> tuple[float | None, float | None]:
        return self.audio_input_per_million, self.audio_output_per_million


class _Common(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What every section has, whoever provides the model."""

    provider: str
    limits: str | None = None
    retries: RetryPolicy = RetryPolicy()


def _section(
    table: Any, limits: Mapping[str, RateLimits], place: tuple[str, str], folder: Path | None
) -> ModelSection:
    file, field = place
    common = {name: table[name] for name in _Common.__struct_fields__ if name in table}
    settings = {name: value for name, value in table.items() if name not in common}
    section = convert(common, _Common, file, field)
    if section.limits is not None and section.limits not in limits:
        problem = f"is '{section.limits}', and there is no section [limits.{section.limits}]"
        raise ConfigError(file, f"{field}.limits", problem)
    try:
        kind = plugins.load("models", section.provider)
    except InputError as error:
        raise ConfigError(file, f"{field}.provider", str(error)) from None
    written = _beside(settings, kind, folder)
    placed = settings | {name: str(folder / path) for name, path in written.items() if folder}
    converted = convert(placed, kind, file, field)
    return ModelSection(converted, section.limits, section.retries, written)


def _beside(settings: Mapping[str, Any], kind: type, folder: Path | None) -> dict[str, str]:
    """Return the fields that say what lies in a folder; what does not is a name on the Hub, say."""
    names, carried = getattr(kind, "paths", ()), getattr(kind, "carried", ())
    given = {name: settings[name] for name in names if isinstance(settings.get(name), str)}
    return {
        name: path
        for name, path in given.items()
        if folder is not None and path not in carried and (folder / path).exists()
    }


def _tables(tables: Mapping[str, Any], name: str, file: str) -> list[tuple[str, Any]]:
    found = tables.get(name, {})
    if not isinstance(found, Mapping):
        raise ConfigError(file, name, f"must be a table, such as [{name}.base]")
    for key, table in found.items():
        if not isinstance(table, Mapping):
            raise ConfigError(file, f"{name}.{key}", "must be a table")
    return list(found.items())


def _maybe(usd: float | None) -> Decimal | None:
    return None if usd is None else _exact(usd)


def _exact(usd: float) -> Decimal:
    return Decimal(repr(float(usd)))

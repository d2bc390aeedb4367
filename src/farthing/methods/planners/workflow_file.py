"""Read a workflow from a TOML file: models with prices and speeds, and the parts.

Of each part: what it comes after, the chance of each model that a sample is right, its least and
most tokens, and which numbers of samples may be drawn side by side. `docs/planners.md` has one.
"""

from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any

import msgspec

from farthing.errors import ConfigError, InputError
from farthing.methods.planners.parts import Choice, Part
from farthing.methods.planners.workflow import Workflow
from farthing.money import nano_from_usd

MILLION = 1_000_000
Price = Annotated[float, msgspec.Meta(ge=0)]


class _Model(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    input_per_million: Price = 0.0
    output_per_million: Price
    tokens_per_second: Annotated[float, msgspec.Meta(gt=0)]
    latency_s: Annotated[float, msgspec.Meta(ge=0)] = 0.0


class _Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: Annotated[str, msgspec.Meta(min_length=1)]
    success: dict[str, Annotated[float, msgspec.Meta(ge=0, le=1)]]
    tokens: dict[str, tuple[int, int]]
    samples: tuple[Annotated[int, msgspec.Meta(ge=1, le=64)], ...] = (1,)
    input_tokens: Annotated[int, msgspec.Meta(ge=0)] = 0
    after: tuple[str, ...] = ()


class _File(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    models: dict[str, _Model]
    parts: tuple[_Part, ...]


def read_workflow(path: Path) -> Workflow:
    """Read a workflow.

    Raises:
        ConfigError: the file cannot be read, or says what is no workflow.
    """
    try:
        text = path.read_text(encoding="utf-8")
        found = msgspec.toml.decode(text, type=_File)
    except OSError as error:
        raise ConfigError(str(path), "file", (error.strerror or str(error)).lower()) from None
    except msgspec.ValidationError as error:
        problem, _, where = str(error).partition(" - at `$.")
        raise ConfigError(str(path), where.rstrip("`") or "file", problem) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConfigError(str(path), "file", f"is not TOML: {error}") from None
    return _workflow(found, str(path))


def _workflow(found: _File, path: str) -> Workflow:
    places: dict[str, int] = {}
    parts = []
    for at, part in enumerate(found.parts):
        where = f"parts[{at}]"
        for before in part.after:
            if before not in places:
                problem = f"no part '{before}' stands above '{part.name}'; put it there"
                raise ConfigError(path, f"{where}.after", problem)
        if part.name in places:
            raise ConfigError(path, f"{where}.name", f"'{part.name}' is there twice; rename one")
        if not part.success:
            raise ConfigError(path, f"{where}.success", "names no model; give at least one")
        parts.append(_part(part, found, path, where, places))
        places[part.name] = at
    try:
        return Workflow(tuple(parts))
    except InputError as error:
        raise ConfigError(path, "parts", str(error)) from None


def _part(part: _Part, found: _File, path: str, where: str, places: dict[str, int]) -> Part:
    choices = []
    for model, success in part.success.items():
        if model not in found.models:
            known = ", ".join(found.models) or "none"
            raise ConfigError(path, f"{where}.success", f"unknown model '{model}'; known: {known}")
        if model not in part.tokens:
            problem = f"says nothing of '{model}'; give its least and most tokens"
            raise ConfigError(path, f"{where}.tokens", problem)
        told = found.models[model]
        figures: dict[str, Any] = {
            "tokens": part.tokens[model],
            "input_nano": part.input_tokens * _token_nano(told.input_per_million),
            "token_nano": _token_nano(told.output_per_million),
            "latency_s": told.latency_s,
            "tokens_per_s": told.tokens_per_second,
        }
        for samples in sorted(set(part.samples)):
            try:
                choices.append(Choice(model, success, samples=samples, **figures))
            except InputError as error:
                raise ConfigError(path, where, str(error)) from None
    return Part(part.name, tuple(choices), tuple(places[before] for before in part.after))


def _token_nano(per_million: float) -> int:
    return nano_from_usd(Decimal(repr(per_million)) / MILLION)

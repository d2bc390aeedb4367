"""The configuration that serves a bundle out of a try: its models, its task, nothing more."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from farthing.bundle.base import Bundle
from farthing.errors import InputError
from farthing.models.openai_compatible import OpenAISettings
from farthing.models.thinking import split_name
from farthing.runtime.tried import Tried

_HEAD = """# Serves {bundle}: farthing serve {bundle}
# It is yours to edit; docs/how-to/gateway.md says what else may stand here.
"""


def config_path(bundle: Path) -> Path:
    """Return where the configuration of a bundle is: beside its folder.

    >>> str(config_path(Path("out/tickets")))
    'out/tickets.serve.toml'
    """
    return bundle.with_name(f"{bundle.name}.serve.toml")


def config_file(given: Path) -> Path:
    """Return the file that `farthing serve` reads: of a bundle the one beside it."""
    if not given.is_dir():
        return given
    where = given if given.name.strip(".") else given.resolve()
    beside = config_path(where) if where.name else where / "serve.toml"
    if not beside.is_file():
        raise InputError(
            f"{given}: is a folder, and {beside} does not say how a bundle's models are reached; "
            "`farthing try` writes it, or name a configuration of your own"
        )
    return beside


def pool_of(bundle: Bundle) -> tuple[str, ...]:
    """Return the models that a bundle may ask, by their roles."""
    origin = bundle.origin
    return origin.roles if origin.is_pool else tuple(origin.models[0].split(" -> "))


def write_config(tried: Tried, bundle: Bundle, folder: Path) -> str | None:
    """Write the configuration that serves a bundle beside it, or return why none can."""
    if problem := why_not(tried, bundle):
        return problem
    config_path(folder).write_text(config_text(tried, bundle, folder), encoding="utf-8")
    return None


def why_not(tried: Tried, bundle: Bundle) -> str | None:
    """Say why a gateway cannot serve a bundle as it was proved; None where it can."""
    lacks = [role for role in (*pool_of(bundle), tried.reference) if role not in tried.models]
    if lacks:
        return (
            f"nobody said how {lacks[0]} is reached; the same command with --reference "
            "PROVIDER/MODEL, or URL#MODEL, says it, and pays for nothing twice"
        )
    return unlike(tried)


def unlike(tried: Tried) -> str | None:
    """Say why the requests of a try are not one task that a gateway can serve; None: they are."""
    if tried.system is None:
        return "the requests have several system prompts; try one kind of request at a time"
    if not tried.single:
        return "some requests have a history, and a gateway decides about single questions"
    if not tried.alike:
        return "the requests were sent with several temperatures, limits or stop texts"
    return None


def config_text(tried: Tried, bundle: Bundle, folder: Path) -> str:
    """Return the configuration that serves a bundle of a try; `folder` is where the bundle is."""
    pool = pool_of(bundle)
    roles = tuple(dict.fromkeys((*pool, tried.reference)))
    # Clients name the model as they did; those that name its effort are answered as they ask.
    called = (split_name(name)[0] for name in (tried.reference, tried.logged) if name)
    named = list(dict.fromkeys(called))
    task: dict[str, Any] = {
        "pool": list(pool),
        "task": tried.task,
        "system": tried.system or "",
        "max_tokens": tried.max_tokens,
        "bundle": folder.name,
        "answers_for": list(dict.fromkeys([*named, tried.reference])),
    }
    if tried.temperature is not None:
        task["temperature"] = float(tried.temperature)
    serve = {
        "database": f"{folder.name}.serve.db",
        "strongest": tried.reference,
        "keys": False,
    }
    parts = [_HEAD.format(bundle=folder.name), _table("serve", serve)]
    parts += [_table(f"models.{_quoted(role)}", _settings(tried.models[role])) for role in roles]
    plain = replace(tried.models[tried.reference], reasoning_effort=None, thinking_budget=None)
    parts += [
        _table(f"models.{_quoted(name)}", _settings(plain)) for name in named if name not in roles
    ]
    models = dict.fromkeys(tried.models[role].model for role in roles)
    if prices := {name: tried.prices[name] for name in models if name in tried.prices}:
        lines = [f"{_quoted(name)} = {_inline(each)}" for name, each in prices.items()]
        parts.append("[prices]\n" + "\n".join(lines) + "\n")
    return "\n".join([*parts, _table("policies.cheaper", task)])


def _settings(settings: OpenAISettings) -> dict[str, Any]:
    said = {
        "provider": "openai-compatible",
        "model": settings.model,
        "url": settings.url,
        "key_env": settings.key_env,
        "price_provider": settings.price_provider,
        "limit_name": settings.limit_name,
        "reasoning_effort": settings.reasoning_effort,
        "thinking_budget": settings.thinking_budget,
    }
    return {name: value for name, value in said.items() if value is not None}


def _table(name: str, values: dict[str, Any]) -> str:
    return f"[{name}]\n" + "".join(f"{key} = {_value(value)}\n" for key, value in values.items())


def _inline(values: dict[str, float]) -> str:
    return "{ " + ", ".join(f"{name} = {value}" for name, value in values.items()) + " }"


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, Sequence):
        return "[" + ", ".join(map(_value, value)) + "]"
    return str(value)


def _quoted(text: str) -> str:
    """Return a text as TOML has it: its escapes are JSON's, but for the delete character."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")

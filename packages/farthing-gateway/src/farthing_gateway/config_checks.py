"""Whether the sections of a gateway's configuration fit one another; all that is wrong at once."""

from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from typing import TYPE_CHECKING

from farthing import plugins
from farthing.errors import ConfigError, InputError
from farthing.models.thinking import split_name
from farthing_gateway.config_sections import ALL, AUDIT, PREFIX, SHADOW, PolicySection

if TYPE_CHECKING:
    from farthing_gateway.config import ServeConfig

_OWNERS = ("key:", "team:", "model:", "policy:")
_NOT_A_CONTROLLERS = (
    *("task", "max_tokens", "bundle", "modes", "pacing", "trial", "audit", "explore"),
)
"""Fields of a policy that mean nothing where a controller decides."""
_Wrong = tuple[str, str]
"""A field, and what is wrong with it."""


def check(config: "ServeConfig") -> None:
    """Refuse sections that do not fit one another."""
    found = list(dict.fromkeys(_wrong(config)))
    if found:
        (field, problem), *others = found
        also = "".join(f"; and {other}: {said}" for other, said in others)
        raise ConfigError(config.file, field, problem + also)


def _wrong(config: "ServeConfig") -> Iterator[_Wrong]:
    models = config.models.sections
    if not models:
        yield "models", "is missing; give a section [models.NAME] or more"
        return
    for name in models:
        if name.startswith(PREFIX):
            yield f"models.{name}", f"begins with {PREFIX}, as policies do"
    yield from _no_model(models, "serve.strongest", [config.serve.strongest])
    for model, others in config.serve.fallbacks.items():
        yield from _no_model(models, f"serve.fallbacks.{model}", [model, *others])
    if config.serve.over_budget == "shorten" and config.serve.default_max_output is None:
        yield from _of_shortening(config)
    for name, policy in config.policies.items():
        yield from _of_policy(models, name, policy)
    for at, budget in enumerate(config.budgets):
        yield from _of_owner(config, f"budgets[{at}].of", budget.of)


def _of_shortening(config: "ServeConfig") -> Iterator[_Wrong]:
    """A limit that is sent must be one that the model takes."""
    models = config.models.sections
    for name, section in models.items():
        model = split_name(name)[0]
        is_effort = model != name and model in models  # with the settings of its model
        if not is_effort and getattr(section.settings, "max_output", 0) is None:
            said = 'is missing, and over_budget = "shorten" needs it: how many tokens it writes'
            yield f"models.{name}.max_output", f"{said} at most, as its provider says"


def _of_policy(models: Iterable[str], name: str, policy: PolicySection) -> Iterator[_Wrong]:
    field = f"policies.{name}"
    if not name.isprintable() or not name or any(one.isspace() for one in name):
        yield field, "is no name that clients can ask for; give one without spaces"
    if name in {SHADOW, AUDIT}:
        yield field, "is what background calls are charged to; rename it"
    yield from _no_model(models, f"{field}.pool", policy.pool)
    yield from _no_model(models, f"{field}.trial", policy.trial)
    yield from _no_model(models, f"{field}.answers_for", policy.answers_for)
    yield from _of_bundles(field, policy)
    yield from _of_plugin(field, "tasks", policy.task)
    if policy.pacing is not None:
        yield from _of_plugin(f"{field}.pacing", "pacers", policy.pacing.pacer)


def _of_plugin(field: str, group: str, name: str) -> Iterator[_Wrong]:
    try:
        plugins.load(group, name)
    except InputError as error:
        yield field, str(error)


def _of_bundles(field: str, policy: PolicySection) -> Iterator[_Wrong]:
    if bool(policy.pool) + (policy.job is not None) + (policy.controller is not None) != 1:
        yield field, "give either a pool of models, a job or a controller"
    if policy.controller is not None:
        usual = PolicySection()
        for name in _NOT_A_CONTROLLERS:
            if getattr(policy, name) != getattr(usual, name):
                said = "means nothing beside a controller: its pool has the task, the modes and the"
                yield f"{field}.{name}", f"{said} longest reply, and it promises nothing"
        return
    if policy.bundle is not None and policy.modes:
        yield field, "give either a bundle or modes"
    if policy.job is not None and not policy.bundles:
        yield field, "lacks a bundle, which says who is asked when"
    if policy.pacing is not None and len(policy.bundles) < 2:
        yield f"{field}.pacing", "needs two modes or more to choose from"


def _of_owner(config: "ServeConfig", field: str, account: str) -> Iterator[_Wrong]:
    kind, _, name = account.partition(":")
    known = {
        "model": list(config.models.sections),
        "policy": [*config.policies, SHADOW, AUDIT],
    }.get(kind)
    if account != ALL and not account.startswith(_OWNERS):
        yield field, f"is '{account}'; write {ALL}, or one of {', '.join(_OWNERS)} and a name"
    elif known is not None and name not in known:
        yield field, f"is '{account}', and there is no {kind} '{name}'{_meant(name, known)}"


def _no_model(models: Iterable[str], field: str, names: Iterable[str]) -> Iterator[_Wrong]:
    known = list(models)
    for name in names:
        if name not in known:
            yield field, f"names '{name}', which is no model here{_meant(name, known)}"


def _meant(name: str, known: list[str]) -> str:
    close = get_close_matches(name, known, n=1)
    hint = f"; did you mean '{close[0]}'?" if close else ":"
    return f"{hint} there are {', '.join(known)}" if close else f"{hint} {', '.join(known)}"

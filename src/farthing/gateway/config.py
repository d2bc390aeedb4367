"""What a gateway serves, as a TOML file says it.

    [serve]
    database = "farthing.db"        # or postgresql://user@host/name
    strongest = "large"             # answers what no policy may; savings are counted against it

    [models.large]                  # as in a job: provider, model, url, key_env, limits
    provider = "openai-compatible"
    model = "gpt-4o"
    url = "https://api.openai.com/v1"

    [policies.support]              # clients call it farthing/support
    pool = ["small", "large"]       # from the cheapest
    system = "Classify the ticket."
    bundle = "bundles/support"      # none yet: the strongest answers, and the others are tried

    [[budgets]]
    of = "all"                      # or key:NAME, team:NAME, model:NAME, policy:NAME
    usd = 5.0
    per = "day"

Paths are relative to the file.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from farthing import plugins
from farthing.budgets.accounts.base import Limit
from farthing.errors import ConfigError, InputError
from farthing.gateway.sections import (
    ALL,
    PREFIX,
    BudgetSection,
    PageSection,
    PolicySection,
    RecordSection,
    ServeSection,
    WatchSection,
)
from farthing.models.config import ModelsConfig, models_from
from farthing.models.sections import convert, read_toml
from farthing.money import nano_from_usd

OWN_ACCOUNTS = frozenset({"shadow", "audit"})
"""What trials and audits are charged to, as if they were policies."""
_SECTIONS = frozenset(
    ("serve", "record", "watch", "page", "models", "limits", "prices", "policies", "budgets")
)
_OWNERS = ("key:", "team:", "model:", "policy:")


@dataclass(frozen=True)
class ServeConfig:
    """A gateway that was read and checked; nothing is opened yet."""

    file: str
    serve: ServeSection
    record: RecordSection | None
    """None: nothing is recorded."""
    page: PageSection
    watch: WatchSection
    models: ModelsConfig
    policies: Mapping[str, PolicySection]
    limits: tuple[Limit, ...]

    @property
    def has_page(self) -> bool:
        """Whether the administrator's page is served."""
        return self.page.enabled and self.serve.keys

    def remarks(self) -> list[str]:
        """Return what whoever starts it should know, a line each."""
        found = []
        serve = self.serve
        if not serve.keys and serve.host not in {"127.0.0.1", "::1", "localhost"}:
            found.append(
                f"warning: anybody who reaches {serve.host} can spend your money: no keys are "
                "needed (keys = true under [serve] wants them)"
            )
        if not self.limits:
            found.append("note: there is no budget; [[budgets]] sets one")
        for name, policy in self.policies.items():
            missing = [path for path in policy.bundles.values() if not Path(path).is_dir()]
            if missing or not policy.bundles:
                found.append(
                    f"note: {PREFIX}{name} has no bundle yet: {serve.strongest} answers, "
                    "and nothing is promised"
                )
        return found


def overridden(
    config: ServeConfig,
    *,
    host: str | None = None,
    port: int | None = None,
    workers: int | None = None,
) -> ServeConfig:
    """Return a configuration with another address or number of processes, where they are given."""
    given = {"host": host, "port": port, "workers": workers}
    changed = {name: value for name, value in given.items() if value is not None}
    return replace(config, serve=msgspec.structs.replace(config.serve, **changed))


def read_config(file: Path, *, record: bool = False) -> ServeConfig:
    """Read the configuration of a gateway; paths in it are relative to its folder.

    Args:
        file: the TOML file.
        record: whether to record traffic, also where the file has no section `[record]`.

    Raises:
        ConfigError: it cannot be read, or a field is missing, unknown or does not fit another.
    """
    tables, name = read_toml(file), str(file)
    for unknown in sorted(tables.keys() - _SECTIONS):
        raise ConfigError(name, unknown, f"is unknown; there are {', '.join(sorted(_SECTIONS))}")
    if "serve" not in tables:
        raise ConfigError(name, "serve", "is missing; give [serve] with database and strongest")
    folder = file.absolute().parent
    serve = convert(tables["serve"], ServeSection, name, "serve")
    recorded = "record" in tables or record
    config = ServeConfig(
        file=name,
        serve=msgspec.structs.replace(serve, database=placed_database(serve.database, folder)),
        record=convert(tables.get("record", {}), RecordSection, name, "record")
        if recorded
        else None,
        page=convert(tables.get("page", {}), PageSection, name, "page"),
        watch=convert(tables.get("watch", {}), WatchSection, name, "watch"),
        models=models_from(tables, name),
        policies={
            policy: _placed(convert(table, PolicySection, name, f"policies.{policy}"), folder)
            for policy, table in _tables(tables, name)
        },
        limits=tuple(
            limit
            for at, table in enumerate(tables.get("budgets", []))
            for limit in convert(table, BudgetSection, name, f"budgets[{at}]").limits()
        ),
    )
    paced = {policy: section.pacing for policy, section in config.policies.items()}
    own = [
        Limit(f"policy:{policy}", "usd", "day", nano_from_usd(section.usd_per_day))
        for policy, section in paced.items()
        if section is not None
    ]
    config = replace(config, limits=(*config.limits, *own))
    _check(config)
    return config


def placed_database(database: str, folder: Path) -> str:
    """Return where a database is: an address as it stands, a file from a folder on."""
    return database if "://" in database else str(folder / database)


def _tables(tables: Mapping[str, Any], file: str) -> list[tuple[str, Any]]:
    found = tables.get("policies", {})
    if not isinstance(found, Mapping):
        raise ConfigError(file, "policies", "must be a table, such as [policies.support]")
    return list(found.items())


def _placed(policy: PolicySection, folder: Path) -> PolicySection:
    def place(path: str | None) -> str | None:
        return None if path is None else str(folder / path)

    return msgspec.structs.replace(
        policy,
        job=place(policy.job),
        bundle=place(policy.bundle),
        modes={mode: str(folder / path) for mode, path in policy.modes.items()},
    )


def _check(config: ServeConfig) -> None:
    if not config.models.sections:
        raise ConfigError(config.file, "models", "is missing; give a section [models.NAME] or more")
    for name in config.models.sections:
        if name.startswith(PREFIX):
            raise ConfigError(
                config.file, f"models.{name}", f"begins with {PREFIX}, as policies do"
            )
    _check_model(config, "serve.strongest", config.serve.strongest)
    for model, others in config.serve.fallbacks.items():
        for one in (model, *others):
            _check_model(config, f"serve.fallbacks.{model}", one)
    for name, policy in config.policies.items():
        _check_policy(config, name, policy)
    for limit in config.limits:
        _check_owner(config, limit.account)


def _check_owner(config: ServeConfig, account: str) -> None:
    if account != ALL and not account.startswith(_OWNERS):
        problem = f"is '{account}'; write {ALL}, or one of {', '.join(_OWNERS)} and a name"
        raise ConfigError(config.file, "budgets.of", problem)


def _check_policy(config: ServeConfig, name: str, policy: PolicySection) -> None:
    field = f"policies.{name}"
    if name in OWN_ACCOUNTS:
        raise ConfigError(config.file, field, "is what background calls are charged to; rename it")
    for model in (*policy.pool, *policy.trial):
        _check_model(config, f"{field}.pool", model)
    for model in policy.answers_for:
        _check_model(config, f"{field}.answers_for", model)
    _check_bundles(config.file, field, policy)
    try:
        plugins.load("tasks", policy.task)
        if policy.pacing is not None:
            plugins.load("pacers", policy.pacing.pacer)
    except InputError as error:
        raise ConfigError(config.file, field, str(error)) from None


def _check_bundles(file: str, field: str, policy: PolicySection) -> None:
    if bool(policy.pool) == (policy.job is not None):
        raise ConfigError(file, field, "give either a pool of models or a job")
    if policy.bundle is not None and policy.modes:
        raise ConfigError(file, field, "give either a bundle or modes")
    if policy.job is not None and not policy.bundles:
        raise ConfigError(file, field, "lacks a bundle, which says who is asked when")
    if policy.pacing is not None and len(policy.bundles) < 2:
        raise ConfigError(file, f"{field}.pacing", "needs two modes or more to choose from")


def _check_model(config: ServeConfig, field: str, name: str) -> None:
    if name not in config.models.sections:
        problem = f"names '{name}', which is no model here: {', '.join(config.models.sections)}"
        raise ConfigError(config.file, field, problem)

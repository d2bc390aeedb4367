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

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from farthing.errors import ConfigError
from farthing.models.config import ModelsConfig, models_from
from farthing.models.toml import convert, read_toml
from farthing.money import nano_from_usd
from farthing_gateway.config_checks import check
from farthing_gateway.config_sections import (
    BudgetSection,
    PageSection,
    PolicySection,
    RecordSection,
    ServeSection,
    WatchSection,
)
from farthing_gateway.storage.ledger.base import Limit

_SECTIONS = frozenset(
    ("serve", "record", "watch", "page", "models", "limits", "prices", "policies", "budgets")
)


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
    budgets: tuple[BudgetSection, ...]

    @property
    def has_page(self) -> bool:
        """Whether the administrator's page is served."""
        return self.page.enabled and self.serve.keys

    @property
    def pid_file(self) -> Path | None:
        """Where `farthing gateway reload` finds the server; None: nowhere."""
        given = self.serve.pid_file
        return pid_file_beside(self.serve.database) if given is None else Path(given)

    @property
    def limits(self) -> tuple[Limit, ...]:
        """The limits of its budgets, and of policies whose day's money is paced."""
        paced = {policy: section.pacing for policy, section in self.policies.items()}
        own = [
            Limit(f"policy:{policy}", "usd", "day", nano_from_usd(section.usd_per_day))
            for policy, section in paced.items()
            if section is not None
        ]
        return (*(limit for one in self.budgets for limit in one.limits()), *own)


@dataclass(frozen=True)
class ConfigSource:
    """Where the configuration of a gateway is read, and what the command line says beside it."""

    file: Path
    record: bool
    host: str | None = None
    port: int | None = None
    workers: int | None = None

    def read(self) -> ServeConfig:
        """Return the configuration as the file has it now."""
        read = read_config(self.file, record=self.record)
        return overridden(read, host=self.host, port=self.port, workers=self.workers)


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
    """
    tables, name = read_toml(file), str(file)
    for unknown in sorted(tables.keys() - _SECTIONS):
        raise ConfigError(name, unknown, f"is unknown; there are {', '.join(sorted(_SECTIONS))}")
    if "serve" not in tables:
        raise ConfigError(name, "serve", "is missing; give [serve] with database and strongest")
    folder = file.absolute().parent
    serve = convert(tables["serve"], ServeSection, name, "serve")
    pid_file = None if serve.pid_file is None else str(folder / serve.pid_file)
    recorded = "record" in tables or record
    policies = {
        policy: _placed(convert(table, PolicySection, name, f"policies.{policy}"), folder)
        for policy, table in _tables(tables, name)
    }
    config = ServeConfig(
        file=name,
        serve=msgspec.structs.replace(
            serve, database=placed_database(serve.database, folder), pid_file=pid_file
        ),
        record=convert(tables.get("record", {}), RecordSection, name, "record")
        if recorded
        else None,
        page=convert(tables.get("page", {}), PageSection, name, "page"),
        watch=convert(tables.get("watch", {}), WatchSection, name, "watch"),
        models=models_from(tables, name).with_efforts(_named(serve, policies.values())),
        policies=policies,
        budgets=tuple(
            convert(table, BudgetSection, name, f"budgets[{at}]")
            for at, table in enumerate(tables.get("budgets", []))
        ),
    )
    check(config)
    return config


def _named(serve: ServeSection, policies: Iterable[PolicySection]) -> Iterator[str]:
    yield serve.strongest
    for model, others in serve.fallbacks.items():
        yield from (model, *others)
    for policy in policies:
        yield from (*policy.pool, *policy.trial, *policy.answers_for)


def placed_database(database: str, folder: Path) -> str:
    """Return where a database is: an address as it stands, a file from a folder on."""
    return database if "://" in database else str(folder / database)


def pid_file_beside(database: str) -> Path | None:
    """Return where the pid file of a gateway is by itself; None: it has none.

    >>> str(pid_file_beside("data/farthing.db")), pid_file_beside("postgresql://host/name")
    ('data/farthing.db.pid', None)
    """
    return None if "://" in database else Path(f"{database}.pid")


def _tables(tables: Mapping[str, Any], file: str) -> list[tuple[str, Any]]:
    found = tables.get("policies", {})
    if not isinstance(found, Mapping):
        raise ConfigError(file, "policies", "must be a table, such as [policies.support]")
    return list(found.items())


def _placed(policy: PolicySection, folder: Path) -> PolicySection:
    def place(path: str | None) -> str | None:
        return None if path is None else str(folder / path)

    named = policy.controller or ""
    is_path = named.endswith(".toml") or (folder / named).exists()  # else one that ships

    return msgspec.structs.replace(
        policy,
        job=place(policy.job),
        controller=place(policy.controller) if is_path else policy.controller,
        bundle=place(policy.bundle),
        modes={mode: str(folder / path) for mode, path in policy.modes.items()},
    )

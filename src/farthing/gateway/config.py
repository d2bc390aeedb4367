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
from typing import Annotated, Any, Literal

import msgspec

from farthing import plugins
from farthing.budgets.accounts.base import Limit
from farthing.budgets.accounts.periods import Period
from farthing.errors import ConfigError, InputError
from farthing.models.config import ModelsConfig, models_from
from farthing.models.sections import convert, read_toml
from farthing.money import nano_from_usd

PREFIX = "farthing/"
"""What clients write before a policy's name."""
ALL = "all"
"""The account that everything is charged to."""

Positive = Annotated[int, msgspec.Meta(ge=1)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
Seconds = Annotated[float, msgspec.Meta(gt=0)]
_OWNERS = ("key:", "team:", "model:", "policy:")


class ServeSection(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The section `[serve]`."""

    database: str
    """Keys, ledger and recorded traffic: a file, or the address of a PostgreSQL database."""
    strongest: str
    """The model that answers what no policy may answer."""
    host: str = "127.0.0.1"
    port: Annotated[int, msgspec.Meta(ge=0, le=65_535)] = 8080
    workers: Positive = 1
    keys: bool = True
    """Whether clients need a key of `farthing keys`; without, anybody who reaches it may ask."""
    default_max_output: Positive = 4096
    """Most output tokens of a reply, where a request names none."""
    most_body_bytes: Positive = 8 * 2**20
    deadline_s: Seconds = 600.0
    """Most seconds a request may take; it may ask for fewer."""
    lease_s: Seconds = 900.0
    """After so many seconds the money of a call that nobody reports on is settled."""
    drain_s: Seconds = 30.0
    """Seconds that requests under way are given when the server is asked to end."""
    fallbacks: dict[str, list[str]] = {}
    """Model to those that are asked in turn where it fails."""


class RecordSection(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The section `[record]`: what is kept of the traffic."""

    prompts: bool = True
    """Whether texts are kept; without them only figures are."""
    days: Positive = 30
    """After so many days recorded traffic is deleted."""
    redact: str | None = None
    """`module:function` that takes out of each text what must not be kept."""
    share: Share = 0.1
    """Share of the conversations on which a policy's other models are asked as well."""
    usd_per_day: Annotated[float, msgspec.Meta(ge=0)] = 1.0
    """What that may cost a day."""
    at_once: Positive = 4
    """Such calls under way at any moment; what comes beyond is dropped."""


class PolicySection(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One section `[policies.NAME]`: a task, who may answer it, and who decides."""

    pool: list[str] = []
    """The models, each asked as the client asked."""
    job: str | None = None
    """In place of a pool: the job whose agents answer, as `farthing collect` ran it."""
    task: str = "text"
    """How answers are read and compared."""
    system: str = ""
    """The system prompt of the task's requests; those with another one are not part of it."""
    max_tokens: Positive | None = None
    """Most output tokens of its requests."""
    temperature: Annotated[float, msgspec.Meta(ge=0, le=2)] | None = None
    """Of its requests; None: as the model has it."""
    bundle: str | None = None
    """Folder of the bundle that decides."""
    modes: dict[str, str] = {}
    """In place of one bundle: name of a mode to its folder, the cheapest first."""
    answers_for: list[str] = []
    """Models of whose requests it takes those of its task, so that clients change nothing."""
    outside: Literal["pass", "refuse"] = "pass"
    """What becomes of requests outside the task: the strongest model answers, or nobody."""

    @property
    def bundles(self) -> Mapping[str, str]:
        """Mode to the folder of its bundle; a single bundle's mode is `default`."""
        return self.modes or ({} if self.bundle is None else {"default": self.bundle})


class BudgetSection(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One section `[[budgets]]`: at most so much of something in each period."""

    of: str
    per: Period
    usd: Annotated[float, msgspec.Meta(ge=0)] | None = None
    tokens: Annotated[int, msgspec.Meta(ge=0)] | None = None
    calls: Annotated[int, msgspec.Meta(ge=0)] | None = None

    def __post_init__(self) -> None:
        if self.usd is self.tokens is self.calls is None:
            raise ValueError("it limits nothing; give usd, tokens or calls")

    def limits(self) -> list[Limit]:
        """Return a limit for each unit that it names."""
        found = [
            Limit(self.of, "tokens", self.per, self.tokens) if self.tokens is not None else None,
            Limit(self.of, "calls", self.per, self.calls) if self.calls is not None else None,
        ]
        if self.usd is not None:
            found.append(Limit(self.of, "usd", self.per, nano_from_usd(self.usd)))
        return [one for one in found if one is not None]


@dataclass(frozen=True)
class ServeConfig:
    """A gateway that was read and checked; nothing is opened yet."""

    file: str
    serve: ServeSection
    record: RecordSection | None
    """None: nothing is recorded."""
    models: ModelsConfig
    policies: Mapping[str, PolicySection]
    limits: tuple[Limit, ...]

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
    known = {"serve", "record", "models", "limits", "prices", "policies", "budgets"}
    for unknown in sorted(tables.keys() - known):
        raise ConfigError(name, unknown, f"is unknown; there are {', '.join(sorted(known))}")
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
    sections = config.models.sections
    if not sections:
        raise ConfigError(config.file, "models", "is missing; give a section [models.NAME] or more")
    for name in sections:
        if name.startswith(PREFIX):
            problem = f"begins with {PREFIX}, as policies do"
            raise ConfigError(config.file, f"models.{name}", problem)
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
    if bool(policy.pool) == (policy.job is not None):
        raise ConfigError(config.file, field, "give either a pool of models or a job")
    if policy.bundle is not None and policy.modes:
        raise ConfigError(config.file, field, "give either a bundle or modes")
    if policy.job is not None and not policy.bundles:
        raise ConfigError(config.file, field, "lacks a bundle, which says who is asked when")
    for model in policy.pool:
        _check_model(config, f"{field}.pool", model)
    for model in policy.answers_for:
        _check_model(config, f"{field}.answers_for", model)
    try:
        plugins.load("tasks", policy.task)
    except InputError as error:
        raise ConfigError(config.file, f"{field}.task", str(error)) from None


def _check_model(config: ServeConfig, field: str, name: str) -> None:
    if name not in config.models.sections:
        known = ", ".join(config.models.sections)
        raise ConfigError(config.file, field, f"names '{name}', which is no model here: {known}")

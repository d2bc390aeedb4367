"""The sections of a gateway's configuration, as its TOML file has them; see `config.py`."""

from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec

from farthing.money import nano_from_usd
from farthing_gateway.storage.ledger.base import Limit, Period

PREFIX = "farthing/"
"""What clients write before a policy's name."""
ALL = "all"
"""The account that everything is charged to."""
SHADOW = "shadow"
"""The policy that trials are charged to, as `policy:shadow`."""
AUDIT = "audit"
"""The one that audits and exploration are charged to."""

Positive = Annotated[int, msgspec.Meta(ge=1)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
Seconds = Annotated[float, msgspec.Meta(gt=0)]


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
    default_max_output: Positive | None = None
    """Most output tokens of a reply, sent where a request names none; None: the model's own."""
    over_budget: Literal["refuse", "shorten"] = "refuse"
    """What becomes of a request without a limit where all that the model may write cannot be paid:
    it is refused, or sent with the limit that can."""
    most_body_bytes: Positive = 8 * 2**20
    deadline_s: Seconds = 600.0
    """Most seconds a request may take; it may ask for fewer."""
    lease_s: Seconds = 900.0
    """After so many seconds the money of a call that nobody reports on is settled."""
    client_timeout_s: Seconds = 30.0
    """Most seconds that a client may take to send a request, or read nothing of what it gets."""
    drain_s: Seconds = 30.0
    """Seconds that requests under way are given when the server is asked to end."""
    fallbacks: dict[str, list[str]] = {}
    """Model to those that are asked in turn where it fails."""
    cooldown_s: Annotated[float, msgspec.Meta(ge=0)] = 30.0
    """Seconds for which a model with fallbacks is left alone after failures in a row; 0: not."""
    telemetry: bool = False
    """Whether spans and metrics go to the OpenTelemetry collector that the environment names."""
    pid_file: str | None = None
    """Where `farthing gateway reload` finds the server; None: beside its database, if that is a
    file."""

    def __post_init__(self) -> None:
        if self.lease_s <= self.deadline_s:
            raise ValueError("lease_s must be more than deadline_s, or what runs counts as lost")


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
    at_once: Positive = 16
    """Questions that are tried at any moment, in each worker; what comes beyond is left out."""
    audit_usd_per_day: Annotated[float, msgspec.Meta(ge=0)] = 1.0
    """What audits and exploration may cost a day; those that it does not pay for wait."""


class WatchSection(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The section `[watch]`: how promises are watched in the traffic that is recorded."""

    delta: Annotated[float, msgspec.Meta(gt=0, lt=1)] = 0.05
    """With which probability a certificate whose replies do not change ever has a false alarm; and
    with which an interval ever misses."""
    on_alarm: Literal["end", "say"] = "end"
    """What an alarm that the promise is broken does: replies promise nothing more, or it is said
    alone."""


class PageSection(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The section `[page]`: the administrator's page at `/admin`."""

    enabled: bool = True
    """Whether it is served; never without `keys`, since a key is what opens it."""
    https: bool = False
    """Whether browsers reach it by https alone. Where false, it is what a request came by."""
    proxies: tuple[str, ...] = ("127.0.0.1",)
    """Addresses of proxies whose word counts on who asks and by what: X-Forwarded-For, -Proto."""


class PacingSection(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The section `[policies.NAME.pacing]`: the day's money lasts the day."""

    usd_per_day: Annotated[float, msgspec.Meta(gt=0)]
    """What the policy may spend a day; the ledger refuses what goes beyond."""
    requests: Positive
    """About how many requests a day brings."""
    pacer: str = "dual-descent-following"
    """A name of `farthing.pacers`."""


class PolicySection(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One section `[policies.NAME]`: a task, who may answer it, and who decides."""

    pool: list[str] = []
    """The models, each asked as the client asked."""
    job: str | None = None
    """In place of a pool: the job whose agents answer, as `farthing collect` ran it."""
    controller: str | None = None
    """In place of a pool: the one whose controller answers, a file as `farthing corl` reads it,
    `two` or `four`; or the folder of a controller that was trained."""
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
    pacing: PacingSection | None = None
    """Which mode answers where a request does not say; None: the first."""
    trial: list[str] = []
    """Models that are tried beside the pool off the requests' path, such as one newly released."""
    answers_for: list[str] = []
    """Models of whose requests it takes those of its task, so that clients change nothing."""
    outside: Literal["pass", "refuse"] = "pass"
    """What becomes of requests outside the task: the strongest model answers, or nobody."""
    audit: Share = 0.02
    """Share of the replies under a promise that chance draws for an audit, where traffic is
    recorded: the models of the pool that were not asked are."""
    explore: Share = 0.0
    """Share of them that are completed beyond the audits, to learn from."""

    def __post_init__(self) -> None:
        if self.audit + self.explore > 1:
            raise ValueError("audit and explore are shares of the same replies: at most 1 together")

    @property
    def brings_models(self) -> bool:
        """Whether it has models of its own, beside the gateway's."""
        return self.job is not None or self.controller is not None

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

"""What whoever starts a gateway should know of its configuration, though it can be served."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path

from farthing.models.base import Usage
from farthing_gateway.config import ServeConfig
from farthing_gateway.config_sections import PREFIX, PageSection, PolicySection
from farthing_gateway.storage.keys import KeyRecord

_USUAL = Usage(1_000, 200)
"""A request that prices are compared at."""
_SECONDS = 1.0


def remarks(config: ServeConfig) -> list[str]:
    """Return what is to be known of a configuration, a line each."""
    found = []
    serve = config.serve
    if not serve.keys and serve.host not in {"127.0.0.1", "::1", "localhost"}:
        found.append(
            f"warning: anybody who reaches {serve.host} can spend your money: no keys are "
            "needed (keys = true under [serve] wants them)"
        )
    if not config.limits:
        found.append("note: there is no budget; [[budgets]] sets one")
    found += [f"note: {said}" for said in _of_watching(config)]
    for name, policy in config.policies.items():
        missing = [path for path in policy.bundles.values() if not Path(path).is_dir()]
        if missing or not (policy.bundles or policy.controller):
            found.append(
                f"note: {PREFIX}{name} has no bundle yet: {serve.strongest} answers, "
                "and nothing is promised"
            )
        found += [f"note: policies.{name} {said}" for said in _of_policy(config, policy)]
    return found


def of_keys(config: ServeConfig, keys: Iterable[KeyRecord], now: datetime) -> list[str]:
    """Say which budgets limit nobody: no key that is valid now has their name, or their team."""
    there = [key for key in keys if key.is_valid(now)]
    known = {key.account for key in there}
    known |= {f"team:{key.team}" for key in there if key.team is not None}
    return [
        f"budgets[{at}] is of {budget.of}, and no key is: it limits nothing yet"
        for at, budget in enumerate(config.budgets)
        if budget.of.startswith(("key:", "team:")) and budget.of not in known
    ]


def _of_watching(config: ServeConfig) -> Iterator[str]:
    if config.page != PageSection() and not config.has_page:
        yield "[page] says how it is served, and it is not: it needs keys and enabled = true"
    audited = any(policy.audit != PolicySection().audit for policy in config.policies.values())
    if audited and config.record is None:
        yield "a policy names a share of audits, and nothing is audited without [record]"
    elif audited and config.record is not None and config.record.audit_usd_per_day == 0:
        yield "audits are drawn and none is paid for: audit_usd_per_day under [record] is 0"


def _of_policy(config: ServeConfig, policy: PolicySection) -> Iterator[str]:
    if len(set(policy.pool)) == 1:
        yield "has a pool of one model, so there is nothing to choose among"
    if policy.pool and not policy.system:
        yield "names no system prompt, so requests that have one are outside its task"
    prices = [_cost(config, name) for name in policy.pool]
    known = [cost for cost in prices if cost is not None]
    if len(known) == len(prices) and known != sorted(known):
        order = [name for _, name in sorted(zip(known, policy.pool, strict=True))]
        yield f"does not name its pool from the cheapest; by price it is {', '.join(order)}"


def _cost(config: ServeConfig, name: str) -> int | None:
    price = config.models.sections[name].settings.price(config.models.prices)
    return None if price is None else price.cost_nano(_USUAL, _SECONDS)

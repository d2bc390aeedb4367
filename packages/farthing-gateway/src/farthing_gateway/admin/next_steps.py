"""What is to be done until a gateway saves money: what of it is done, and what comes next."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from farthing_gateway.admin.state import Pages

StepName = Literal["record", "key", "request", "budget", "policy", "bundle"]


@dataclass(frozen=True)
class NextStep:
    """One thing to be done."""

    name: StepName
    is_done: bool


async def next_steps(pages: Pages, now: datetime, *, begun: bool) -> list[NextStep]:
    """Return what there is to do, in its order; nothing once a bundle decides.

    Args:
        pages: of the gateway.
        now: the present moment.
        begun: whether anything has passed yet.
    """
    gateway = pages.gateway
    policies = gateway.chat.policies
    if any(policy.loaded for policy in policies.values()):
        return []
    keys = [key for key in await pages.keys.list() if key.is_valid(now)]
    limited = bool(gateway.config.limits) or any(key.limits for key in keys)
    return [
        NextStep("record", gateway.config.record is not None),
        NextStep("key", begun or any("call" in key.scopes for key in keys)),
        NextStep("request", begun),
        NextStep("budget", limited),
        NextStep("policy", bool(policies)),
        NextStep("bundle", is_done=False),
    ]

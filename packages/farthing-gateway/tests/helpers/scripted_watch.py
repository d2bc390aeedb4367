"""What is known of promises, as it was written down, for tests of the page."""

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from farthing_gateway.monitoring.base import Alarm, Deployed, PromiseStatus


@dataclass
class ScriptedWatch:
    """Says what it was given; see `Watch`."""

    promises: list[PromiseStatus] = field(default_factory=list)
    rung: list[Alarm] = field(default_factory=list)
    log: list[Deployed] = field(default_factory=list)

    async def kept(self) -> list[PromiseStatus]:
        """Return how promises are kept."""
        return list(self.promises)

    async def alarms(self, *, only_open: bool = False) -> list[Alarm]:
        """Return alarms, the newest first."""
        found = [one for one in self.rung if one.closed_at is None or not only_open]
        return sorted(found, key=lambda one: one.at, reverse=True)

    async def close_alarm(self, id: str, by: str) -> bool:  # noqa: A002
        """Mark an alarm as seen to."""
        for at, one in enumerate(self.rung):
            if one.id == id and one.closed_at is None:
                self.rung[at] = replace(one, closed_at=datetime.now(UTC), closed_by=by)
                return True
        return False

    async def deployed(self, policy: str | None = None) -> list[Deployed]:
        """Return which bundles decided since when, the newest first."""
        found = [one for one in self.log if policy in {None, one.policy}]
        return sorted(found, key=lambda one: one.at, reverse=True)

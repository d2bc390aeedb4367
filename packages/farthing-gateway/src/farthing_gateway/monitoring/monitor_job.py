"""What a worker does about promises in the background: count, look at alarms, note deployments."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from farthing_gateway.bundles import ServedBundle
from farthing_gateway.config_sections import WatchSection
from farthing_gateway.metrics import Metrics
from farthing_gateway.monitoring.counter import count
from farthing_gateway.monitoring.deployments import deployed, note_deployment, undecided
from farthing_gateway.monitoring.status import StoredWatch
from farthing_gateway.policies import GatewayPolicy


@dataclass(frozen=True)
class Watcher:
    """Keeps what is known of promises up to date."""

    section: WatchSection
    watch: StoredWatch
    policies: Mapping[str, GatewayPolicy]
    metrics: Metrics

    async def once(self) -> None:
        """Count what happened, end promises that alarms are about, and set the figures."""
        counted = await count(self.watch.database, self.section.delta)
        await self.look_at_alarms()
        if counted:  # whoever counts says so in the figures, which are of all workers
            self.metrics.kept(await self.watch.kept(groups=False))

    async def begin(self) -> None:
        """Note what decides, end promises that alarms are about, and set the figures."""
        for policy in self.policies.values():
            await self.note_loaded(policy, [*policy.loaded, *policy.unproved])
        await self.look_at_alarms()
        self.metrics.kept(await self.watch.kept(groups=False))

    async def look_at_alarms(self) -> None:
        """End the promises that open alarms are about; those of closed ones hold again."""
        found = await self.watch.alarms(only_open=True)
        self.metrics.alarms({name: sum(a.policy == name for a in found) for name in self.policies})
        ended = await self.watch.ended() if self.section.on_alarm == "end" else {}
        for name, policy in self.policies.items():
            own = {under: why for under, why in ended.items() if under.policy == name}
            policy.ended = {(under.mode, under.certificate): why for under, why in own.items()}

    async def note_loaded(self, policy: GatewayPolicy, modes: Sequence[str]) -> None:
        """Note bundles that were read: they decide from now on, or nobody does."""
        for mode in modes:
            loaded = policy.loaded.get(mode)
            if isinstance(loaded, ServedBundle):
                found = deployed(policy.name, mode, loaded.bundle)
            elif mode in policy.unproved:
                found = undecided(policy.name, mode)
            else:
                continue
            await note_deployment(self.watch.database, found)

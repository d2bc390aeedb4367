"""Where the bundle of a policy's mode is."""

from dataclasses import dataclass
from pathlib import Path

from farthing.errors import InputError, UnknownNameError
from farthing_gateway.config import ServeConfig
from farthing_gateway.config_sections import PREFIX, PolicySection


@dataclass(frozen=True)
class Place:
    """A policy's mode, and the folder of its bundle."""

    policy: str
    mode: str
    folder: Path
    section: PolicySection

    @property
    def names(self) -> tuple[str, str]:
        """The names of the policy and the mode."""
        return self.policy, self.mode

    def __str__(self) -> str:
        return self.policy if len(self.section.bundles) == 1 else f"{self.policy}, {self.mode}"


def place_of(config: ServeConfig, policy: str, mode: str | None = None) -> Place:
    """Return the place of a policy's bundle.

    Args:
        config: of the gateway.
        policy: its name, or `farthing/NAME` as clients call it.
        mode: one of its modes; None: it has one bundle.
    """
    name = policy.removeprefix(PREFIX)
    if name not in config.policies:
        raise UnknownNameError("policy", name, config.policies)
    section = config.policies[name]
    bundles = section.bundles
    if not bundles:
        raise InputError(f"{config.file}: the policy {name} names no bundle; write where it is")
    if mode is None and len(bundles) > 1:
        raise InputError(f"the policy {name} has several modes: {', '.join(bundles)}; name one")
    chosen = next(iter(bundles)) if mode is None else mode
    if chosen not in bundles:
        raise UnknownNameError("mode", chosen, bundles)
    return Place(name, chosen, Path(bundles[chosen]), section)

"""What a bundle is: a policy, ready to use, and all that is known about it."""

from collections.abc import Mapping
from typing import Any

import msgspec

from farthing.methods.base import Saveable
from farthing.process.base import Policy
from farthing.process.value import PolicyValue
from farthing.promises.certificate import Certificate
from farthing.traces.fingerprint import Marks
from farthing.traces.system import Origin


class Bundle(msgspec.Struct, frozen=True, kw_only=True):
    """A policy, ready to use, and all that is known about it."""

    policy: Policy
    kind: str
    """The name of a method that makes such policies."""
    origin: Origin
    kappa: float | None
    """The threshold; None for a policy whose actions are sampled."""
    empty: str
    """Whether sets may be empty (`allow`) or hold the likeliest action (`argmax`)."""
    certificate: Certificate | None
    """What is promised at that threshold."""
    features: Mapping[str, Any] | None
    """What the policy sees of a round; None where it reads no features."""
    farthing_version: str
    """The version that wrote the bundle."""
    questions: Mapping[str, Marks] = {}
    """`train`, `calibrate` and, of a recommendation, `choose` to the marks of the questions that
    did it, and `before` to those that proved an earlier certificate; empty where unknown."""
    looks: int = 1
    """Certificates that were asked of its calibration questions, this one among them."""
    value: PolicyValue | None = None
    """What it costs and gets right beside the reference, on the calibration questions or, of a
    recommendation, on those that only measured it; None before calibration, and in bundles that do
    not say."""
    trained: "Bundle | None" = None
    """The policy as it was trained, where a reference answers in its place: see `fallback`."""

    def reads(self, signal: str) -> bool:
        """Return whether the policy decides by a recorded number, as far as its settings say."""
        if not isinstance(self.policy, Saveable):
            return False
        return _mentions(self.policy.to_state()[1], signal)

    @property
    def reference(self) -> str | None:
        """The single model that it is held against: that of its parity, or of its training."""
        named = self.certificate and self.certificate.promise.fallback
        return named or self.origin.reference


def _mentions(value: Any, name: str) -> bool:
    if isinstance(value, Mapping):
        return any(_mentions(part, name) for part in value.values())
    if isinstance(value, list | tuple):
        return any(_mentions(part, name) for part in value)
    return isinstance(value, str) and name in value

"""No guarantee: a threshold that was chosen without calibration."""

from typing import ClassVar

from farthing.promises.certificate import Certificate
from farthing.promises.payload import Recorded


class NoPromise(Recorded, frozen=True, kw_only=True, tag="none"):
    """Nothing."""

    evidence: ClassVar[type] = float
    """The threshold that was chosen."""
    sought: ClassVar[bool] = False

    @property
    def promises(self) -> bool:
        """Whether anything is promised: never."""
        return False

    def sentence(self, of: Certificate) -> str:
        """Say that nothing is promised."""
        return f"Nothing is promised: the threshold {of.acts_as:g} was not calibrated."

    def plain_language(self, of: Certificate) -> str:
        """Say what that means."""
        del of
        return "Nothing is promised: answers may be wrong as often as they like."

    def recompute(self, evidence: float, of: Certificate) -> Certificate:
        """State it again of another threshold."""
        return certify(evidence, fingerprint=of.fingerprint)


def certify(kappa: float, *, fingerprint: str) -> Certificate:
    """State that a threshold was chosen without calibration, and so promises nothing.

    Args:
        kappa: the threshold.
        fingerprint: SHA-256 of the traces that the policy was trained on.
    """
    return Certificate(promise=NoPromise(), kappa=float(kappa), fingerprint=fingerprint)

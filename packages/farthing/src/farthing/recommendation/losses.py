"""What is saved at several losses, all proved together at one delta."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from farthing.methods.base import Dataset, Progress
from farthing.promises.base import Promise
from farthing.promises.levels import exact_level
from farthing.recommendation.recommend import recommend
from farthing.recommendation.record import Recommendation


@dataclass(frozen=True)
class AtLoss:
    """What is recommended where so much may be lost."""

    loss: Fraction
    """Share of accuracy that may be lost, or of questions that may be answered otherwise."""
    found: Recommendation

    @property
    def proved(self) -> bool:
        """Whether something cheaper than the reference is proved."""
        return not self.found.nothing_cheaper

    @property
    def saved(self) -> float:
        """The share of the money that is saved; 0 where the reference answers."""
        saved = self.found.found.value.saved
        return saved if self.proved and saved is not None else 0.0


@dataclass(frozen=True)
class LossTable:
    """A line for each loss, from the least on."""

    lines: tuple[AtLoss, ...]
    delta: Fraction
    """How often any of the lines may be false."""
    look: int
    """How many proofs were made on these questions, this one among them."""

    def at(self, loss: Fraction) -> AtLoss:
        """Return the best that is proved to lose so much at most."""
        within = [line for line in self.lines if line.loss <= loss] or [self.lines[0]]
        return max(within, key=lambda line: (line.saved, line.loss))

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "delta": float(self.delta),
            "proof": self.look,
            "losses": [
                {
                    "loss": float(line.loss),
                    "saved": self.at(line.loss).saved,
                    "method": self.at(line.loss).found.name,
                    "proved": self.at(line.loss).proved,
                }
                for line in self.lines
            ],
        }


def at_losses(
    dataset: Dataset,
    asked: Any,
    losses: Sequence[Fraction],
    *,
    look: tuple[int, Fraction, Fraction],
    seed: int = 0,
    progress: Progress | None = None,
) -> LossTable:
    """Recommend at each loss, each at an equal share of delta, so that all lines hold together.

    Args:
        dataset: the questions.
        asked: parity or agreement, with its delta for all proofs together.
        losses: what may be lost.
        look: the number of this proof on these questions, and what of delta it and the next one
            spend.
        seed: of the division and of every training.
        progress: is told how many methods were tried.
    """
    number, spent, following = look
    delta = exact_level(asked.delta) * spent
    lines = []
    for loss in sorted({*losses, exact_level(asked.epsilon)}):
        share = delta / len({*losses, exact_level(asked.epsilon)})
        promise: Promise = replace(asked, epsilon=loss, delta=share)
        found = recommend(
            dataset,
            promise,
            reference=asked.reference,
            seed=seed,
            progress=progress,
            later=following / spent,
        )
        lines.append(AtLoss(loss, found))
    return LossTable(tuple(lines), delta, number)

"""How many requests were answered, refused and failed, by what they asked for and by why."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from farthing_gateway.admin.figures import Failures, Kind


@dataclass(frozen=True)
class Rates:
    """What became of some requests."""

    answered: int = 0
    refused: int = 0
    failed: int = 0

    @property
    def requests(self) -> int:
        """All of them."""
        return self.answered + self.refused + self.failed

    @property
    def refused_share(self) -> float | None:
        """The share that was refused; None of nothing."""
        return self.refused / self.requests if self.requests else None

    @property
    def failed_share(self) -> float | None:
        """The share that failed; None of nothing."""
        return self.failed / self.requests if self.requests else None


@dataclass(frozen=True)
class Cause:
    """Why some were not answered."""

    status: int
    code: str
    number: int
    cost_nano: int


def rates(kinds: Iterable[Kind], failures: Iterable[Failures]) -> dict[str, Rates]:
    """Return what became of requests by the model that they asked for, the most asked first.

    >>> rates([Kind("", "large", "none", 9, 0)], [Failures("large", 402, "x", 1, 0)])
    {'large': Rates(answered=9, refused=1, failed=0)}
    """
    counted: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    for kind in kinds:
        counted[kind.model][0] += kind.requests
    for one in failures:
        counted[one.model][1 if one.are_refused else 2] += one.number
    found = {model: Rates(*numbers) for model, numbers in counted.items()}
    return dict(sorted(found.items(), key=lambda each: (-each[1].requests, each[0])))


def together(every: Iterable[Rates]) -> Rates:
    """Return what became of all of them."""
    numbers = [(one.answered, one.refused, one.failed) for one in every]
    return Rates(*map(sum, zip(*numbers, strict=True))) if numbers else Rates()


def causes(failures: Sequence[Failures]) -> list[Cause]:
    """Return why requests were not answered, the most frequent first."""
    numbers: dict[tuple[int, str], tuple[int, int]] = {}
    for one in failures:
        number, cost = numbers.get((one.status, one.code), (0, 0))
        numbers[one.status, one.code] = number + one.number, cost + one.cost_nano
    found = [Cause(*of, *sums) for of, sums in numbers.items()]
    return sorted(found, key=lambda one: (-one.number, one.status, one.code))

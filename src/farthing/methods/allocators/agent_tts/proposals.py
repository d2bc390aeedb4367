"""What AgentTTS may try, and the rule that says what next.

The rule begins with even shares: each model for every part, with as many samples as its share pays
for. Then it looks at choices around the best one so far, in which one part gets another option and
others pay for it, and tries the one that a small model of the archive expects most of: a ridge
regression on who does a part, and on the logarithm of what it costs. Every fourth trial is one of
them at random, so that what the regression does not see is found all the same.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from farthing.methods.allocators.base import Batch
from farthing.traces.arrays import FloatArray, IntArray


@dataclass(frozen=True)
class Trial:
    """A choice that was tried."""

    choice: tuple[int, ...]
    """An option for each part."""
    value: float


@dataclass(frozen=True)
class Space:
    """What may be tried: parts as a batch's items, and one budget."""

    batch: Batch
    budget_nano: int
    model: IntArray = field(default_factory=lambda: np.zeros((0, 0), dtype=np.int64))
    """[n, K] who is asked in an option; all the same where nothing is said."""
    parts: tuple[str, ...] = ()
    """Names, for an LLM to read."""
    options: tuple[tuple[str, ...], ...] = ()
    """Of each part, such as `small x4`."""

    def __post_init__(self) -> None:
        """Name what has no name."""
        n, k = self.batch.value.shape
        if not self.model.size:
            object.__setattr__(self, "model", np.zeros((n, k), dtype=np.int64))
        if not self.parts:
            object.__setattr__(self, "parts", tuple(f"part {i + 1}" for i in range(n)))
        if not self.options:
            names = tuple(tuple(f"option {j + 1}" for j in range(k)) for _ in range(n))
            object.__setattr__(self, "options", names)

    def fits(self, choice: Sequence[int]) -> bool:
        """Return whether it is a choice, and within the budget."""
        offered = self.batch.offered
        if len(choice) != len(self.batch) or not all(0 <= k < offered.shape[1] for k in choice):
            return False
        rows = np.arange(len(self.batch))
        whole = bool(offered[rows, list(choice)].all())
        return whole and self.batch.cost_of(np.array(choice)) <= self.budget_nano

    def within(self, part: int, room: int) -> IntArray:
        """Return a part's options that cost no more, from the cheapest."""
        cost = self.batch.expected_nano[part]
        at = np.flatnonzero(self.batch.offered[part] & (cost <= room))
        found: IntArray = at[np.argsort(cost[at], kind="stable")]
        return found


Proposer = Callable[[Space, Sequence[Trial], np.random.Generator], Sequence[Sequence[int]]]
"""From what may be tried and what was to choices to try next; what does not fit is dropped."""
AROUND = 60
"""Choices that the rule looks at; ours."""
RIDGE = 0.1


def rule(
    space: Space, archive: Sequence[Trial], generator: np.random.Generator
) -> list[tuple[int, ...]]:
    """Propose one choice; at the beginning, even shares for each model."""
    seen = {trial.choice for trial in archive}
    if len(archive) <= 1 and (first := [one for one in even(space) if one not in seen]):
        return first
    best = max(archive, key=lambda trial: trial.value).choice
    around = list(dict.fromkeys(_near(space, best, generator) for _ in range(AROUND)))
    fresh = [one for one in around if one not in seen]
    if not fresh or len(archive) % 4 == 0:
        return fresh[:1]
    hoped = _expected(space, archive, fresh)
    return [fresh[int(hoped.argmax())]]


def even(space: Space) -> list[tuple[int, ...]]:
    """Return each model for all parts, with the dearest option that an even share pays for.

    A part whose share pays for none of a model's options gets its cheapest option of all.
    """
    batch = space.batch
    share = space.budget_nano // len(batch)
    proposed = []
    for model in np.unique(space.model[batch.offered]).tolist():
        choice = batch.cheapest.tolist()
        for part in range(len(batch)):
            within = space.within(part, share)
            own = within[space.model[part, within] == model]
            choice[part] = int(own[-1]) if own.size else choice[part]
        proposed.append(tuple(choice))
    return proposed


def _near(space: Space, best: tuple[int, ...], generator: np.random.Generator) -> tuple[int, ...]:
    """Give one part another option; others become cheaper until it fits, or one dearer."""
    batch, choice = space.batch, list(best)
    part = int(generator.integers(len(choice)))
    choice[part] = int(generator.choice(np.flatnonzero(batch.offered[part])))
    for other in generator.permutation(len(choice)).tolist():
        left = space.budget_nano - batch.cost_of(np.array(choice))
        if other == part:
            continue
        now = int(batch.expected_nano[other, choice[other]])
        options = space.within(other, now + left)
        if not options.size:  # even its cheapest is too dear: others have to give way as well
            choice[other] = int(batch.cheapest[other])
        elif left < 0 or generator.random() < 0.5:
            same = options[space.model[other, options] == space.model[other, choice[other]]]
            choice[other] = int(same[-1] if same.size else generator.choice(options))
    return tuple(choice)


def _expected(
    space: Space, archive: Sequence[Trial], fresh: Sequence[tuple[int, ...]]
) -> FloatArray:
    """Return what a ridge regression on the archive expects of choices, [len(fresh)]."""
    tried = _features(space, [trial.choice for trial in archive])
    value = np.array([trial.value for trial in archive])
    scale = float(value.std()) or 1.0
    gram = tried @ tried.T + RIDGE * np.eye(len(tried))
    weight = tried.T @ np.linalg.solve(gram, (value - value.mean()) / scale)
    found: FloatArray = _features(space, fresh) @ weight
    return found


def _features(space: Space, choices: Sequence[Sequence[int]]) -> FloatArray:
    """Return who does each part, and how much that costs on a logarithmic scale, [len, F]."""
    at = np.array(choices)
    rows = np.arange(len(space.batch))
    models = int(space.model.max()) + 1
    who = space.model[rows, at][:, :, None] == np.arange(models)
    log = np.log1p(space.batch.expected_nano[rows, at].astype(np.float64))
    every = np.where(
        space.batch.offered, np.log1p(space.batch.expected_nano.astype(np.float64)), np.nan
    )
    low, high = np.nanmin(every, axis=1), np.nanmax(every, axis=1)
    unit = (log - low) / np.maximum(high - low, 1e-9)
    parts = [who.astype(float), who * unit[:, :, None], (who * unit[:, :, None] ** 2)]
    return np.concatenate([part.reshape(len(at), -1) for part in parts], axis=1)

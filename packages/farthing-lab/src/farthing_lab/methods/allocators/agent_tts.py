"""AgentTTS: search by trial for who does each part of a task, and with how many samples.

What a choice is worth shows only when the whole task is run with it: parts depend on each other,
and one run on some questions costs money. So few choices can be tried. A proposer says which is
worth a trial next; what would not fit the budget is dropped before it costs anything; the result
joins the archive, from which the next proposal is made. The proposer is a rule (`rule`) or
an LLM (`asking`), which is told the archive and what it says.

**When it is of use.** Where parts' chances are known and independent, the chance of the whole is
their product, and a knapsack on its logarithm is exact: the card's `allocate`, where values add up,
is that knapsack. `maximise` is for everything else.

Source: arXiv 2508.00890, as its abstract says it: model and samples of each part by feedback from
runs, with insights kept. The rule is ours.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import product

import numpy as np

from farthing.errors import InputError
from farthing.methods.base import SystemCard
from farthing.traces.arrays import FloatArray, IntArray
from farthing_lab.methods.allocators.base import Allocation, ItemBatch, room_nano
from farthing_lab.methods.allocators.lagrangian import LAGRANGIAN

Objective = Callable[[IntArray], float]
"""From an option for each part, [n], to what the whole task is then worth; any scale."""
IDLE = 20
"""Rounds without anything new after which the search ends: the proposer has no more ideas."""
AROUND = 60
"""Choices that the rule looks at; ours."""
RIDGE = 0.1
Ask = Callable[[str], str]
"""From a prompt to an LLM's reply."""


@dataclass(frozen=True)
class AllocationTrial:
    """A choice that was tried."""

    choice: tuple[int, ...]
    """An option for each part."""
    value: float


@dataclass(frozen=True)
class Space:
    """What may be tried: parts as a batch's items, and one budget."""

    batch: ItemBatch
    budget_nano: int
    model: IntArray = field(default_factory=lambda: np.zeros((0, 0), dtype=np.int64))
    """[n, K] who is asked in an option; all the same where nothing is said."""
    parts: tuple[str, ...] = ()
    """Names, for an LLM to read."""
    options: tuple[tuple[str, ...], ...] = ()
    """Of each part, such as `small x4`."""

    def __post_init__(self) -> None:
        n, k = self.batch.value.shape
        unsaid = {
            "model": np.zeros((n, k), dtype=np.int64),
            "parts": tuple(f"part {i + 1}" for i in range(n)),
            "options": (tuple(f"option {j + 1}" for j in range(k)),) * n,
        }
        for name, value in unsaid.items():
            if not len(getattr(self, name)):
                object.__setattr__(self, name, value)

    def fits(self, choice: Sequence[int]) -> bool:
        offered = self.batch.offered
        if len(choice) != len(self.batch) or not all(0 <= k < offered.shape[1] for k in choice):
            return False
        rows = np.arange(len(self.batch))
        whole = bool(offered[rows, list(choice)].all())
        return whole and self.batch.cost_of(np.array(choice)) <= self.budget_nano

    def within(self, part: int, room: int) -> IntArray:
        cost = self.batch.expected_nano[part]
        at = np.flatnonzero(self.batch.offered[part] & (cost <= room))
        found: IntArray = at[np.argsort(cost[at], kind="stable")]
        return found


Proposer = Callable[
    [Space, Sequence[AllocationTrial], np.random.Generator], Sequence[Sequence[int]]
]
"""From what may be tried and what was to choices to try next; what does not fit is dropped."""


def rule(
    space: Space, archive: Sequence[AllocationTrial], generator: np.random.Generator
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
    space: Space, archive: Sequence[AllocationTrial], fresh: Sequence[tuple[int, ...]]
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


def insights(space: Space, archive: Sequence[AllocationTrial]) -> list[str]:
    """Say what the archive shows, a line each: who does a part best, and where more adds nothing.

    Two trials that differ in one part alone say what that part's options are worth.
    """
    said = []
    for part, name in enumerate(space.parts):
        best: dict[int, float] = {}
        for trial in archive:
            model = int(space.model[part, trial.choice[part]])
            best[model] = max(best.get(model, -np.inf), trial.value)
        if len(best) > 1:
            ahead = max(best, key=lambda model: best[model])
            label = next(
                space.options[part][t.choice[part]]
                for t in archive
                if space.model[part, t.choice[part]] == ahead and t.value == best[ahead]
            )
            said.append(f"{name}: the best trial had {label}")
        cost, idle = space.batch.expected_nano[part], list[str]()
        for one, other in product(archive, archive):
            same = [here == there for here, there in zip(one.choice, other.choice, strict=True)]
            alike = all(same[:part] + same[part + 1 :])
            dearer = cost[other.choice[part]] > cost[one.choice[part]]
            if alike and dearer and other.value <= one.value:
                less, more = (space.options[part][t.choice[part]] for t in (one, other))
                idle.append(f"{name}: {more} was no better than {less}")
        said += dict.fromkeys(idle)
    return said


def asking(ask: Ask, beside: Proposer = rule) -> Proposer:
    """Return a proposer that asks an LLM; where its reply has nothing new, the rule proposes.

    >>> from farthing.budgets.pacing.base import Option
    >>> from farthing_lab.methods.allocators.base import ItemBatch
    >>> space = Space(ItemBatch.of([[Option(0, 1, 1), Option(0, 2, 2)]]), 2)
    >>> asking(lambda prompt: "part 1 = option 2")(space, [], np.random.default_rng(0))
    [(1,)]
    """

    def propose(
        space: Space, archive: Sequence[AllocationTrial], generator: np.random.Generator
    ) -> Sequence[Sequence[int]]:
        seen = {trial.choice for trial in archive}
        read = [one for one in choices(space, ask(prompt(space, archive))) if one not in seen]
        return (
            [*read] if any(map(space.fits, read)) else [*read, *beside(space, archive, generator)]
        )

    return propose


def prompt(space: Space, archive: Sequence[AllocationTrial]) -> str:
    """Return what an LLM is told: parts with their options and costs, the archive, the insights."""
    cost = space.batch.expected_nano
    lines = ["A task has these parts. Choose one option for each, so that the costs together are"]
    lines += [f"at most {space.budget_nano} and the whole task goes best.", ""]
    for part, name in enumerate(space.parts):
        offers = [
            f"{space.options[part][k]} costs {cost[part, k]}"
            for k in np.flatnonzero(space.batch.offered[part])
        ]
        lines.append(f"{name}: {'; '.join(offers)}")
    lines += ["", "Tried so far, the best first:"]
    ordered = sorted(archive, key=lambda trial: -trial.value)[:12]
    lines += [f"{_said(space, trial.choice)} -> {trial.value:.4f}" for trial in ordered]
    lines += ["", "What that shows:", *insights(space, archive)[:12], ""]
    lines.append(
        "Name up to three choices that were not tried, one a line, in the form: "
        + _said(space, [int(k) for k in space.batch.cheapest])
    )
    return "\n".join(lines)


def choices(space: Space, reply: str) -> list[tuple[int, ...]]:
    """Return the choices that a reply names, a line each; lines that name none are left out."""
    found = []
    for line in reply.splitlines():
        pieces = (piece.partition("=") for piece in line.strip(" -*.`").split(";"))
        named = {part.strip(): option.strip() for part, _, option in pieces}
        at = [
            options.index(named[name]) if named.get(name) in options else -1
            for name, options in zip(space.parts, space.options, strict=True)
        ]
        if min(at) >= 0:
            found.append(tuple(at))
    return found


def _said(space: Space, choice: Sequence[int]) -> str:
    return "; ".join(
        f"{name} = {space.options[part][choice[part]]}" for part, name in enumerate(space.parts)
    )


@dataclass(frozen=True)
class AllocationSearch:
    """How a search went."""

    choice: IntArray
    """[n] the best that was tried."""
    value: float
    trials: tuple[AllocationTrial, ...]
    """All of them, in their order; each within the budget."""
    dropped: int
    """Proposals that were no choice, or beyond the budget; none of them was tried."""

    def best_so_far(self) -> list[float]:
        values = np.array([one.value for one in self.trials])
        best: list[float] = np.maximum.accumulate(values).tolist()
        return best


@dataclass(frozen=True)
class AgentTts:
    """The allocator, and its search.

    >>> from farthing.budgets.pacing.base import Option
    >>> part = [Option(0.0, cost, cost) for cost in (1, 2, 3)]
    >>> space = Space(ItemBatch.of([part, part]), budget_nano=4)
    >>> AgentTts(trials=20).maximise(space, lambda choice: float(choice[0] - choice[1])).choice
    array([2, 0])
    """

    trials: int = 50
    """Runs of the objective."""
    proposer: Proposer = rule
    seed: int = 0

    def allocate(self, batch: ItemBatch, budget_nano: int) -> Allocation:
        return LAGRANGIAN.allocate(batch, budget_nano)

    def maximise(
        self, space: Space, objective: Objective, first: Sequence[Sequence[int]] = ()
    ) -> AllocationSearch:
        """Return the best choice that was tried within the budget.

        Args:
            space: parts, their options, and the budget for expected costs.
            objective: is run `trials` times at most, each time with another choice.
            first: choices to try before any proposal.
        """
        room_nano(space.batch, space.budget_nano)
        rng = np.random.default_rng(self.seed)
        archive: list[AllocationTrial] = []
        seen: set[tuple[int, ...]] = set()
        dropped = idle = 0
        proposed: Sequence[Sequence[int]] = first or [space.batch.cheapest.tolist()]
        while idle < IDLE:
            idle += 1
            for one in proposed:
                choice = tuple(int(k) for k in one)
                if not space.fits(choice):
                    dropped += 1
                elif choice not in seen and len(archive) < self.trials:
                    seen.add(choice)
                    archive.append(AllocationTrial(choice, float(objective(np.array(choice)))))
                    idle = 0
            if len(archive) >= self.trials:  # nothing is asked for that nobody would try
                break
            proposed = self.proposer(space, archive, rng)
        if not archive:
            raise InputError("nothing that was proposed fits the budget; propose something cheaper")
        best = max(archive, key=lambda trial: trial.value)
        return AllocationSearch(np.array(best.choice), best.value, tuple(archive), dropped)


AGENT_TTS = AgentTts()
"""The allocator `agent-tts`."""
CARD = SystemCard(
    name="agent-tts",
    label="AgentTTS",
    meaning="Tries who does which part of a task with how many samples, and learns from each trial",
    kind="allocator",
    make=AGENT_TTS,
    paper="2508.00890",
    page="docs/research/parts.md",
    place=50,
)

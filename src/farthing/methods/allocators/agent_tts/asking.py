"""AgentTTS with an LLM that proposes: what it is told, and what is read of its reply.

It sees every part's options with their costs, what was tried, and what that shows: the insights.
A reply that names nothing new within the budget costs no trial; the rule proposes then.
"""

from collections.abc import Callable, Sequence

import numpy as np

from farthing.methods.allocators.agent_tts.proposals import Proposer, Space, Trial, rule

Ask = Callable[[str], str]
"""From a prompt to an LLM's reply."""


def insights(space: Space, archive: Sequence[Trial]) -> list[str]:
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
        said += _saturated(space, archive, part)
    return said


def _saturated(space: Space, archive: Sequence[Trial], part: int) -> list[str]:
    cost, said = space.batch.expected_nano[part], []
    for one in archive:
        for other in archive:
            rest = [k for k in range(len(space.parts)) if k != part]
            alike = all(one.choice[k] == other.choice[k] for k in rest)
            dearer = cost[other.choice[part]] > cost[one.choice[part]]
            if alike and dearer and other.value <= one.value:
                less, more = (space.options[part][t.choice[part]] for t in (one, other))
                said.append(f"{space.parts[part]}: {more} was no better than {less}")
    return list(dict.fromkeys(said))


def asking(ask: Ask, beside: Proposer = rule) -> Proposer:
    """Return a proposer that asks an LLM; where its reply has nothing new, the rule proposes.

    >>> from farthing.budgets.pacing.base import Option
    >>> from farthing.methods.allocators.base import Batch
    >>> space = Space(Batch.of([[Option(0, 1, 1), Option(0, 2, 2)]]), 2)
    >>> asking(lambda prompt: "part 1 = option 2")(space, [], np.random.default_rng(0))
    [(1,)]
    """

    def propose(
        space: Space, archive: Sequence[Trial], generator: np.random.Generator
    ) -> Sequence[Sequence[int]]:
        seen = {trial.choice for trial in archive}
        read = [one for one in choices(space, ask(prompt(space, archive))) if one not in seen]
        return (
            [*read] if any(map(space.fits, read)) else [*read, *beside(space, archive, generator)]
        )

    return propose


def prompt(space: Space, archive: Sequence[Trial]) -> str:
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

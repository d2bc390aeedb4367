"""Hooks of the generation, applied again to whole episodes: training sees what was drawn from."""

from collections.abc import Sequence

from torch import Tensor

from farthing.models.generation import Context, Hook


def hooked(logits: Tensor, tokens: Tensor, ours: Tensor, hooks: Sequence[Hook]) -> Tensor:
    """Return the logits that the controller's tokens were drawn from, [B, T - 1, V].

    Roll-outs draw from what the hooks leave. So the policy is that distribution: the ratio of PPO,
    the entropy and the divergence from the reference, which is under the same hooks, are of it. A
    ratio to the network's own distribution would begin away from 1, and a token that a hook forced
    would count as the controller's choice. It has ratio 1, and no gradient.

    Args:
        logits: [B, T - 1, V] of the token after each, as the network makes them.
        tokens: [B, T] the episodes.
        ours: [B, T] whether the controller wrote the token.
        hooks: applied one after another, where a token of ours follows and nowhere else.
    """
    if not hooks:
        return logits
    places = ours[:, 1:].nonzero(as_tuple=True)
    contexts = [
        Context(ids[: at + 1], begun)
        for ids, begins in zip(tokens.tolist(), _begins(ours), strict=True)
        for at, begun in begins
    ]
    rows = logits[places]
    for hook in hooks:
        rows = hook(rows, contexts)
    return logits.index_put(places, rows)


def _begins(ours: Tensor) -> list[list[tuple[int, int]]]:
    """Return, for each token of ours, the place before it and how long its turn's prompt was."""
    found = []
    for row in ours.tolist():
        places, begun = [], 0
        for at in range(1, len(row)):
            if row[at]:
                begun = begun if row[at - 1] else at
                places.append((at - 1, begun))
        found.append(places)
    return found

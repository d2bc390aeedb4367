"""Hooks of a controller's logits: what it may not write, or has to, whatever it has learned.

A hook is made for a voice, since it is the voice that knows which tokens a text is. It is a pure
function of logits and contexts (`models/generation.py`), and holds wherever the controller writes:
in roll-outs, in the losses of its training, and when it is evaluated.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from farthing_lab.corl.rollouts import Voice
from farthing_lab.models.generation import Context, Hook, without

OPENING = ("<call>", "<answer>")
"""What ends a controller's thinking."""


LogitsHook = Callable[[Voice], Hook]
"""What is registered under `farthing.logits_hooks`: returns the hook for a controller; an
InputError says that its tokens do not allow it."""


def no_calls(voice: Voice, /) -> Hook:
    """Have a controller answer by itself: what a call begins with, and an answer does not, is out.

    That is one token. Where a tag is several, a call may still be spelt in other ones; it is for
    rules without experts to make that useless.
    """
    call, answer = tuple(voice.encode("<call>")), tuple(voice.encode("<answer>"))
    pairs = enumerate(zip(call, answer, strict=False))
    same = next(at for at, (one, other) in pairs if one != other)
    forbid = without(call[same])

    def answer_only(logits: Any, contexts: Sequence[Context]) -> Any:
        free = [[tuple(one.ids[len(one.ids) - same :]) != call[:same]] for one in contexts]
        return logits.where(logits.new_tensor(free).bool(), forbid(logits, contexts))

    return answer_only


@dataclass(frozen=True)
class ThinkingLimit:
    """Ends a turn's thinking: where no tag is open after so many tokens, one is opened.

    Whether that is a call or an answer is still the controller's choice. It is ours; cutting
    thoughts off by force is budget forcing (arXiv 2501.19393).
    """

    tokens: int = 32

    def __call__(self, voice: Voice, /) -> Hook:
        tags = [tuple(voice.encode(tag)) for tag in OPENING]

        def limit(logits: Any, contexts: Sequence[Context]) -> Any:
            allowed = []  # of each row, the tokens that may follow; none where any may
            for context in contexts:
                taken = tuple(context.ids[context.begun :])
                thought, forced = taken[: self.tokens], taken[self.tokens :]
                n, free = len(forced), len(taken) < self.tokens
                free = free or any(tag in voice.decode(thought) for tag in OPENING)
                fitting = [tag[n] for tag in tags if len(tag) > n and tag[:n] == forced]
                allowed.append([] if free else fitting)
            late = [row for row, some in enumerate(allowed) if some]
            if not late:
                return logits
            kept = logits.new_full((len(late), logits.shape[1]), -float("inf"))
            for row, at in enumerate(late):
                kept[row, allowed[at]] = 0.0
            rows = logits.new_tensor(late).long()
            return logits.index_add(0, rows, kept)

        return limit


THINKING_LIMIT = ThinkingLimit()

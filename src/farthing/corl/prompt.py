"""What a controller is told: the mode, its budget, the experts with their prices, the question.

`compact` is for embedded controllers, which learned what a mode means: the mode's word, a colon and
the question. `plain` says all of it in English, and forbids nothing. `forbidding` asks to avoid
calls: it is there to show that such a prompt keeps a controller from ever finding out what calls
are worth.
"""

from collections.abc import Sequence
from typing import Literal, get_args

from farthing.corl.base import Expert, Mode, Segment
from farthing.errors import InputError
from farthing.models.base import Message
from farthing.money import dollars
from farthing.tasks.templates import BUILT_IN, Prompts
from farthing.traces.trace_kind import CONTROLLER

Style = Literal["compact", "plain", "forbidding"]
STYLES: tuple[Style, ...] = get_args(Style)


def prompt(
    style: Style,
    mode: Mode,
    experts: Sequence[Expert],
    question: str,
    prompts: Prompts = BUILT_IN,
) -> tuple[Message, ...]:
    """Return the messages that begin an episode.

    Args:
        style: how it is said.
        mode: what the controller is told about money.
        experts: whom it may call.
        question: what is asked, its choices included.
        prompts: the texts of `plain` (`controller`) and `forbidding` (`controller-forbidding`).

    Raises:
        InputError: there is no such style, or a text cannot be used.

    >>> [one] = prompt("compact", Mode("low", 0), (), "c=b*7+2;a=4;b=a*3+5;c?")
    >>> one.content
    'low:c=b*7+2;a=4;b=a*3+5;c?'
    """
    if style not in STYLES:
        raise InputError(f"the style is '{style}'; give one of {', '.join(STYLES)}")
    if style == "compact":
        return (Message("user", f"{mode.name}:{question}"),)
    name = CONTROLLER if style == "plain" else f"{CONTROLLER}-forbidding"
    lines = [f"- {expert.name}: {expert.price or 'price unknown'}" for expert in experts]
    return prompts[name].fill(
        {"question": question},
        {
            "mode": mode.name,
            "budget": dollars(mode.budget_nano),
            "experts": "\n".join(lines) or "- none",
        },
    )


def conversation(begun: Sequence[Message], segments: Sequence[Segment]) -> tuple[Message, ...]:
    """Return what the controller is sent: the prompt, and what was written since.

    An embedded model reads the messages as one text, without anything between them.
    """
    said = (
        Message("assistant" if segment.author == "controller" else "user", segment.text)
        for segment in segments
    )
    return (*begun, *said)

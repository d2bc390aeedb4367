"""A controller: a language model that answers by itself, or calls others in free text."""

from dataclasses import dataclass
from typing import ClassVar

from farthing.errors import UnknownNameError
from farthing.methods.base import Method, Variant
from farthing_lab.corl.base import Mode
from farthing_lab.corl.episode import Rules


@dataclass(frozen=True)
class ControllerPolicy:
    """Decides in free text: the model that writes it is one of the models room.

    It has no `decide(state)`: what it does next is read from what it writes, step by step; see
    `episode`. Its parameter is the mode, by name.

    >>> ControllerPolicy(Rules((), "compact"), (Mode("low", 10), Mode("high", 99))).mode("high")
    Mode(name='high', budget_nano=99)
    """

    space: ClassVar = "text"

    rules: Rules
    modes: tuple[Mode, ...]
    """From the cheapest."""

    def mode(self, name: str) -> Mode:
        for mode in self.modes:
            if mode.name == name:
                return mode
        raise UnknownNameError("mode", name, [mode.name for mode in self.modes])


CORL = Method(
    name="corl",
    label="CORL",
    meaning="A controller LLM that answers itself or calls experts in text, under a budget mode",
    policy="farthing_lab.corl.policy:ControllerPolicy",
    paper="2511.02755",
    action_spaces=("text",),
    replayable=False,
    extras=("lm",),
    calibration="none",
    variants=lambda _: [
        Variant("corl", "CORL", None, "what experts reply depends on what it writes")
    ],
)

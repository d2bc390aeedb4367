"""A controller: a language model that answers by itself, or calls others in free text."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from numpy.typing import NDArray

from farthing.errors import UnknownNameError
from farthing.methods.base import Method, Variant
from farthing_lab.corl.base import Expert, Mode
from farthing_lab.corl.episode import Play, Rules, begin


@dataclass(frozen=True)
class ControllerPolicy:
    """Decides in free text: the model that writes it is one of the models room.

    It has no `decide(state)`: what it does next is read from what it writes, step by step; see
    `episode`. Its parameter is the mode, by name.
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

    def begin(self, question: str, mode: str) -> Play:
        """Return an episode before its first turn; raises like `mode`.

        >>> policy = ControllerPolicy(Rules((), "compact"), (Mode("low", 10), Mode("high", 99)))
        >>> policy.begin("a=4;a?", "high").messages[0].content
        'high:a=4;a?'
        """
        return begin(self.rules, question, self.mode(mode))

    def to_state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        return {}, {
            "style": self.rules.style,
            "most_turns": self.rules.most_turns,
            "experts": [[expert.name, expert.price] for expert in self.rules.experts],
            "modes": [[mode.name, mode.budget_nano] for mode in self.modes],
        }

    @classmethod
    def from_state(cls, arrays: Mapping[str, NDArray[Any]], settings: Mapping[str, Any]) -> Self:
        experts = tuple(Expert(name, price) for name, price in settings["experts"])
        rules = Rules(experts, settings["style"], settings["most_turns"])
        return cls(rules, tuple(Mode(name, nano) for name, nano in settings["modes"]))


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

"""A controller that answers a gateway's requests, in each of its modes; it promises nothing."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from farthing.models.base import Model
from farthing.models.config import ModelsConfig
from farthing.runtime.answer import Answer, Ending, Returned
from farthing.runtime.base import Agent
from farthing.runtime.meter import Meter
from farthing.tasks.base import Question, Task
from farthing.traces.trace_kind import CONTROLLER
from farthing_lab.corl.base import Ending as EpisodeEnding
from farthing_lab.corl.base import Mode
from farthing_lab.corl.live import (
    Controlled,
    Controller,
    check_symbols,
    controller_of,
    reads_symbols_alone,
)
from farthing_lab.corl.pool import ControllerPool, pool_of

_ENDED: Mapping[EpisodeEnding | None, tuple[Ending, str]] = {
    "answer": ("policy", "the controller answered in turn {turns} of {most}"),
    "turns": ("policy", "the controller gave no answer in {turns} turns"),
    "budget": ("budget", "the controller could not be paid for more than {turns} turns of {most}"),
    "failure": ("failure", "a model failed after {turns} turns of {most}"),
}
"""Who ended it for a client, and how that is said."""


@dataclass(frozen=True)
class ServedController:
    """A pool's controller in one of its modes, as a gateway serves it."""

    whole_replies: ClassVar = False
    certificate: ClassVar = None
    certificate_id: ClassVar = None
    value: ClassVar = None
    reliability: ClassVar = None
    question_budget_nano: ClassVar = None
    invalid_because: ClassVar = ()

    told: Mode
    """What it is told about money; a request's own budget is what it may spend."""
    pool: ControllerPool
    controller: Controller
    """Its meter is the request's, each time."""
    symbols_alone: bool
    """Whether it reads the project's own symbols and nothing else."""

    @property
    def mode(self) -> str:
        return self.told.name

    async def answer(self, question: Question, *, budget_nano: int | None, meter: Meter) -> Answer:
        """Have the controller answer a question.

        Raises:
            InputError: it cannot read the question.
        """
        self.pool.questions.check(question.text)
        if self.symbols_alone:
            check_symbols(self.pool, question.text)
        controller = replace(self.controller, meter=meter)
        done = await controller.answer(question, self.told, budget_nano=budget_nano)
        return _answer(done, controller.rules.most_turns)

    def answered(self, done: Answer) -> bool:
        """Return whether the controller ended it, also where it had no answer in all its turns."""
        return done.ended_by == "policy"

    def says(self, done: Answer) -> str:
        """Say that nothing is promised, which mode decided, and how it ended."""
        return f"Nothing is promised: in mode {self.mode} {'; '.join(done.caveats)}."


@dataclass(frozen=True)
class PoolDecider:
    """A pool's controller before its models are opened: the `controller` of `farthing.deciders`."""

    pool: ControllerPool

    @classmethod
    def find(cls, name: str) -> "PoolDecider":
        """Return the controller of a folder, of a pool's file, or of a pool that ships."""
        folder = Path(name)
        found = pool_of(folder, None) if folder.is_dir() else pool_of(None, name)
        return cls(found.pool)

    @property
    def models(self) -> ModelsConfig:
        return self.pool.models

    @property
    def task(self) -> Task:
        return self.pool.grader()

    @property
    def max_tokens(self) -> int:
        return self.pool.max_tokens

    def served(
        self, models: Mapping[str, Model]
    ) -> tuple[tuple[Agent, ...], dict[str, ServedController]]:
        """Return whom it may ask, and who decides in each mode, the cheapest first."""
        controller, symbols = controller_of(self.pool, models), reads_symbols_alone(self.pool)
        return tuple(controller.experts), {
            mode.name: ServedController(mode, self.pool, controller, symbols)
            for mode in self.pool.modes
        }


def _answer(done: Controlled, most_turns: int) -> Answer:
    episode = done.episode
    given = episode.answer
    ended_by, said = _ENDED[episode.ended_by]
    said = said.format(turns=episode.turns, most=most_turns)
    unpaid = f"{episode.refused} of its calls could not be paid"
    return Answer(
        id=done.trace.id,
        answers=() if given is None else (Returned(given, 1.0, episode.turns, CONTROLLER),),
        best=given,
        cost_nano=episode.cost_nano,
        rounds=episode.turns,
        most_rounds=most_turns,
        bought="rounds",
        certificate=None,
        caveats=(said, unpaid) if episode.refused else (said,),
        ended_by=ended_by,
        trace=done.trace,
    )

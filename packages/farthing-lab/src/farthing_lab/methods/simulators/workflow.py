"""A workflow: parts that depend on each other, a choice of models for each, money and time.

A part can be started once all that it comes after is done. Who starts it chooses a model and how
many samples are drawn side by side. Each sample is right with the model's chance, and a checker
(tests, a proof checker) finds out. A part that failed can be started again.

`Workflow` is a `Simulator`: its actions start a part, which reserves the most that it can cost, or
wait for the next part to end, which gives back what was not used. What is not known yet is not in
its state: of a part under way it has how long that has run, and no more.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np

from farthing.errors import ConfigError, InputError
from farthing.money import nano_from_usd
from farthing.traces.arrays import FloatArray
from farthing_lab.methods.planners.base import PricedAction, Remaining, Transition
from farthing_lab.methods.simulators.workflow_batch import follow, usual_start
from farthing_lab.methods.simulators.workflow_parts import (
    PartChoice,
    RunningPart,
    WorkflowPart,
    WorkflowState,
    still_running,
)

WAIT = PricedAction("wait", 0, 0)
"""Goes on to the next event."""
MILLION = 1_000_000
Price = Annotated[float, msgspec.Meta(ge=0)]


@dataclass(frozen=True)
class Workflow:
    """Parts in an order in which each comes after those that it depends on."""

    parts: tuple[WorkflowPart, ...]

    def __post_init__(self) -> None:
        if not self.parts:
            raise InputError("a workflow has no parts; give at least one")
        for place, part in enumerate(self.parts):
            if not part.choices:
                raise InputError(f"the part '{part.name}' has no model; give at least one")
            if not all(0 <= before < place for before in part.after):
                raise InputError(f"the part '{part.name}' comes after itself or a later part")

    @property
    def begin(self) -> WorkflowState:
        """The state in which nothing is done."""
        return WorkflowState((False,) * len(self.parts))

    @property
    def shortest_s(self) -> float:
        """The fewest seconds in which all can be done, whatever it costs."""
        ends: list[float] = []
        for part in self.parts:
            begun = max((ends[before] for before in part.after), default=0.0)
            ends.append(begun + min(choice.shortest_s for choice in part.choices))
        return max(ends)

    def ready(self, state: WorkflowState) -> list[int]:
        """Return the parts that can be started."""
        busy = {one.part for one in state.under_way}
        return [
            place
            for place, part in enumerate(self.parts)
            if not state.done[place]
            and place not in busy
            and all(state.done[before] for before in part.after)
        ]

    def starts(self, state: WorkflowState) -> list[tuple[int, int]]:
        """Return what can be started, as (part, choice), in the order of the actions."""
        return [
            (place, at)
            for place in self.ready(state)
            for at in range(len(self.parts[place].choices))
        ]

    def actions(self, state: WorkflowState) -> Sequence[PricedAction]:
        if all(state.done):
            return []
        found = []
        for place, at in self.starts(state):
            part = self.parts[place]
            choice = part.choices[at]
            name = f"{part.name}: {choice.name}"
            found.append(PricedAction(name, choice.expected_nano, choice.largest_nano))
        return [*found, WAIT] if state.under_way else found

    def step(
        self, state: WorkflowState, action: int, rng: np.random.Generator
    ) -> Transition[WorkflowState]:
        starts = self.starts(state)
        if action < len(starts):
            place, at = starts[action]
            begun = WorkflowState(state.done, (*state.under_way, RunningPart(place, at)))
            return Transition(begun, self.parts[place].choices[at].largest_nano)
        return self._waited(state, rng)

    def _waited(self, state: WorkflowState, rng: np.random.Generator) -> Transition[WorkflowState]:
        ends = []
        for one in state.under_way:
            choice = self.parts[one.part].choices[one.choice]
            ends.append(still_running(choice, one.elapsed_s, 1, rng))
        waits = [
            float(end.seconds[0]) - one.elapsed_s
            for end, one in zip(ends, state.under_way, strict=True)
        ]
        waited, done, going, back = min(waits), list(state.done), [], 0
        for end, one, wait in zip(ends, state.under_way, waits, strict=True):
            if wait > waited:
                going.append(RunningPart(one.part, one.choice, one.elapsed_s + waited))
                continue
            done[one.part] = bool(end.right[0])
            choice = self.parts[one.part].choices[one.choice]
            back += choice.largest_nano - int(end.cost_nano[0])
        return Transition(WorkflowState(tuple(done), tuple(going)), -back, waited)

    def value(self, state: WorkflowState) -> float:
        return float(all(state.done))

    def score(self, state: WorkflowState) -> float:
        under = sum(self.parts[o.part].choices[o.choice].any_right for o in state.under_way)
        return (sum(state.done) + under) / len(self.parts)

    def usual(self, state: WorkflowState, left: Remaining) -> int | None:
        starts = self.starts(state)
        for place in self.ready(state):
            at = usual_start(self.parts, place, state, left)
            if at is not None:
                return starts.index((place, at))
        return len(starts) if state.under_way else None

    def follow(
        self,
        state: WorkflowState,
        actions: Sequence[int],
        left: Remaining,
        n: int,
        rng: np.random.Generator,
    ) -> FloatArray:
        starts = self.starts(state)
        first = [starts[action] if action < len(starts) else None for action in actions]
        return follow(self.parts, state, first, left, n, rng)


class _WorkflowModel(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    input_per_million: Price = 0.0
    output_per_million: Price
    tokens_per_second: Annotated[float, msgspec.Meta(gt=0)]
    latency_s: Annotated[float, msgspec.Meta(ge=0)] = 0.0


class _PartSection(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: Annotated[str, msgspec.Meta(min_length=1)]
    success: dict[str, Annotated[float, msgspec.Meta(ge=0, le=1)]]
    tokens: dict[str, tuple[int, int]]
    samples: tuple[Annotated[int, msgspec.Meta(ge=1, le=64)], ...] = (1,)
    input_tokens: Annotated[int, msgspec.Meta(ge=0)] = 0
    after: tuple[str, ...] = ()


class _WorkflowFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    models: dict[str, _WorkflowModel]
    parts: tuple[_PartSection, ...]


def read_workflow(path: Path) -> Workflow:
    """Read a workflow."""
    try:
        text = path.read_text(encoding="utf-8")
        found = msgspec.toml.decode(text, type=_WorkflowFile)
    except OSError as error:
        raise ConfigError(str(path), "file", (error.strerror or str(error)).lower()) from None
    except msgspec.ValidationError as error:
        problem, _, where = str(error).partition(" - at `$.")
        raise ConfigError(str(path), where.rstrip("`") or "file", problem) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConfigError(str(path), "file", f"is not TOML: {error}") from None
    return _workflow(found, str(path))


def _workflow(found: _WorkflowFile, path: str) -> Workflow:
    places: dict[str, int] = {}
    parts = []
    for at, part in enumerate(found.parts):
        where = f"parts[{at}]"
        for before in part.after:
            if before not in places:
                problem = f"no part '{before}' stands above '{part.name}'; put it there"
                raise ConfigError(path, f"{where}.after", problem)
        if part.name in places:
            raise ConfigError(path, f"{where}.name", f"'{part.name}' is there twice; rename one")
        if not part.success:
            raise ConfigError(path, f"{where}.success", "names no model; give at least one")
        parts.append(_part(part, found, path, where, places))
        places[part.name] = at
    try:
        return Workflow(tuple(parts))
    except InputError as error:
        raise ConfigError(path, "parts", str(error)) from None


def _part(
    part: _PartSection, found: _WorkflowFile, path: str, where: str, places: dict[str, int]
) -> WorkflowPart:
    choices = []
    for model, success in part.success.items():
        if model not in found.models:
            known = ", ".join(found.models) or "none"
            raise ConfigError(path, f"{where}.success", f"unknown model '{model}'; known: {known}")
        if model not in part.tokens:
            problem = f"says nothing of '{model}'; give its least and most tokens"
            raise ConfigError(path, f"{where}.tokens", problem)
        told = found.models[model]
        figures: dict[str, Any] = {
            "tokens": part.tokens[model],
            "input_nano": part.input_tokens * _token_nano(told.input_per_million),
            "token_nano": _token_nano(told.output_per_million),
            "latency_s": told.latency_s,
            "tokens_per_s": told.tokens_per_second,
        }
        for samples in sorted(set(part.samples)):
            try:
                choices.append(PartChoice(model, success, samples=samples, **figures))
            except InputError as error:
                raise ConfigError(path, where, str(error)) from None
    return WorkflowPart(part.name, tuple(choices), tuple(places[before] for before in part.after))


def _token_nano(per_million: float) -> int:
    return nano_from_usd(Decimal(repr(per_million)) / MILLION)

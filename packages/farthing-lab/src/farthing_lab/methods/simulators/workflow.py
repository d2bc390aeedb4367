"""A workflow: parts that depend on each other, a choice of models for each, money and time.

A part can be started once all that it comes after is done. Who starts it chooses a model and how
many samples are drawn side by side. Each sample is right with the model's chance, and a checker
(tests, a proof checker) finds out. A part that failed can be started again.

`Workflow` is a `Simulator`: its actions start a part, which reserves the most that it can cost, or
wait for the next part to end, which gives back what was not used. What is not known yet is not in
its state: of a part under way it has how long that has run, and no more.

    length of a sample   uniform on its range of tokens
    time of a sample     latency + length / speed
    a part ends          with its first right sample; where none is right with the last one
    cost                 of all samples, whenever they end

A plan needs a thousand executions for each decision, so `follow` makes them together, from event
to event, as array arithmetic; a test holds it to `Workflow.step`. Executions follow the usual way:
an even share for each part, of the money by the number of parts not begun, of the time by the
number of parts on the longest way to the end. Of the choices that fit both on average it takes the
one that is likeliest right. Where none fits it takes, of those that can be paid, the fastest.

Source: the setting is that of MCPP (arXiv 2605.06110), as its abstract says it; independent
samples, the uniform lengths, ending with the first right sample and the usual way are ours.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property, lru_cache
from math import ceil
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np

from farthing.errors import ConfigError, InputError
from farthing.money import nano_from_usd
from farthing.traces.arrays import BoolArray, FloatArray, IntArray
from farthing_lab.methods.planners.base import PricedAction, Remaining, Transition

REDRAWS = 64
"""Draws of a part under way until one is later than it has run; then it takes its longest."""


@dataclass(frozen=True)
class PartChoice:
    """One model with a number of samples, for one part."""

    model: str
    success: float
    """Chance that a sample is right."""
    tokens: tuple[int, int]
    """Least and most tokens that a sample writes."""
    samples: int = 1
    """Drawn side by side."""
    input_nano: int = 0
    """What a sample costs before it writes, in nano-dollars."""
    token_nano: int = 0
    """What a token costs that is written, in nano-dollars."""
    latency_s: float = 0.0
    """Until the first token."""
    tokens_per_s: float = 100.0

    def __post_init__(self) -> None:
        low, high = self.tokens
        if not 0.0 <= self.success <= 1.0:
            raise InputError(f"'{self.model}' has a chance of {self.success}; it has to be 0 to 1")
        if not 0 < low <= high:
            raise InputError(
                f"'{self.model}' writes {low} to {high} tokens; give 1 or more, in order"
            )
        if self.samples < 1 or self.tokens_per_s <= 0.0 or self.latency_s < 0.0:
            raise InputError(f"'{self.model}' needs a sample or more, and a speed above 0")
        if self.input_nano < 0 or self.token_nano < 0:
            raise InputError(f"'{self.model}' costs less than $0; a price has to be $0 or more")

    @property
    def name(self) -> str:
        """What tables call it.

        >>> PartChoice("small", 0.5, (10, 20), 3).name
        'small x 3'
        """
        return self.model if self.samples == 1 else f"{self.model} x {self.samples}"

    @cached_property
    def any_right(self) -> float:
        return 1.0 - (1.0 - self.success) ** self.samples

    @cached_property
    def largest_nano(self) -> int:
        return self.samples * (self.input_nano + self.tokens[1] * self.token_nano)

    @cached_property
    def expected_nano(self) -> int:
        written = (self.tokens[0] + self.tokens[1]) * self.token_nano
        return self.samples * self.input_nano + ceil(self.samples * written / 2)

    @cached_property
    def shortest_s(self) -> float:
        """The fewest seconds that it can take."""
        return self.latency_s + self.tokens[0] / self.tokens_per_s

    @cached_property
    def longest_s(self) -> float:
        """The most seconds that it can take."""
        return self.latency_s + self.tokens[1] / self.tokens_per_s

    @cached_property
    def mean_s(self) -> float:
        """Seconds of one sample on average: what is hoped for where the first is right."""
        return self.latency_s + (self.tokens[0] + self.tokens[1]) / 2 / self.tokens_per_s


@dataclass(frozen=True)
class WorkflowPart:
    """One part of a workflow."""

    name: str
    choices: tuple[PartChoice, ...]
    after: tuple[int, ...] = ()
    """Parts that have to be done before, by their place."""


@lru_cache(maxsize=256)
def ahead_of(parts: tuple[WorkflowPart, ...]) -> tuple[int, ...]:
    """Return for each part how many are on the longest way from it to the end, with itself."""
    ahead = [1] * len(parts)
    for place in reversed(range(len(parts))):
        for before in parts[place].after:
            ahead[before] = max(ahead[before], ahead[place] + 1)
    return tuple(ahead)


@dataclass(frozen=True)
class RunningPart:
    """A part under way."""

    part: int
    choice: int
    elapsed_s: float = 0.0


@dataclass(frozen=True)
class WorkflowState:
    """How far a workflow is; its clock is the deadline that is left."""

    done: tuple[bool, ...]
    under_way: tuple[RunningPart, ...] = ()


@dataclass(frozen=True)
class PartOutcomes:
    """What became of a choice that was drawn n times."""

    seconds: FloatArray
    """[n] until it ended."""
    right: FloatArray
    """[n] 1 where a sample was right, else 0."""
    cost_nano: FloatArray
    """[n] whole nano-dollars."""


def drawn(choice: PartChoice, uniform: FloatArray) -> PartOutcomes:
    """Turn uniform numbers into what became of a choice.

    Args:
        choice: what was started.
        uniform: [n, K, 2] on [0, 1), K at least the number of samples: length, and right or not.
    """
    low, high = choice.tokens
    length = low + np.floor(uniform[:, : choice.samples, 0] * (high - low + 1))
    right = uniform[:, : choice.samples, 1] < choice.success
    seconds = choice.latency_s + length / choice.tokens_per_s
    any_right: BoolArray = np.asarray(right.any(axis=1))
    first = np.where(right, seconds, np.inf).min(axis=1)
    took: FloatArray = np.where(any_right, first, seconds.max(axis=1))
    cost: FloatArray = choice.samples * choice.input_nano + length.sum(axis=1) * choice.token_nano
    return PartOutcomes(took, any_right.astype(np.float64), cost)


def still_running(
    choice: PartChoice, elapsed_s: float, n: int, rng: np.random.Generator
) -> PartOutcomes:
    """Draw n times what becomes of a choice that has run so long and has not ended."""
    found = drawn(choice, rng.random((n, choice.samples, 2)))
    seconds, right, cost = found.seconds.copy(), found.right.copy(), found.cost_nano.copy()
    if elapsed_s > 0.0:
        for _ in range(REDRAWS):
            early = np.flatnonzero(seconds <= elapsed_s)
            if not early.size:
                break
            again = drawn(choice, rng.random((early.size, choice.samples, 2)))
            seconds[early], right[early] = again.seconds, again.right
            cost[early] = again.cost_nano
        seconds[:] = np.where(seconds <= elapsed_s, max(choice.longest_s, elapsed_s), seconds)
    return PartOutcomes(seconds, right, cost)


ROUNDS = 10_000
"""Events after which an execution has failed."""


@dataclass(frozen=True)
class _ChoiceFigures:
    """Of a part's choices, [K]."""

    largest: IntArray
    expected: IntArray
    seconds: FloatArray
    right: FloatArray
    order: IntArray
    """Likeliest right first; of equals the cheaper, then the faster."""


@lru_cache(maxsize=256)
def _figures(choices: tuple[PartChoice, ...]) -> _ChoiceFigures:
    largest = np.array([one.largest_nano for one in choices], dtype=np.int64)
    expected = np.array([one.expected_nano for one in choices], dtype=np.int64)
    seconds = np.array([one.mean_s for one in choices])
    right = np.array([one.any_right for one in choices])
    return _ChoiceFigures(
        largest, expected, seconds, right, np.lexsort((seconds, expected, -right))
    )


def even_share(
    choices: tuple[PartChoice, ...],
    left_nano: IntArray,
    left_s: FloatArray,
    parts: IntArray,
    ahead: int,
) -> IntArray:
    """Return which choice the usual way starts, [B]; -1 where none can be paid.

    Args:
        choices: of the part.
        left_nano: [B] money that is left.
        left_s: [B] time that is left.
        parts: [B] how many parts are not begun, with this one.
        ahead: parts on the longest way from this one to the end, with itself.
    """
    of = _figures(choices)
    payable = of.largest <= left_nano[:, None]
    fits = payable & (of.expected <= (left_nano // np.maximum(parts, 1))[:, None])
    fits &= of.seconds <= (left_s / ahead)[:, None]
    best = of.order[fits[:, of.order].argmax(axis=1)]
    fastest = np.where(payable, of.seconds, np.inf).argmin(axis=1)
    at: IntArray = np.where(fits.any(axis=1), best, fastest)
    return np.where(payable.any(axis=1), at, -1)


class _Rows:
    def __init__(
        self, parts: tuple[WorkflowPart, ...], rows: int, state: WorkflowState, left: Remaining
    ) -> None:
        n = len(parts)
        self.parts, self.ahead = parts, ahead_of(parts)
        self.done: BoolArray = np.tile(np.array(state.done), (rows, 1))
        self.ends = np.full((rows, n), np.inf)
        self.right = np.zeros((rows, n), dtype=bool)
        self.back = np.zeros((rows, n), dtype=np.int64)
        self.nano = np.full(rows, left.nano, dtype=np.int64)
        self.clock = np.zeros(rows)
        self.deadline = left.seconds
        self.lost = np.zeros(rows, dtype=bool)

    def running(self, state: WorkflowState, n: int, ways: int, rng: np.random.Generator) -> None:
        """Draw how the parts that are under way will end, n times, the same for each way."""
        for one in state.under_way:
            choice = self.parts[one.part].choices[one.choice]
            found = still_running(choice, one.elapsed_s, n, rng)
            back = choice.largest_nano - found.cost_nano.astype(np.int64)
            self.ends[:, one.part] = np.tile(found.seconds - one.elapsed_s, ways)
            self.right[:, one.part] = np.tile(found.right > 0.0, ways)
            self.back[:, one.part] = np.tile(back, ways)

    def begin(self, rows: IntArray, place: int, at: int, uniform: FloatArray) -> None:
        """Start a part with a choice in some rows; uniform: [len(rows), K, 2]."""
        choice = self.parts[place].choices[at]
        found = drawn(choice, uniform)
        self.nano[rows] -= choice.largest_nano
        self.back[rows, place] = choice.largest_nano - found.cost_nano.astype(np.int64)
        self.ends[rows, place] = self.clock[rows] + found.seconds
        self.right[rows, place] = found.right > 0.0

    def usual(self, going: BoolArray, uniform: FloatArray) -> None:
        """Start all that is ready, in the rows that go on; uniform: [B, N, K, 2]."""
        for place, part in enumerate(self.parts):
            ready = going & ~self.done[:, place] & ~np.isfinite(self.ends[:, place])
            for before in part.after:
                ready &= self.done[:, before]
            rows = np.flatnonzero(ready)
            if not rows.size:
                continue
            begun = self.done[rows] | np.isfinite(self.ends[rows])
            at = even_share(
                part.choices,
                self.nano[rows],
                self.deadline - self.clock[rows],
                (~begun).sum(axis=1),
                self.ahead[place],
            )
            for one in np.unique(at[at >= 0]).tolist():
                chosen = rows[at == one]
                self.begin(chosen, place, one, uniform[chosen, place])

    def advance(self, going: BoolArray) -> None:
        """Go on to each row's next event; rows that wait for nothing have failed."""
        after = self.ends.min(axis=1)
        self.lost |= going & ~np.isfinite(after)
        going = going & np.isfinite(after)
        ended = going[:, None] & (self.ends <= after[:, None])
        self.clock = np.where(going, after, self.clock)
        self.lost |= self.clock > self.deadline
        self.done |= ended & self.right
        self.nano += np.where(ended, self.back, 0).sum(axis=1)
        self.ends = np.where(ended, np.inf, self.ends)

    @property
    def going(self) -> BoolArray:
        """[B] the rows that are neither done nor lost."""
        return ~self.lost & ~self.done.all(axis=1)


def follow(
    parts: tuple[WorkflowPart, ...],
    state: WorkflowState,
    first: Sequence[tuple[int, int] | None],
    left: Remaining,
    n: int,
    rng: np.random.Generator,
) -> FloatArray:
    """Return whether n executions are done in time and budget that begin in each way, [A, n].

    Execution m of every way is drawn with the same random numbers, event by event. A way to begin
    is a part with a choice, or None to wait for the next event.
    """
    ways = len(first)
    rows = _Rows(parts, ways * n, state, left)
    most = max(choice.samples for part in parts for choice in part.choices)
    shape = n, len(parts), most, 2

    def uniform() -> FloatArray:
        return np.tile(rng.random(shape), (ways, 1, 1, 1))

    rows.running(state, n, ways, rng)
    numbers, waiting = uniform(), np.zeros(ways * n, dtype=bool)
    for at, begin in enumerate(first):
        block = np.arange(at * n, (at + 1) * n)
        if begin is None:
            waiting[block] = True
        else:
            rows.begin(block, *begin, numbers[block, begin[0]])
    rows.usual(rows.going & ~waiting, numbers)
    for _ in range(ROUNDS):
        rows.advance(rows.going)
        going = rows.going
        if not going.any():
            break
        rows.usual(going, uniform())
    finished: FloatArray = (rows.done.all(axis=1) & ~rows.lost).astype(np.float64)
    return finished.reshape(ways, n)


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
        money, seconds = np.array([left.nano]), np.array([left.seconds])
        fresh = np.array([len(state.done) - sum(state.done) - len(state.under_way)])
        for place in self.ready(state):
            choices, ahead = self.parts[place].choices, ahead_of(self.parts)[place]
            at = int(even_share(choices, money, seconds, fresh, ahead)[0])
            if at >= 0:
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
    places: dict[str, int] = {}
    parts = []
    for at, part in enumerate(found.parts):
        where = f"parts[{at}]"
        for before in part.after:
            if before not in places:
                problem = f"no part '{before}' stands above '{part.name}'; put it there"
                raise ConfigError(str(path), f"{where}.after", problem)
        if part.name in places:
            raise ConfigError(
                str(path), f"{where}.name", f"'{part.name}' is there twice; rename one"
            )
        if not part.success:
            raise ConfigError(str(path), f"{where}.success", "names no model; give at least one")
        parts.append(_part(part, found, str(path), where, places))
        places[part.name] = at
    try:
        return Workflow(tuple(parts))
    except InputError as error:
        raise ConfigError(str(path), "parts", str(error)) from None


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
        reads, writes = (
            nano_from_usd(Decimal(repr(usd)) / MILLION)
            for usd in (told.input_per_million, told.output_per_million)
        )
        figures: dict[str, Any] = {
            "tokens": part.tokens[model],
            "input_nano": part.input_tokens * reads,
            "token_nano": writes,
            "latency_s": told.latency_s,
            "tokens_per_s": told.tokens_per_second,
        }
        for samples in sorted(set(part.samples)):
            try:
                choices.append(PartChoice(model, success, samples=samples, **figures))
            except InputError as error:
                raise ConfigError(path, where, str(error)) from None
    return WorkflowPart(part.name, tuple(choices), tuple(places[before] for before in part.after))

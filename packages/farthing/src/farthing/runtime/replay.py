"""A log that is asked again: logged requests, sent as they were to other models.

The logged answer is the reference's. Each request keeps its own system prompt, history and
parameters, so that a bundle from it is about the very requests that a gateway gets.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from typing import Any

import msgspec
from msgspec import structs

from farthing.errors import InputError
from farthing.models.adaptive import Gate
from farthing.models.base import Message, Model, Prompt, Usage
from farthing.models.config import ModelsConfig
from farthing.models.prices import TOKENS_PER_MESSAGE, TOKENS_PER_PROMPT
from farthing.models.scripted import ScriptedModel
from farthing.models.thinking import PARAMETERS, split_name
from farthing.runtime.base import (
    Agent,
    AgentReply,
    Client,
    Closable,
    CountingClient,
    SpeakingAgent,
    Turn,
)
from farthing.runtime.job import AT_ONCE, sent_mark, sold
from farthing.runtime.protocol import Clients, Independent, RecordingPlan, ask_agent
from farthing.tasks.base import Question, Task
from farthing.traces.base import Call, Trace
from farthing.traces.files import LoggedRequest, RequestLog
from farthing.traces.system import BY_ROLE, LIMIT, System, written

SENT = frozenset({LIMIT, "temperature", "top_p", "stop"})
"""Parameters that are sent again; requests with others are left out."""
LEAST_LIMIT = 1_024
"""Output tokens that a reply may have at least, where the log says no limit."""
LETTERS_PER_TOKEN = 4
"""About so many letters make a token, where the log counts none."""
OTHER_SYSTEM = "it has another system prompt"
"""Why a request is left out that could be asked again."""
AGAIN = 2
"""The round in which the reference is asked again: its reply is in the journal, in no trace."""


def parameters_of(trace: Trace, role: str) -> dict[str, Any] | None:
    """Return what a role was asked for beside its text; None where nobody knows."""
    try:
        found = None if trace.parameters is None else msgspec.json.decode(trace.parameters)
    except msgspec.DecodeError:
        return None
    if isinstance(found, dict) and isinstance(found.get(BY_ROLE), dict):
        found = found[BY_ROLE].get(role)
    return found if isinstance(found, dict) else None


def unsendable(request: LoggedRequest, reference: str) -> str | None:
    """Say why a request cannot be asked again; None where it can."""
    call = request.call(reference)
    if call is None or call.error is not None or call.answer is None:
        return f"{reference} gave no answer"
    if request.messages is None or request.messages[-1][0] != "user":
        return "the log does not hold all that was sent as text"
    # How long to think is a matter of each role.
    others = sorted((parameters_of(request.trace, reference) or {}).keys() - SENT - PARAMETERS)
    return f"it sets {', '.join(others)}" if others else None


def system_of(request: LoggedRequest) -> str:
    """Return what the system messages of a request say."""
    return "\n\n".join(text for who, text in request.messages or () if who == "system")


def drawn(requests: Sequence[LoggedRequest], n: int | None, seed: int) -> tuple[LoggedRequest, ...]:
    """Draw requests, each with the same probability; a larger sample holds every smaller one.

    Their order is that of a hash of the seed and the question's id, so that a log which has grown
    is drawn from alike.
    """

    def place(request: LoggedRequest) -> bytes:
        return sha256(f"{seed}:{request.trace.id}".encode()).digest()

    return tuple(sorted(requests, key=place)[:n])


@dataclass(frozen=True)
class LoggedAgent:
    """Answers as the log says; nobody is asked, and nothing is paid."""

    model: Model
    role: str
    calls: Mapping[str, Call]
    """By question."""

    async def act(self, turn: Turn, client: Client) -> Call:  # noqa: ARG002 - the protocol's
        """Return the logged call."""
        return structs.replace(self.calls[turn.question.id], role=self.role, model=self.model.name)


@dataclass(frozen=True)
class ReplayAgent(SpeakingAgent):
    """Sends each logged request as it was, and takes the whole reply for its answer."""

    model: Model
    role: str
    requests: Mapping[str, LoggedRequest]
    """By question."""
    reference: str
    limit: int
    """Most output tokens, where the request says none."""

    async def _speak(self, turn: Turn, client: CountingClient) -> AgentReply:
        request = self.requests[turn.question.id]
        said = parameters_of(request.trace, self.reference) or {}
        stop, temperature = said.get("stop") or (), said.get("temperature")
        prompt = Prompt(
            tuple(Message(who, text) for who, text in request.messages or ()),  # type: ignore[arg-type]  # `Messages` of texts
            max_tokens=said.get(LIMIT) or self.limit,
            temperature=1.0 if temperature is None else temperature,  # as providers have it
            top_p=1.0 if said.get("top_p") is None else said["top_p"],
            stop=(stop,) if isinstance(stop, str) else tuple(stop),
        )
        completion = await client.ask(self.model, prompt)
        return AgentReply(completion.text, completion.text.strip() or None)


@dataclass(frozen=True)
class Replay:
    """A sample of a log, and the models that it is sent to; collected as a job is."""

    file: str
    log: RequestLog
    reference: str
    """The logged model whose answers are taken for right."""
    models: ModelsConfig
    """Those that are asked, and the reference where it is asked again."""
    names: tuple[str, ...]
    """The sections of `models` that are asked each request."""
    task: Task
    n: int | None = None
    """How many requests are drawn; None: all."""
    seed: int = 0
    system_prompt: str | None = None
    """The system prompt of the requests that are drawn; None: whichever they have."""
    called: str = ""
    """The role of the reference in traces; empty: as the log calls it."""
    at_once: int = AT_ONCE

    @cached_property
    def sample(self) -> Mapping[str, LoggedRequest]:
        """The requests that were drawn, by question."""
        fit = [one for one in self.log.requests if self._why_not(one) is None]
        if not fit:
            why = "; ".join(f"{n:,}: {why}" for why, n in self.left_out.items())
            raise InputError(f"{self.file}: no request can be asked again ({why})")
        return {one.trace.id: one for one in drawn(fit, self.n, self.seed)}

    @cached_property
    def left_out(self) -> Mapping[str, int]:
        """Why requests are not asked again, and how many."""
        whys = (self._why_not(one) for one in self.log.requests)
        return Counter(why for why in whys if why is not None)

    @property
    def role(self) -> str:
        """What traces call the reference."""
        return self.called or self.reference

    @property
    def limit(self) -> int:
        """Most output tokens of a reply whose request says none: twice the longest logged one."""
        calls = (one.call(self.reference) for one in self.log.requests)
        longest = max(((call and call.output_tokens) or 0 for call in calls), default=0)
        return max(LEAST_LIMIT, 2 * longest)

    def questions(self) -> list[Question]:
        """Return the requests that were drawn."""
        return [_question(request.trace) for request in self.sample.values()]

    def system(self) -> System | None:
        """Return nothing: each trace says itself what was sent."""
        return None

    def open(self, *, workers: int = 1) -> tuple[RecordingPlan, list[Closable]]:
        """Open the models that are asked each request."""
        opened, gate = self._opened(self.names, workers)
        calls = {
            name: call
            for name, request in self.sample.items()
            if (call := request.call(self.reference)) is not None
        }
        paid_today = ScriptedModel({}, name=split_name(self.role)[0])
        logged = LoggedAgent(paid_today, self.role, calls)
        asked = tuple(self._agent(name, model) for name, model in opened.items())
        marks = {name: sent_mark(self.models, name) for name in self.names}
        plan = RecordingPlan(
            Independent((logged, *asked), 1, self.task),
            self.task,
            marks,
            gate=gate,
            stored=self._stored,
        )
        return plan, list(opened.values())

    def asked_alike(self) -> dict[str, Any]:
        """Return what all requests of the sample have in common, as a gateway's task says it."""
        sample = list(self.sample.values())
        said = [parameters_of(one.trace, self.reference) or {} for one in sample]
        systems = set(map(system_of, sample))
        plain = all(len([w for w, _ in one.messages or () if w != "system"]) == 1 for one in sample)
        limits = {one.get(LIMIT) or self.limit for one in said}
        temperatures = {one.get("temperature") for one in said}
        others = any({"top_p", "stop"} & one.keys() for one in said)
        return {
            "system": systems.pop() if len(systems) == 1 else None,
            "single": plain,
            "temperature": min((one for one in temperatures if one is not None), default=None),
            "max_tokens": max(limits),
            "alike": len(limits) == len(temperatures) == 1 and not others,
        }

    def again(self, share: float) -> "Again":
        """Return the reference, asked once more on a share of the sample."""
        n = max(1, round(share * len(self.sample)))
        few = dict(list(self.sample.items())[:n])
        return Again(self, few)

    def likely_nano(self) -> Mapping[str, float]:
        """Return the mean cost of a call of each model, if replies are as long as the logged."""
        found = {}
        for name in self.models.sections:
            price = self.models.sections[name].settings.price(self.models.prices)
            if price is not None:
                costs = [price.cost_nano(self.usage(one), 1.0) for one in self.sample.values()]
                found[name] = sum(costs) / len(costs)
        return found

    def limit_of(self, request: LoggedRequest) -> int:
        """Return the most output tokens of a reply to a request."""
        said = parameters_of(request.trace, self.reference) or {}
        return said.get(LIMIT) or self.limit

    def usage(self, request: LoggedRequest) -> Usage:
        """Return the tokens of a logged call; where it counts none, about as many as its text."""
        call = request.call(self.reference)
        letters = sum(len(text) for _, text in request.messages or ())
        around = TOKENS_PER_MESSAGE * len(request.messages or ()) + TOKENS_PER_PROMPT // 8
        read = letters // LETTERS_PER_TOKEN + around
        written = len((call and call.text) or "") // LETTERS_PER_TOKEN + 1
        if call is not None and call.input_tokens is not None:
            read = call.input_tokens
        if call is not None and call.output_tokens is not None:
            written = call.output_tokens
        return Usage(read, written)

    def _why_not(self, request: LoggedRequest) -> str | None:
        """Say why a request is not asked again; None where it may be drawn."""
        why = unsendable(request, self.reference)
        if (
            why is None
            and self.system_prompt is not None
            and system_of(request) != self.system_prompt
        ):
            return OTHER_SYSTEM
        return why

    def _opened(self, names: Sequence[str], workers: int = 1) -> tuple[dict[str, Model], Gate]:
        gate = Gate(self.at_once)
        sections = {name: self.models.sections[name] for name in names}
        opened = replace(self.models, sections=sections).open(workers=workers, gate=gate)
        for model in opened.values():
            model.largest_cost_nano(Prompt(()))
        return opened, gate

    def _agent(self, name: str, model: Model) -> ReplayAgent:
        return ReplayAgent(model, name, self.sample, self.reference, self.limit)

    def _stored(self, trace: Trace, earlier: Trace | None) -> Trace:
        """Return a new trace with what was asked, and with the calls that the store has already."""
        logged = self.sample[trace.id].trace
        asked = {call.role for call in trace.calls}
        kept = [call for call in (earlier.calls if earlier else ()) if call.role not in asked]
        said = parameters_of(logged, self.reference)
        before = {} if earlier is None else {c.role: parameters_of(earlier, c.role) for c in kept}
        own = {LIMIT: self.limit, **(said or {})}
        plain = {name: value for name, value in own.items() if name not in PARAMETERS}
        sent = {name: sold(self.models, name).parameters(plain) for name in self.names}
        return structs.replace(
            trace,
            calls=[*trace.calls, *kept],
            system_prompt=logged.system_prompt,
            history=logged.history,
            options=logged.options,
            requests=logged.requests,
            missing_because="chance",
            parameters=written({BY_ROLE: {**before, **sent, self.role: said}}),
        )


@dataclass(frozen=True)
class Again:
    """The reference, asked once more: how often it agrees with itself."""

    replay: Replay
    sample: Mapping[str, LoggedRequest]
    _calls: dict[str, Call] = field(default_factory=dict)

    def open(self) -> tuple[RecordingPlan, list[Closable]]:
        """Open the reference."""
        replay = self.replay
        opened, gate = replay._opened([replay.role])  # noqa: SLF001 - of one file
        agent = replay._agent(replay.role, opened[replay.role])  # noqa: SLF001 - as above
        marks = {replay.role: sent_mark(replay.models, replay.role)}
        return RecordingPlan(SecondAnswer(agent), replay.task, marks, gate=gate), [*opened.values()]

    def questions(self) -> list[Question]:
        """Return what it is asked."""
        return [_question(request.trace) for request in self.sample.values()]

    def note(self, question: str, call: Call) -> None:
        """Take a second answer."""
        if call.error is None:
            self._calls[question] = call

    def knows(self, question: str) -> bool:
        """Return whether there is a second answer to a question."""
        return question in self._calls

    @property
    def second_answers(self) -> list[tuple[str, str, str, str]]:
        """Question, its text, first and second answer; a second call without one has an empty."""
        found = []
        for question, call in self._calls.items():
            first = self.sample[question].call(self.replay.reference)
            text = self.sample[question].trace.question
            found.append((question, text, (first and first.answer) or "", call.answer or ""))
        return found

    @property
    def agreed(self) -> tuple[int, int]:
        """How many second answers are the first ones, and how many there are."""
        normal, pairs = self.replay.task.normalise, self.second_answers
        found = [(first, other) for *_, first, other in pairs if first and other]
        return sum(normal(first) == normal(other) for first, other in found), len(pairs)


@dataclass(frozen=True)
class SecondAnswer:
    """One agent alone, in the round of second answers."""

    agent: ReplayAgent
    independent: bool = True

    def turns(self) -> list[tuple[int, Agent]]:
        """Return the one call."""
        return [(AGAIN, self.agent)]

    async def calls(self, question: Question, clients: Clients) -> list[Call]:
        """Make it."""
        return [await ask_agent(self.agent, Turn(question, AGAIN), clients)]


def _question(trace: Trace) -> Question:
    return Question(trace.id, trace.question, tuple(trace.gold), trace.group, trace.split)

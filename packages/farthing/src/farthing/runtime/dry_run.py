"""What a job would cost, before anything is paid."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from farthing.models.base import Completion, Model, Prompt
from farthing.runtime.base import Agent, CutAgent
from farthing.runtime.journal import Attempt, Entries, Journal
from farthing.runtime.protocol import CostBoundClient, RecordingPlan
from farthing.tasks.base import Question
from farthing.tasks.tools import Tool, ToolReply


@dataclass
class JobEstimate:
    """What the calls cost that a job still has to make."""

    questions: int
    acts: dict[str, int] = field(default_factory=dict)
    """Role to the times that it still has to act."""
    calls: int = 0
    """The most calls to models that these can take, without retries."""
    largest_nano: int = 0
    """The most that they can cost, in nano-dollars, without retries."""
    likely_nano: int | None = None
    """From what the journal's calls of the same roles cost; None where a role has none."""
    warnings: tuple[str, ...] = ()
    """What may surprise whoever pays."""


async def estimate(
    questions: Sequence[Question],
    recording: RecordingPlan,
    journal: Journal,
    mean_cost_nano: Mapping[str, float],
) -> JobEstimate:
    """Price a job by playing it through with the longest replies; asks nobody.

    A reply of n tokens counts as n tokens where a later prompt repeats it. What the journal has
    already costs nothing; the questions are those that are not in the store. `mean_cost_nano` is
    the mean cost of a role's calls so far.
    """
    sums, bound = JobEstimate(len(questions)), CostBoundClient()

    def client(question: Question, number: int, agent: Agent) -> _DryClient:
        parameters = recording.parameters.get(agent.role, "")
        attempt = Attempt(question.id, number, agent.role, parameters)
        return _DryClient(attempt, journal, bound, sums)

    for question in questions:
        await recording.protocol.calls(question, client)
    agents = {agent.role: agent for _, agent in recording.protocol.turns()}
    for role, agent in agents.items():
        if isinstance(agent, CutAgent) and role in sums.acts:
            sums.calls += 1
            await bound.ask(agent.model, agent.probe)
    sums.largest_nano = bound.largest_nano
    if all(role in mean_cost_nano for role in sums.acts):
        sums.likely_nano = round(sum(n * mean_cost_nano[role] for role, n in sums.acts.items()))
    doubts = (getattr(agent, "doubt", None) for agent in agents.values())
    said = (doubt(sums.acts) for doubt in doubts if doubt is not None)
    sums.warnings = tuple(filter(None, said))
    return sums


class _DryClient:
    """Takes from the journal what it knows, and counts the rest at its dearest."""

    def __init__(
        self, attempt: Attempt, journal: Journal, bound: CostBoundClient, sums: JobEstimate
    ) -> None:
        self._entries, self._journal = Entries(attempt), journal
        self._bound, self._sums = bound, sums
        self._acts = False

    async def ask(self, model: Model, prompt: Prompt) -> Completion:
        known = await self._journal.find(self._entries.next_entry(model.name, prompt))
        if known.reply is not None:
            return msgspec.json.decode(known.reply, type=Completion)
        self._act(calls=1)
        return await self._bound.ask(model, prompt)

    async def use(self, tool: Tool, query: str) -> ToolReply:
        known = await self._journal.find(self._entries.next_entry(tool.name, query))
        if known.reply is not None:
            return msgspec.json.decode(known.reply, type=ToolReply)
        self._act(calls=0)
        return await self._bound.use(tool, query)

    def _act(self, calls: int) -> None:
        self._sums.calls += calls
        if not self._acts:
            self._acts = True
            role = self._entries.attempt.role
            self._sums.acts[role] = self._sums.acts.get(role, 0) + 1

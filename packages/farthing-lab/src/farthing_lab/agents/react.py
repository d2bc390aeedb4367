"""The base agent with tools: thought, action, observation, in turn (ReAct, Yao et al. 2023).

Each call may have a budget, and a system that tells the agent what of it is used and left: the
Budget Tracker (arXiv 2511.17006). The budget holds whatever the model does.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar

import msgspec

from farthing import plugins
from farthing.errors import BadRequestError, ConfigError
from farthing.methods.cards import system
from farthing.models.base import MAX_TOKENS, Completion, Message, Model, Prompt, longest
from farthing.models.prices import largest_usage
from farthing.money import nano_from_usd
from farthing.runtime.agents.base import AgentParts, AgentSection, Positive, history, sampled
from farthing.runtime.base import Agent, AgentReply, Closable, CountingClient, SpeakingAgent, Turn
from farthing.tasks.replies import read_answer, unwrapped
from farthing.tasks.templates import BUILT_IN, PromptTemplates, asked
from farthing.tasks.tools import Tool, Toolbox, always
from farthing.traces.system import Setting, fingerprint
from farthing_lab.methods.agents.base import (
    MONEY,
    TOKENS,
    AgentStep,
    AgentSystem,
    Allowance,
    Amounts,
    fitting,
)
from farthing_lab.methods.agents.budget_tracker import NEXT, VERIFY, read_outcome, verifies
from farthing_lab.tasks.local_search import LocalSearch, own_paragraphs, read_corpus
from farthing_lab.tasks.wikipedia import Wikipedia

_ACTION = re.compile(
    r"^[ \t*_]{0,20}Action[ \t]{0,3}\d{0,3}[*_]{0,3}:[ \t*_]{0,20}(\w+)[ \t]{0,3}\[(.*)\]",
    re.IGNORECASE | re.MULTILINE,
)
_FINISH = "finish"
_UNREADABLE = "There was no action that can be read. Write: Action: NAME[INPUT]"
_NOTHING_ASKED = "(The agent's budget allows not even one prompt.)"
_ANY = 1_000_000_000
"""Uses of a tool that no call reaches."""
NO_ROOM = "(What was found is too long for what is left of the budget.)"
"""Stands in for an observation with which the next prompt would not fit."""
DEFAULT_TRACKER = "budget-tracker"
"""What `tracker = true` means."""
_RESOURCES = ("search", TOKENS, MONEY)
"""What a call with tools can have a budget of."""
_PARTS = range(21)
"""Twentieths of a budget at which a tracker is listened to."""
_LAST = "This is the last step. Reply with Action: finish[ANSWER]"


class ReactSection(AgentSection, frozen=True, kw_only=True, tag="react"):
    """The section of an agent that searches."""

    search: str
    """Where: `own` (the question's paragraphs), `wikipedia`, or a corpus file."""
    max_steps: Positive | None = None
    """Most prompts of one call."""
    budget: dict[str, Annotated[float, msgspec.Meta(ge=0)]] | None = None
    """Of one call: `search` (uses), `tokens`, `usd`."""
    tracker: bool | str | None = None
    """Whether it is told what of the budget is used and left; or by which registered system."""
    verify: bool | None = None
    """Whether an answer is verified while steps and budget are left."""

    def check(self, file: str, field: str) -> None:
        for name, most in (self.budget or {}).items():
            if name not in _RESOURCES:
                problem = f"takes no `{name}`; it takes {', '.join(_RESOURCES[:-1])} and {MONEY}"
                raise ConfigError(file, f"{field}.budget", problem)
            if name != MONEY and most != int(most):
                problem = f"is {most:g}; give a whole number"
                raise ConfigError(file, f"{field}.budget.{name}", problem)
        if self.tracker and not self.budget:
            problem = "has nothing to tell; add `budget`, such as { search = 5 }"
            raise ConfigError(file, f"{field}.tracker", problem)
        if isinstance(self.tracker, str):
            plugins.load("agents", self.tracker)  # an unknown one is refused as such

    def agent(self, name: str, parts: AgentParts) -> Agent:
        options: dict[str, Any] = self.options("search", "budget", "tracker")
        if self.budget is not None:
            amounts = self.budget.items()
            options["budget"] = {k: nano_from_usd(v) if k == MONEY else int(v) for k, v in amounts}
        if self.tracker:
            tracker = DEFAULT_TRACKER if self.tracker is True else self.tracker
            options["tracker"] = system("agent", tracker)
        model, tools = parts.models[self.model], _toolbox(self.search, parts.closing)
        return ReactAgent(model, tools, parts.prompts, name, **options)


def _toolbox(search: str, closing: list[Closable] | None) -> Toolbox:
    if closing is None:
        return always()
    if search == "own":
        return own_paragraphs()
    if search != "wikipedia":
        return always(LocalSearch(read_corpus(search)))
    wikipedia = next((one for one in closing if isinstance(one, Wikipedia)), None)
    if wikipedia is None:
        wikipedia = Wikipedia()
        closing.append(wikipedia)
    return always(wikipedia)


@dataclass(frozen=True)
class ReactAgent(SpeakingAgent):
    """Answers by using tools, in a bounded number of steps.

    Each step is one prompt. The last one may only finish; an agent that does not has no answer.
    """

    uses: ClassVar = ("react", "observation", "review")
    """The prompts that it fills."""

    model: Model
    tools: Toolbox
    """The tools for a question."""
    prompts: PromptTemplates = BUILT_IN
    role: str = "base"
    max_tokens: int = MAX_TOKENS
    """Most tokens of one step."""
    max_steps: int = 6
    temperature: float | None = None
    """Of every round; None for the paper's."""
    stream: int | None = None
    """Sets its samples apart from those of others that send the same; see `sampled`."""
    budget: Mapping[str, int] = field(default_factory=dict)
    """Of one call: uses of each tool, `tokens`, and nano-dollars as `usd`; never exceeded."""
    tracker: AgentSystem | None = None
    """Tells the agent what is used and left; None: nobody does."""
    verify: bool | None = None
    """Whether an answer is verified while steps and budget are left; None: no."""

    @property
    def most_nano(self) -> int | None:
        """The most that a call may cost, in nano-dollars; None: no limit."""
        return self.budget.get(MONEY)

    def marks(self) -> dict[str, Setting]:
        """Return each budget by name, and a fingerprint of what the agent is told of them."""
        found: dict[str, Setting] = {f"budget.{name}": most for name, most in self.budget.items()}
        if self.tracker is not None:
            full = Allowance.of(self.budget)
            shares = [
                {name: most * part // 20 for name, most in full.budget.items()} for part in _PARTS
            ]
            told = [self.tracker.told(full.charged(used)) for used in shares]
            found["tracker"] = fingerprint(told)
        return found

    async def _speak(self, turn: Turn, client: CountingClient) -> AgentReply:
        return await _ReactEpisode(self, turn, client).play()

    def dearest(self) -> "ReactAgent":
        """Return the agent that no tool is refused to: its calls are the longest there can be."""
        free = {name: n if name in {TOKENS, MONEY} else _ANY for name, n in self.budget.items()}
        return replace(self, budget=free)


class _ReactEpisode:
    """One call of an agent, step by step; each step is one prompt."""

    def __init__(self, agent: ReactAgent, turn: Turn, client: CountingClient) -> None:
        self._agent, self._turn, self._client = agent, turn, client
        self._tools = {tool.name.casefold(): tool for tool in agent.tools(turn.question)}
        self._budget = ToolBudget(agent.budget, agent.tracker)
        self._steps = 0
        self._last = agent.max_steps == 1
        """Whether nothing more can be asked after the next prompt."""
        self._messages = self._opening()
        self._before = len(self._messages)

    async def play(self) -> AgentReply:
        answer: str | None = None
        while self._fits(self._messages):
            reply, action = await self._ask()
            found = None
            if action is None:
                found = read_answer(reply)
            elif action[1].casefold() == _FINISH:
                found = unwrapped(action[2]) or None
            answer = found or answer
            if self._last or (found is not None and await self._stands()):
                break
            if found is None:
                self._see(await self._observe(action))
        since = self._messages[self._before :]
        text = "\n".join(message.content for message in since) if self._steps else _NOTHING_ASKED
        return AgentReply(text, answer, counts_tools=True)

    async def _ask(self) -> tuple[str, re.Match[str] | None]:
        """Send what was said so far; return the reply up to its first action, and that action."""
        done = await self._client.ask(self._agent.model, self._prompt(self._messages))
        self._budget.asked(done)
        self._steps += 1
        action = _ACTION.search(done.text)
        # What follows the first action is made up.
        reply = done.text[: action.end()] if action else done.text
        self._messages += (Message("assistant", reply),)
        return reply, action

    def _see(self, seen: str) -> None:
        """Show an observation, and say so where the next step is the last.

        It is also the last where no second prompt of its size would fit. An observation that is
        too long for what is left is left out, so that what was paid for still brings an answer.
        """
        last = self._steps == self._agent.max_steps - 1
        last = last or not self._fits(self._observed(seen, last=False), times=2)
        messages = self._observed(seen, last=last)
        if not self._fits(messages):
            messages = self._observed(NO_ROOM, last=True)
        self._messages, self._last = messages, last

    def _observed(self, text: str, *, last: bool) -> tuple[Message, ...]:
        hint = "\n".join(filter(None, (self._budget.told(), _LAST if last else "")))
        filled = self._agent.prompts["observation"].fill({"observation": text}, {"hint": hint})
        return (*self._messages, *filled)

    async def _stands(self) -> bool:
        """Have an answer verified where that is asked for; return whether it is given as it is."""
        agent, allowance = self._agent, self._budget.allowance
        if not agent.verify or self._steps > agent.max_steps - 2 or not verifies(allowance):
            return True
        asking = (*self._messages, self._note(VERIFY))
        if not self._fits(asking, times=2):
            return True
        self._messages = asking
        outcome = read_outcome((await self._ask())[0])
        if outcome == "succeed":
            return True
        self._last = self._steps == agent.max_steps - 1
        self._messages += (self._note(NEXT[outcome], _LAST if self._last else ""),)
        return False

    def _note(self, *lines: str) -> Message:
        return Message("user", "\n".join(filter(None, (*lines, self._budget.told()))))

    async def _observe(self, action: re.Match[str] | None) -> str:
        if action is None or not action[2].strip():
            return _UNREADABLE
        tool = self._tools.get(action[1].casefold())
        if tool is None:
            return (
                f"There is no action {action[1]}. There are: {', '.join([*self._tools, _FINISH])}"
            )
        if refusal := self._budget.refusal(tool):
            return refusal
        try:
            reply = await self._client.use(tool, action[2].strip())
        except BadRequestError as error:
            self._budget.used(tool, error.cost_nano or 0)
            return f"{tool.name} does not take this input; try another one."
        self._budget.used(tool, reply.cost_nano)
        return reply.text

    def _opening(self) -> tuple[Message, ...]:
        agent = self._agent
        actions = "\n".join(
            f"- {tool.name}[INPUT]: {tool.purpose}" for tool in self._tools.values()
        )
        first = agent.prompts["react"].fill(
            {"question": asked(self._turn.question)},
            {"tools": actions, "steps": str(agent.max_steps)},
        )
        messages = (*first, *history(self._turn, agent.role, agent.prompts))
        self._last = self._last or not self._fits(messages, times=2)
        said = (self._budget.told(), _LAST if self._last and agent.max_steps > 1 else "")
        if not any(said):
            return messages
        content = "\n\n".join(filter(None, (messages[-1].content, *said)))
        return (*messages[:-1], Message(messages[-1].role, content))

    def _fits(self, messages: tuple[Message, ...], times: int = 1) -> bool:
        return self._budget.may_ask(self._agent.model, self._prompt(messages), times)

    def _prompt(self, messages: tuple[Message, ...]) -> Prompt:
        return sampled(self._agent, messages, self._turn, stop=("\nObservation:",))


class ToolBudget:
    """Keeps the allowance of one call, and asks the system that decides within it."""

    def __init__(self, budget: Amounts, system: AgentSystem | None) -> None:
        """Begin with nothing used; without a system, all that fits is done.

        It is calls of each tool, `tokens`, and nano-dollars as `usd`; what has no budget is free.
        """
        self.allowance = Allowance.of(budget)
        self._system = system

    def told(self) -> str:
        """Return what the agent is told now; empty: nothing."""
        return self._system.told(self.allowance) if self._system else ""

    def refusal(self, tool: Tool) -> str | None:
        """Return why a tool may not be used now, in words for the agent; None where it may."""
        needs = {tool.name: 1, MONEY: tool.cost_nano}
        if self._allows(AgentStep(tool.name, needs)):
            return None
        if self.allowance.left.get(tool.name, 1) < 1:
            used, most = self.allowance.used[tool.name], self.allowance.budget[tool.name]
            return f"{tool.name} was not used: {used} of {most} uses are gone. Use what you have."
        return f"{tool.name} was not used: the budget does not allow it now. Use what you have."

    def may_ask(self, model: Model, prompt: Prompt, times: int = 1) -> bool:
        """Return whether so many prompts of this size fit, at the most that each can use."""
        limited, needs = self.allowance.budget, {}
        if TOKENS in limited:
            most = largest_usage(longest(model, prompt))
            needs[TOKENS] = times * (most.input_tokens + most.output_tokens)
        if MONEY in limited:
            needs[MONEY] = times * model.largest_cost_nano(prompt)
        return self._allows(AgentStep("prompt", needs))

    def asked(self, done: Completion) -> None:
        tokens = done.usage.input_tokens + done.usage.output_tokens
        self._charge({TOKENS: tokens, MONEY: done.cost_nano or 0})

    def used(self, tool: Tool, cost_nano: int) -> None:
        self._charge({tool.name: 1, MONEY: cost_nano})

    def _allows(self, step: AgentStep) -> bool:
        if self._system is None:
            return fitting(self.allowance, [step])[0]
        return self._system.allowed(self.allowance, [step])[0] and self.allowance.fits(step.needs)

    def _charge(self, used: Amounts) -> None:
        self.allowance = self.allowance.charged(used)

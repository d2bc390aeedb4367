"""The base agent with tools: thought, action, observation, in turn (ReAct, Yao et al. 2023)."""

import re
from dataclasses import dataclass
from typing import ClassVar

from farthing.errors import BadRequestError
from farthing.models.base import MAX_TOKENS, Message, Model
from farthing.runtime.base import Client, Turn
from farthing.runtime.base_agent import history, sampled
from farthing.runtime.usage import CountingClient, Said, recorded
from farthing.tasks.replies import read_answer, unwrapped
from farthing.tasks.templates import BUILT_IN, Prompts, asked
from farthing.tasks.tools import Tool, Toolbox
from farthing.traces.base import Call

_ACTION = re.compile(
    r"^[ \t*_]{0,20}Action[ \t]{0,3}\d{0,3}[*_]{0,3}:[ \t*_]{0,20}(\w+)[ \t]{0,3}\[(.*)\]",
    re.IGNORECASE | re.MULTILINE,
)
_FINISH = "finish"
_UNREADABLE = "There was no action that can be read. Write: Action: NAME[INPUT]"
_LAST = "This is the last step. Reply with Action: finish[ANSWER]"


@dataclass(frozen=True)
class ReactAgent:
    """Answers by using tools, in a bounded number of steps.

    Each step is one prompt. The last one may only finish; an agent that does not has no answer.
    """

    uses: ClassVar = ("react", "observation", "review")
    """The prompts that it fills."""

    model: Model
    tools: Toolbox
    """The tools for a question."""
    prompts: Prompts = BUILT_IN
    role: str = "base"
    max_tokens: int = MAX_TOKENS
    """Most tokens of one step."""
    max_steps: int = 6
    temperature: float | None = None
    """Of every round; None for the paper's."""
    stream: int | None = None
    """Sets its samples apart from those of others that send the same; see `sampled`."""

    async def act(self, turn: Turn, client: Client) -> Call:
        """Return the call, its text the whole dialogue with the tools."""
        return await recorded(self, turn, client, self._speak)

    async def _speak(self, turn: Turn, client: CountingClient) -> Said:
        tools = {tool.name.casefold(): tool for tool in self.tools(turn.question)}
        messages = self._opening(turn, tools)
        before = len(messages)
        for step in range(1, self.max_steps + 1):
            prompt = sampled(self, messages, turn, stop=("\nObservation:",))
            reply, action = _first_action((await client.ask(self.model, prompt)).text)
            messages += (Message("assistant", reply),)
            answer = _finished(reply, action)
            if answer is not None or step == self.max_steps:
                return Said(_transcript(messages[before:]), answer, counts_tools=True)
            seen = await _observe(action, tools, client)
            hint = _LAST if step == self.max_steps - 1 else ""
            messages += self.prompts["observation"].fill({"observation": seen}, {"hint": hint})
        raise AssertionError("the last step returns")

    def _opening(self, turn: Turn, tools: dict[str, Tool]) -> tuple[Message, ...]:
        actions = "\n".join(f"- {tool.name}[INPUT]: {tool.purpose}" for tool in tools.values())
        first = self.prompts["react"].fill(
            {"question": asked(turn.question)}, {"tools": actions, "steps": str(self.max_steps)}
        )
        return (*first, *history(turn, self.role, self.prompts))


def _first_action(text: str) -> tuple[str, re.Match[str] | None]:
    """Return a reply up to its first action, since what follows is made up, and that action."""
    action = _ACTION.search(text)
    return (text[: action.end()] if action else text), action


def _finished(reply: str, action: re.Match[str] | None) -> str | None:
    if action is None:
        return read_answer(reply)
    return unwrapped(action[2]) or None if action[1].casefold() == _FINISH else None


async def _observe(
    action: re.Match[str] | None, tools: dict[str, Tool], client: CountingClient
) -> str:
    if action is None or not action[2].strip():
        return _UNREADABLE
    tool = tools.get(action[1].casefold())
    if tool is None:
        return f"There is no action {action[1]}. There are: {', '.join([*tools, _FINISH])}"
    try:
        return (await client.use(tool, action[2].strip())).text
    except BadRequestError:
        return f"{tool.name} does not take this input; try another one."


def _transcript(messages: tuple[Message, ...]) -> str:
    return "\n".join(message.content for message in messages)

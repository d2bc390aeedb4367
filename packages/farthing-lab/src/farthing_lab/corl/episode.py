"""An episode as it is played, step by step: the same whoever samples the text and pays for calls.

The controller writes; what it wrote is read; a call is made or not; the environment writes; and so
on for at most M turns. `runtime` plays it with live models and money, training with a sampler.

    play = begin(rules, question, mode)
    while not play.over:
        play = play.wrote(...)              # the controller, after play.messages
        if play.asked is not None:
            play = play.heard(...)          # or play.refuse()
    play.episode()
"""

from dataclasses import dataclass, replace

from farthing.errors import InputError
from farthing.models.base import Message
from farthing.tasks.templates import BUILT_IN, PromptTemplates
from farthing_lab.corl.base import Ending, Episode, Expert, MadeCall, Mode, Segment
from farthing_lab.corl.syntax import (
    Ask,
    Fault,
    FinalAnswer,
    Malformed,
    Style,
    Trouble,
    conversation,
    message,
    prompt,
    read,
    replied,
)


@dataclass(frozen=True)
class Rules:
    """What all episodes of a controller have in common."""

    experts: tuple[Expert, ...]
    style: Style = "plain"
    most_turns: int = 4
    """M: how often the controller may write."""
    prompts: PromptTemplates = BUILT_IN

    def __post_init__(self) -> None:
        if self.most_turns < 1:
            raise InputError(f"the controller may write {self.most_turns} times; give 1 or more")
        if len(set(self.names)) < len(self.names):
            raise InputError(f"two of {', '.join(self.names)} have one name; name them apart")

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(expert.name for expert in self.experts)


@dataclass(frozen=True)
class ControllerTurn:
    """A controller's turn."""

    text: str
    """With its closing tag; see `syntax.closed`."""
    cost_nano: int = 0
    ids: tuple[int, ...] = ()
    """Its tokens, where they are known."""
    logprobs: tuple[float, ...] = ()


@dataclass(frozen=True)
class Play:
    """An episode under way; every step returns the next one."""

    rules: Rules
    question: str
    mode: Mode
    prompt: tuple[Message, ...]
    segments: tuple[Segment, ...] = ()
    calls: tuple[MadeCall, ...] = ()
    asked: Ask | None = None
    """The call that is to be made or refused next."""
    answer: str | None = None
    ended_by: Ending | None = None
    own_nano: int = 0
    turns: int = 0
    malformed: int = 0
    refused: int = 0

    @property
    def over(self) -> bool:
        return self.ended_by is not None

    @property
    def messages(self) -> tuple[Message, ...]:
        return conversation(self.prompt, self.segments)

    @property
    def asks(self) -> str:
        if self.asked is None:
            raise ValueError("no call is to be made")
        return self.question if self.asked.question is None else self.asked.question

    def wrote(self, written: ControllerTurn) -> "Play":
        """Return the episode after a controller's turn.

        The last turn can only answer: a call whose reply nobody reads is not made.
        """
        if self.over or self.asked is not None:
            raise ValueError("it is not the controller's turn")
        move = read(written.text, self.rules.names)
        segment = Segment("controller", written.text, written.ids, written.logprobs)
        after = replace(
            self,
            segments=(*self.segments, segment),
            own_nano=self.own_nano + written.cost_nano,
            turns=self.turns + 1,
            malformed=self.malformed + isinstance(move, Malformed),
        )
        if isinstance(move, FinalAnswer):
            return replace(after, answer=move.text, ended_by="answer")
        if after.turns == self.rules.most_turns:
            return replace(after, ended_by="turns")
        if isinstance(move, Ask):
            return replace(after, asked=move)
        return _told(after, move.fault, move.name)

    def heard(self, reply: str, call: MadeCall) -> "Play":
        """Return the episode after the call that it asked for; a failed one is told as a message.

        The controller is shown `reply`, less its tags.
        """
        expert = self._expert()
        after = replace(self, calls=(*self.calls, call), asked=None)
        if call.error:
            return _told(after, "failed", expert)
        shown = replied(reply)
        return _with(after, shown) if shown else _told(after, "silent", expert)

    def refuse(self) -> "Play":
        """Return the episode after a call that the hard budget does not allow."""
        expert = self._expert()
        after = replace(self, asked=None, refused=self.refused + 1)
        return _told(after, "money", expert)

    def stop(self, by: Ending, cost_nano: int = 0) -> "Play":
        """Return the episode at an end that the controller did not choose.

        `cost_nano` is what a turn cost that came to nothing.
        """
        return replace(self, asked=None, ended_by=by, own_nano=self.own_nano + cost_nano)

    def episode(self) -> Episode:
        if self.ended_by is None:
            raise ValueError("the episode has not ended")
        return Episode(
            question=self.question,
            mode=self.mode,
            prompt=self.prompt,
            segments=self.segments,
            calls=self.calls,
            answer=self.answer,
            ended_by=self.ended_by,
            own_nano=self.own_nano,
            turns=self.turns,
            malformed=self.malformed,
            refused=self.refused,
        )

    def _expert(self) -> str:
        if self.asked is None:
            raise ValueError("no call is to be made")
        return self.asked.expert


def begin(rules: Rules, question: str, mode: Mode) -> Play:
    """Return an episode before its first turn; raises like `syntax.prompt`.

    >>> play = begin(Rules((Expert("small"),), "compact"), "a=4;a?", Mode("low", 0))
    >>> play = play.wrote(ControllerTurn("<call>small</call>"))
    >>> play = play.heard("4", MadeCall(1, "small", play.asks, "4", cost_nano=7))
    >>> episode = play.wrote(ControllerTurn("<answer>4</answer>", cost_nano=1)).episode()
    >>> [segment.text for segment in episode.segments]
    ['<call>small</call>', '<reply>4</reply>', '<answer>4</answer>']
    >>> episode.answer, episode.cost_nano, episode.over_budget
    ('4', 8, True)
    """
    return Play(
        rules, question, mode, prompt(rules.style, mode, rules.experts, question, rules.prompts)
    )


def _told(play: Play, why: Fault | Trouble, name: str) -> Play:
    brief = play.rules.style == "compact"
    return _with(play, message(why, name, play.rules.names, brief=brief))


def _with(play: Play, text: str) -> Play:
    return replace(play, segments=(*play.segments, Segment("environment", text)))

"""An episode as it is played, step by step: the same whoever samples the text and pays for calls.

The controller writes; what it wrote is read; a call is made or not; the environment writes; and so
on for at most M turns. `live` plays it with live models and money, training with a sampler.

    play = begin(rules, question, mode)
    while not play.over:
        play = play.wrote(...)              # the controller, after play.messages
        if play.asked is not None:
            play = play.heard(...)          # or play.refuse()
    play.episode()

A turn is free thought, then a call or an answer:

    <call>NAME</call>              asks an expert the episode's own question
    <call>NAME: QUESTION</call>    asks it a question of the controller's
    <answer>ANSWER</answer>        ends the episode
    <reply>TEXT</reply>            what an expert replied: written by the environment alone
    <reply>!WORDS</reply>          why there is no reply, in plain words

Two parsers read a call: f says which expert, g what it is asked (CORL, arXiv 2511.02755). They are
total: whatever a controller writes is a call, an answer, or a fault that is named. What an expert
replies is stripped of tags, so that nothing in it can be read as the controller's.

A prompt names the mode, its budget, the experts with their prices, and the question. `compact` is
for embedded controllers, which learned what a mode means: the mode's word, a colon and the
question. `plain` says all of it in English, and forbids nothing. `forbidding` asks to avoid calls:
it shows that such a prompt keeps a controller from ever finding out what calls are worth.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Self, get_args

from farthing.errors import InputError
from farthing.models.base import Finish, Message
from farthing.money import dollars
from farthing.tasks.templates import BUILT_IN, PromptTemplates
from farthing.traces.trace_kind import CONTROLLER
from farthing_lab.corl.base import Ending, Expert, MadeCall, Mode, Segment

STOPS = ("</call>", "</answer>")
"""Where a controller's turn ends."""
Fault = Literal["unknown", "unclosed", "two", "empty", "neither", "reply"]
"""No such expert; a tag without its other half; more than one call or answer; nothing in it;
neither a call nor an answer; a reply that the controller made up."""
Trouble = Literal["money", "failed", "silent"]
"""What is left of the budget cannot pay for the call; the call failed; its reply was empty."""

_TAG = re.compile(r"</?(?:call|answer|reply)>")
_LIKE_A_TAG = re.compile(r"<\s*+/?\s*+(?:call|answer|reply)\b[^<>]*>", re.IGNORECASE)
_MARKS = re.compile(r"^[!\s]+")
_LONGEST_NAME = 40
"""Characters of an unknown name that a message repeats."""


@dataclass(frozen=True)
class Ask:
    """A call of an expert."""

    expert: str
    question: str | None = None
    """What it is asked; None for the episode's own question."""


@dataclass(frozen=True)
class FinalAnswer:
    """The end of the episode."""

    text: str


@dataclass(frozen=True)
class Malformed:
    """A turn that is neither."""

    fault: Fault
    name: str = ""
    """The expert that there is not."""


Move = Ask | FinalAnswer | Malformed


def read(text: str, experts: Collection[str]) -> Move:
    """Read what a controller wrote in a turn, its closing tag included; never raises.

    >>> read("b is 4, so <answer>1</answer>", ["small"])
    FinalAnswer(text='1')
    >>> read("hard. <call>small: a=4;a?</call>", ["small"])
    Ask(expert='small', question='a=4;a?')
    >>> read("<call>large</call>", ["small"])
    Malformed(fault='unknown', name='large')
    """
    tags = _TAG.findall(text)
    fault = _fault(tags)
    if fault is not None:
        return Malformed(fault)
    inside = text.split(tags[0], 1)[1].split(tags[1], 1)[0].strip()
    if not inside:
        return Malformed("empty")
    if tags[0] == "<answer>":
        return FinalAnswer(inside)
    expert = expert_of(inside, experts)
    if expert is None:
        return Malformed("unknown", inside.partition(":")[0].strip())
    question = question_of(inside, expert)
    return Malformed("empty") if question == "" else Ask(expert, question)


def expert_of(call: str, experts: Collection[str]) -> str | None:
    """Return which expert a call names, f; None where there is none of that name.

    A name may have a colon in it: the longest that fits counts.

    >>> expert_of("small: 2 + 2?", ["small", "smaller"]), expert_of("tiny", ["small"])
    ('small', None)
    """
    named = [name for name in experts if call == name or call.startswith((f"{name}:", f"{name} :"))]
    return max(named, key=len, default=None)


def question_of(call: str, expert: str) -> str | None:
    """Return what a call asks its expert, g; None for the episode's own question.

    >>> question_of("small: 2 + 2?", "small"), question_of("small", "small")
    ('2 + 2?', None)
    """
    rest = call.removeprefix(expert).lstrip()
    return rest.removeprefix(":").strip() if rest else None


def closed(text: str, finish: Finish) -> str:
    """Return a turn with the closing tag that its generation stopped at.

    A model leaves out the text that it stops at. One that ended by itself within a tag counts as
    having closed it; one that was cut off at its longest does not.

    >>> closed("so <answer>1", "stop"), closed("so <answer>1", "length")
    ('so <answer>1</answer>', 'so <answer>1')
    """
    tags = _TAG.findall(text)
    if finish != "stop" or not tags or tags[-1] not in {"<call>", "<answer>"}:
        return text
    return f"{text}</{tags[-1][1:]}"


def stripped(text: str) -> str:
    """Return a text without anything that is, or becomes by leaving something out, a tag.

    >>> stripped("<answer>1</answer>"), stripped("<ca<call>ll>small</call>")
    ('1', 'small')
    """
    while (shorter := _LIKE_A_TAG.sub("", text)) != text:
        text = shorter
    return text


def replied(text: str) -> str:
    """Return an expert's reply as the environment writes it; empty where it says nothing.

    A reply cannot pass for a message of the environment: `!` in front is left out.

    >>> replied("a=4;<answer>4</answer>"), replied("!no money left")
    ('<reply>a=4;4</reply>', '<reply>no money left</reply>')
    """
    said = _MARKS.sub("", stripped(text)).strip()
    return f"<reply>{said}</reply>" if said else ""


def message(why: Fault | Trouble, name: str, experts: Sequence[str], *, brief: bool) -> str:
    """Return what the environment says instead of a reply; in one word where it is to be brief.

    The name is of the expert that was called, where one was; a model of few symbols reads one word.

    >>> message("unknown", "tiny", ["small", "large"], brief=False)
    '<reply>!There is no expert tiny; there are small, large.</reply>'
    >>> message("money", "large", ["small", "large"], brief=True)
    '<reply>!money</reply>'
    """
    if brief:
        return f"<reply>!{why}</reply>"
    named = stripped(name)[:_LONGEST_NAME].strip() or "of that name"
    said = _WORDS[why].format(name=named, experts=", ".join(experts) or "none")
    return f"<reply>!{said}</reply>"


_WORDS: dict[Fault | Trouble, str] = {
    "unknown": "There is no expert {name}; there are {experts}.",
    "unclosed": "A tag is opened and not closed, or closed and not opened.",
    "two": "Write one call or one answer at a time.",
    "empty": "Nothing stands between the tags.",
    "neither": "Write one call or one answer.",
    "reply": "Only experts reply; call one, or answer.",
    "money": "What is left of the budget cannot pay for {name}.",
    "failed": "The call of {name} failed.",
    "silent": "{name} said nothing.",
}


def _fault(tags: Sequence[str]) -> Fault | None:
    """Return what is wrong with the tags of a turn; None where they are one pair."""
    if not tags:
        return "neither"
    if any("reply" in tag for tag in tags):
        return "reply"
    if sum("/" not in tag for tag in tags) > 1:
        return "two"
    closing = tags[0].replace("<", "</")
    return None if list(tags[1:]) == [closing] else "unclosed"


Style = Literal["compact", "plain", "forbidding"]
STYLES: tuple[Style, ...] = get_args(Style)


def prompt(
    style: Style,
    mode: Mode,
    experts: Sequence[Expert],
    question: str,
    prompts: PromptTemplates = BUILT_IN,
) -> tuple[Message, ...]:
    """Return the messages that begin an episode.

    The texts of `plain` (`controller`) and `forbidding` (`controller-forbidding`) are `prompts`;
    the question has its choices in it.

    >>> [one] = prompt("compact", Mode("low", 0), (), "c=b*7+2;a=4;b=a*3+5;c?")
    >>> one.content
    'low:c=b*7+2;a=4;b=a*3+5;c?'
    """
    if style not in STYLES:
        raise InputError(f"the style is '{style}'; give one of {', '.join(STYLES)}")
    if style == "compact":
        return (Message("user", f"{mode.name}:{question}"),)
    name = CONTROLLER if style == "plain" else f"{CONTROLLER}-forbidding"
    lines = [f"- {expert.name}: {expert.price or 'price unknown'}" for expert in experts]
    return prompts[name].fill(
        {"question": question},
        {
            "mode": mode.name,
            "budget": dollars(mode.budget_nano),
            "experts": "\n".join(lines) or "- none",
        },
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
    """With its closing tag; see `closed`."""
    cost_nano: int = 0
    ids: tuple[int, ...] = ()
    """Its tokens, where they are known."""
    logprobs: tuple[float, ...] = ()


@dataclass(frozen=True)
class Episode:
    """One question under a mode; every step returns the episode after it."""

    rules: Rules
    question: str
    mode: Mode
    prompt: tuple[Message, ...]
    segments: tuple[Segment, ...] = ()
    calls: tuple[MadeCall, ...] = ()
    asked: Ask | None = None
    """The call that is to be made or refused next."""
    answer: str | None = None
    """What stands in the controller's `<answer>`; None where it gave none."""
    ended_by: Ending | None = None
    """None while it is under way."""
    own_nano: int = 0
    """What the controller's own writing cost, in nano-dollars."""
    turns: int = 0
    """How often the controller wrote."""
    malformed: int = 0
    """Turns that could not be read as a call or an answer."""
    refused: int = 0
    """Calls that the hard budget did not allow."""

    @property
    def cost_nano(self) -> int:
        """What it cost so far: the controller and the experts, in nano-dollars."""
        return self.own_nano + sum(call.cost_nano for call in self.calls)

    @property
    def over_budget(self) -> bool:
        """Whether it cost more than its mode's budget."""
        return self.cost_nano > self.mode.budget_nano

    @property
    def over(self) -> bool:
        return self.ended_by is not None

    @property
    def messages(self) -> tuple[Message, ...]:
        """What the controller is sent: the prompt, and what was written since.

        An embedded model reads the messages as one text, without anything between them.
        """
        said = (
            Message("assistant" if segment.author == "controller" else "user", segment.text)
            for segment in self.segments
        )
        return (*self.prompt, *said)

    @property
    def asks(self) -> str:
        asked = self._call.question
        return self.question if asked is None else asked

    def wrote(self, written: ControllerTurn) -> "Episode":
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

    def heard(self, reply: str, call: MadeCall) -> "Episode":
        """Return the episode after the call that it asked for; a failed one is told as a message.

        The controller is shown `reply`, less its tags.
        """
        expert = self._call.expert
        after = replace(self, calls=(*self.calls, call), asked=None)
        if call.error:
            return _told(after, "failed", expert)
        shown = replied(reply)
        return _with(after, shown) if shown else _told(after, "silent", expert)

    def refuse(self) -> "Episode":
        """Return the episode after a call that the hard budget does not allow."""
        expert = self._call.expert
        after = replace(self, asked=None, refused=self.refused + 1)
        return _told(after, "money", expert)

    def stop(self, by: Ending, cost_nano: int = 0) -> "Episode":
        """Return the episode at an end that the controller did not choose.

        `cost_nano` is what a turn cost that came to nothing.
        """
        return replace(self, asked=None, ended_by=by, own_nano=self.own_nano + cost_nano)

    def episode(self) -> Self:
        """Return the episode, which has to have ended."""
        if self.ended_by is None:
            raise ValueError("the episode has not ended")
        return self

    @property
    def _call(self) -> Ask:
        if self.asked is None:
            raise ValueError("no call is to be made")
        return self.asked


def begin(rules: Rules, question: str, mode: Mode) -> Episode:
    """Return an episode before its first turn; raises like `prompt`.

    >>> play = begin(Rules((Expert("small"),), "compact"), "a=4;a?", Mode("low", 0))
    >>> play = play.wrote(ControllerTurn("<call>small</call>"))
    >>> play = play.heard("4", MadeCall(1, "small", play.asks, "4", cost_nano=7))
    >>> episode = play.wrote(ControllerTurn("<answer>4</answer>", cost_nano=1)).episode()
    >>> [segment.text for segment in episode.segments]
    ['<call>small</call>', '<reply>4</reply>', '<answer>4</answer>']
    >>> episode.answer, episode.cost_nano, episode.over_budget
    ('4', 8, True)
    """
    return Episode(
        rules, question, mode, prompt(rules.style, mode, rules.experts, question, rules.prompts)
    )


def _told(play: Episode, why: Fault | Trouble, name: str) -> Episode:
    brief = play.rules.style == "compact"
    return _with(play, message(why, name, play.rules.names, brief=brief))


def _with(play: Episode, text: str) -> Episode:
    return replace(play, segments=(*play.segments, Segment("environment", text)))

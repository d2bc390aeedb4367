"""The records of what happened to one question.

The bounds in the types are checked where a trace is read from a file, and published in its schema.
"""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

Name = Annotated[str, Meta(min_length=1)]
QuestionId = Annotated[str, Meta(min_length=1, pattern=r"^[^\x00]*$")]
"""Arrays of text drop NUL characters, so that two ids could become one."""
Count = Annotated[int, Meta(ge=0)]
Amount = Annotated[float, Meta(ge=0)]
Share = Annotated[float, Meta(ge=0, le=1)]
Probability = Annotated[float, Meta(gt=0, le=1)]
Usd = Annotated[float, Meta(ge=0, le=1e6)]
"""A call of more than a million dollars is a mistake; below, dollars convert exactly."""
SplitName = Literal["train", "calibrate", "test"]
MissingBecause = Literal["chance", "earlier_reply", "unknown"]
"""Why a pool's question lacks a model's call: by lot, since an earlier reply made it needless (a
cascade's log), or nobody says."""
REASONING_TOKENS = "reasoning_tokens"
"""Under `extra` of a call: how many of its output tokens are thoughts."""
GRADES = ("correct", "f1", "score", "gold")
"""Known only after the fact, so never a feature."""


class CallError(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Why a call failed; the call may have cost money all the same."""

    type: str
    """Which kind of failure: `timeout`, `rate_limit`, `refused`, ..."""
    message: str
    """What the provider said."""


class Call(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One paid call to a model, and its grade.

    >>> Call(round=1, role="base", model="llama-2-7b", answer="Paris", cost_usd=4.89e-05).answer
    'Paris'
    """

    round: Annotated[int, Meta(ge=1)]
    """Round that the call belongs to, from 1."""
    role: Name
    """`base` or `guide` in the paper's protocol, otherwise any name."""
    model: str | None = None
    """Name of the model that answered."""
    answer: str | None = None
    """The answer that was read from the reply; none could be read: None."""
    correct: bool | None = None
    """Whether the answer is right; None where the task is to grade it, or nobody knows."""
    text: str | None = None
    """The whole reply."""
    verdict: bool | None = None
    """Whether the guide agrees with the same round's base answer."""
    confidence: Share | None = None
    """The model's own confidence, in [0, 1]."""
    uncertainty: Amount | None = None
    """Entropy or disagreement, >= 0."""
    input_tokens: Count | None = None
    """Tokens that the model read."""
    output_tokens: Count | None = None
    """Tokens that the model wrote."""
    tool_calls: Count | None = None
    """Searches and other tools that the model used."""
    latency_s: Amount | None = None
    """Wall time of the call, in seconds."""
    cost_usd: Usd | None = None
    """Price of the call, in US dollars."""
    largest_cost_usd: Usd | None = None
    """The most that the call could have cost when it was sent, in US dollars."""
    ended: bool | None = None
    """Whether this cut of a thought is the thought's own end; None where nobody says."""
    error: CallError | None = None
    """The failure, where the call failed."""
    asked_probability: Probability | None = None
    """The probability with which this call was made, where a lot decided it."""
    f1: float | None = None
    """A grade, never a feature."""
    score: float | None = None
    """A grade, never a feature."""
    extra: dict[str, float] = {}
    """Any other recorded number, by name; a feature only when asked for."""


class Trace(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Everything that happened to one question.

    >>> trace = Trace(id="q1", question="2 + 2?", gold=["4"], task="text",
    ...               calls=[Call(round=1, role="base", answer="4")])
    >>> trace.calls[0].role
    'base'
    """

    id: QuestionId
    """Question id, unique in a file and in a store."""
    question: str = ""
    """The question's text."""
    gold: list[str] = []
    """Accepted answers; empty where nobody knows them, or calls carry `correct`."""
    calls: Annotated[list[Call], Meta(min_length=1)]
    """Every paid call that was recorded, in any order."""
    task: str = "text"
    """Name of the task, which normalises and grades answers; `text` compares plain text."""
    group: str | None = None
    """Stratum: a subject, a data set."""
    split: SplitName | None = None
    """`train`, `calibrate` or `test`."""
    independent: bool = False
    """No call has seen another's output, so any subset could have been made."""
    truncated: bool = False
    """Live traffic that stopped early: later rounds were never asked for."""
    system_prompt: str | None = None
    """The system prompt under which the question was asked, or its digest (`sha256:...`)."""
    history: str | None = None
    """What was said before the question, or its digest."""
    options: str | None = None
    """The options to choose from, or their digest, where the text does not hold them."""
    parameters: str | None = None
    """What was asked for beside the text (temperature, `max_tokens`), as JSON, or its digest."""
    missing_because: MissingBecause | None = None
    """Why models that others were asked were not asked this question; None: nobody says."""
    requests: Annotated[int, Meta(ge=1)] = 1
    """How many requests this question stands for; of more than one an import kept the first reply
    of each model alone."""
    cluster: Name | None = None
    """What joins it to others, such as a conversation: questions of one cluster count as one."""

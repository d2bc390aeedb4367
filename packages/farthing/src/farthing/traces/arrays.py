"""A split of traces in memory: a handful of arrays, [questions, rounds, roles].

Replaying every policy over every question is arithmetic on these arrays. `n` questions, `T` rounds,
`L` roles whose answers may be returned (base and guide in the paper's protocol).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
Signal = NDArray[np.float32]

SIGNALS = (
    "verdict",
    "confidence",
    "uncertainty",
    "input_tokens",
    "output_tokens",
    "tool_calls",
    "latency_s",
)
"""The recorded numbers that may inform a policy, in the order of the trace format."""

SPLITS = ("train", "calibrate", "test")
WHY_MISSING = ("chance", "earlier_reply", "unknown")
"""Why a question lacks calls that others have, in the order of the trace format."""
AS_MADE = ("ungraded", "made", "asked_probability")
"""What is known of a call beside its answer, its price and its signals."""
NO_SPLIT = -1
RIGHT = "right"
"""The grade of an answer that is accepted, or was recorded as correct."""
NO_ANSWER = -1
NO_REASON = -1
NO_CONTEXT = -1


class QuestionContext(NamedTuple):
    """What a question was asked with beside its text; None is what nobody says."""

    system: str | None
    """Fingerprint of the system prompt."""
    history: str | None
    """Fingerprint of what was said before."""
    parameters: str | None
    """As JSON, or their digest."""


@dataclass(frozen=True)
class PolicyReplies:
    """Recorded replies of an LLM that was asked what to do, one a round."""

    action: NDArray[np.int8]
    """[n, T] index of the action it chose (roles in order, then `next`); -1 where none was read."""
    cost_nano: IntArray
    """[n, T] price of asking it, in nano-dollars."""


@dataclass(frozen=True)
class TraceArrays:
    """What a split of traces holds, as arrays; question `i` is row `i` of each."""

    ids: NDArray[np.str_]
    """[n] question ids."""
    roles: tuple[str, ...]
    """The `L` roles whose answers a policy may return, in the order of its actions."""
    models: tuple[str, ...]
    """The `L` names of the models that fill the roles ('' where none was recorded)."""
    answer: NDArray[np.int16]
    """[n, T, L] which distinct normalised answer of its question it is; -1 where there is none."""
    correct: BoolArray
    """[n, T, L] whether that answer has the grade named below; never true where there is none."""
    cost_nano: IntArray
    """[n, T, L] price of the call in nano-dollars; 0, and unknown, where it was not recorded."""
    signals: Mapping[str, Signal]
    """Name to [n, T, L]: what was recorded beside the answer, NaN where unknown. Signals that no
    call has are absent; numbers outside the trace format's own come under their own names."""
    group: NDArray[np.int32]
    """[n] index into `group_names`; -1 where a question has none."""
    group_names: tuple[str, ...]
    split: NDArray[np.int8]
    """[n] index into `SPLITS`; -1 where the file names none."""
    recorded: NDArray[np.int16]
    """[n] number of rounds that were recorded; below `T` where a trace was truncated."""
    independent: BoolArray
    """[n] whether any subset of the calls could have been made."""
    question: NDArray[np.object_] | None = None
    """[n] the text of each question, '' where none was recorded; None where texts are not kept."""
    largest_cost_nano: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """[n, T, L] the most that the call could have cost when it was sent, in nano-dollars; 0 where
    that was not recorded."""
    ungraded: BoolArray = field(default_factory=lambda: np.zeros(0, dtype=bool))
    """[n, T, L] answers that nobody knows the grade of; `correct` is false there."""
    made: BoolArray = field(default_factory=lambda: np.zeros(0, dtype=bool))
    """[n, T, L] whether the call was recorded. Where it was not, nothing is known of it: what other
    columns hold there is no answer, no price and no grade. Without it: all of recorded rounds."""
    asked_probability: Signal = field(default_factory=lambda: np.zeros(0, dtype=np.float32))
    """[n, T, L] the probability with which the call was made, where a lot decided it; else NaN."""
    missing_because: NDArray[np.int8] = field(default_factory=lambda: np.zeros(0, dtype=np.int8))
    """[n] index into `WHY_MISSING`; -1 where nobody says why calls are missing."""
    content: NDArray[np.uint64] = field(default_factory=lambda: np.zeros(0, dtype=np.uint64))
    """[n] mark of what was asked (text, system prompt, history, options), or of its cluster.
    Questions of one mark are copies; 0 where neither was recorded, which is never a copy."""
    requests: IntArray = field(default_factory=lambda: np.ones(0, dtype=np.int64))
    """[n] how many requests each question stands for. Of more than one the first reply of each
    model was kept, and what the others said is unknown."""
    at_worst: bool = False
    """Whether calls that were not made are played at worst: whoever would make one has lost the
    question, at the price of the most expensive way. Else such questions are not played."""
    cuts: bool = False
    """Whether calls are the cuts of one thought, each of which goes on from the one before it: side
    by side [n, 1, L], with what each comes to, or in turn [n, L, 1], with what each adds."""
    stopping_nano: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """[n, T, L] of cuts side by side, what a thought up to each costs more, in nano-dollars, if it
    is stopped for an answer at every cut before: that is in the price of cuts in turn alone."""
    context: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, dtype=np.int32))
    """[n] index into `contexts`; -1 where nobody says what the question was asked with."""
    contexts: tuple[QuestionContext, ...] = ()
    """System prompt, history and parameters that questions were asked with."""
    grade: str = RIGHT
    """What `correct` says of an answer: that it is right, or the same as another model's
    (`traces.grades`). Learners and guarantees read it alike."""
    unpriced: Mapping[str, float] = field(default_factory=dict)
    """Role to the share of its calls, above 0, whose cost nobody recorded: at 1 they stand as 0,
    below it each as the mean of the others (`traces.costs`). Where all are recorded, none."""
    replies: Mapping[str, PolicyReplies] = field(default_factory=dict)
    """Replies of LLM policies by the role that gave them (`policy-gpt-4o`, `exit-guide`, ...)."""
    beside_gold: tuple[float, str] = (0.0, "")
    """The share of questions that a guess is right on, or 0; and examples where few answers are."""
    requests_per_day: float | None = None
    """Of the whole log that the questions are from; None: it has no times, or less than a day."""

    def __post_init__(self) -> None:
        each, shape = self.answer.shape[:1], self.answer.shape
        unknown = {
            "largest_cost_nano": (shape, 0),
            "ungraded": (shape, False),
            "asked_probability": (shape, np.nan),
            "stopping_nano": (shape, 0),
            "missing_because": (each, NO_REASON),
            "content": (each, 0),
            "requests": (each, 1),
            "context": (each, NO_CONTEXT),
        }
        for name, (wanted, filler) in unknown.items():
            values = getattr(self, name)
            if values.shape == wanted:
                continue
            known = values != filler if values.dtype.kind != "f" else ~np.isnan(values)
            if known.any():
                raise ValueError(f"{name} has the shape {values.shape}, not {wanted}")
            object.__setattr__(self, name, np.full(wanted, filler, dtype=values.dtype))
        if self.made.shape != shape and self.made.all():  # nothing is missing
            rounds = np.arange(self.horizon) < self.recorded[:, None]
            object.__setattr__(self, "made", np.broadcast_to(rounds[..., None], shape))
        if self.made.shape != shape:
            raise ValueError(f"made has the shape {self.made.shape}, not {shape}")

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def horizon(self) -> int:
        """The number of rounds, T."""
        return int(self.answer.shape[1])

    @property
    def n_roles(self) -> int:
        """The number of roles, L; a policy has L + 1 actions."""
        return int(self.answer.shape[2])

    @property
    def solvable(self) -> BoolArray:
        """[n] whether any recorded answer has the grade; at worst one that was not recorded has."""
        solvable: BoolArray = np.any(self.correct, axis=(1, 2))
        return solvable | ~self.made.all(axis=(1, 2)) if self.at_worst else solvable

    @property
    def dearest_nano(self) -> IntArray:
        """[n] what asking everyone costs; an unknown call as much as its role's most expensive."""
        largest = self.cost_nano.max(axis=(0, 1), initial=0)
        cost_nano: IntArray = np.where(self.made, self.cost_nano, largest).sum(axis=(1, 2))
        return cost_nano

    @property
    def round_cost_nano(self) -> IntArray:
        """[n, T] price of each round in nano-dollars: every role is paid before a decision.

        Of the cuts of a thought side by side the furthest is paid for.
        """
        cost_nano: IntArray
        if self.cuts:
            cost_nano = self.cost_nano.max(axis=2)
        else:
            cost_nano = np.einsum("ntl->nt", self.cost_nano)
        return cost_nano

    @property
    def complete(self) -> BoolArray:
        """[n] whether every round was recorded, and of a pool every model's call."""
        complete: BoolArray = self.recorded == self.horizon
        if (
            self.horizon == 1 and not self.at_worst
        ):  # only calls that saw nothing of each other lack one of a round
            complete = complete & (self.made.all(axis=(1, 2)) | ~self.independent)
        return complete

    def rows(self, rows: slice) -> "TraceArrays":
        """Return consecutive questions, as views of the same memory."""
        return self.take(rows)

    def take(self, index: NDArray[np.int64] | NDArray[np.bool_] | slice) -> "TraceArrays":
        """Return the questions at an index or under a mask, in that order.

        The columns stay those of the whole: a signal that none of the taken questions has remains.
        """
        per_question: dict[str, Any] = {
            f.name: getattr(self, f.name)[index]
            for f in fields(self)
            if isinstance(getattr(self, f.name), np.ndarray)
        }
        return replace(
            self,
            signals={name: values[index] for name, values in self.signals.items()},
            replies={
                role: PolicyReplies(r.action[index], r.cost_nano[index])
                for role, r in self.replies.items()
            },
            **per_question,
        )

    def per_call(self, changed: Callable[[NDArray[Any]], NDArray[Any]]) -> dict[str, Any]:
        """Return every column of calls, [n, T, L], and the signals as a change leaves them.

        What a thought costs if it is stopped at its cuts is none of them.
        """
        columns = ("answer", "correct", "cost_nano", "largest_cost_nano", *AS_MADE)
        found: dict[str, Any] = {name: changed(getattr(self, name)) for name in columns}
        return found | {"signals": {name: changed(v) for name, v in self.signals.items()}}


def left_a_trace(arrays: TraceArrays) -> BoolArray:
    """Return [n, T, L] where an answer, a cost or a signal is: calls, where nobody says which."""
    made: BoolArray = (arrays.answer != NO_ANSWER) | (arrays.cost_nano > 0)
    for values in arrays.signals.values():
        made |= ~np.isnan(values)
    return made


def joined(pieces: Sequence[TraceArrays]) -> TraceArrays:
    """Return the questions of several pieces with the same columns, one piece after another.

    Where some keep texts and others none, the text of these is ''.
    """
    first = pieces[0]
    if len(pieces) == 1:
        return first
    question: NDArray[np.object_] | None = None
    if any(piece.question is not None for piece in pieces):
        none = [np.full(len(piece), "", dtype=object) for piece in pieces]
        texts = [piece.question for piece in pieces]
        both = zip(texts, none, strict=True)
        question = np.concatenate([empty if text is None else text for text, empty in both])
    per_question: dict[str, Any] = {
        f.name: np.concatenate([getattr(piece, f.name) for piece in pieces])
        for f in fields(first)
        if isinstance(getattr(first, f.name), np.ndarray) and f.name != "question"
    }
    return replace(
        first,
        signals={
            name: np.concatenate([piece.signals[name] for piece in pieces])
            for name in first.signals
        },
        question=question,
        replies={
            role: PolicyReplies(
                np.concatenate([piece.replies[role].action for piece in pieces]),
                np.concatenate([piece.replies[role].cost_nano for piece in pieces]),
            )
            for role in first.replies
        },
        **per_question,
    )

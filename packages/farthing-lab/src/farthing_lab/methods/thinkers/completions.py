"""Completions of a pretrained model, read as thoughts: for trainers of others.

    prompt | thought ... | what ends it | answer

Trainers hand over token ids with the columns of their data set. The thought is what stands before
the tokens that end it, such as those of `</think>`, and the answer is the text after them. Where
they are missing, all is thought, and there is no answer.

n completions, S cuts.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from farthing.errors import InputError
from farthing.tasks.base import Task
from farthing.traces.arrays import FloatArray, IntArray
from farthing_lab.lm.symbols import NUMBERS
from farthing_lab.methods.thinkers.adactrl import AdaCtrl
from farthing_lab.methods.thinkers.base import Thinker, Thoughts

NOBODY = -1
"""The first token of an empty completion."""


def unknown() -> FloatArray:
    """Refuse the surprisal of thoughts whose prior is not at hand."""
    raise InputError(
        "this thinker reads a prior; train with ThinkerAdvantages, and beta above 0 for a reference"
    )


@dataclass(frozen=True)
class Completions:
    """What was written after each prompt, [n] each."""

    ids: Sequence[Sequence[int]]
    gold: Sequence[Sequence[str]]
    """Accepted answers."""
    group: IntArray
    """The question's number."""
    told: IntArray
    """Which of the thinker's modes the prompt had."""

    @classmethod
    def of(
        cls,
        prompts: Sequence[Any],
        ids: Sequence[Sequence[int]],
        columns: Mapping[str, Sequence[Any]],
    ) -> Self:
        """Read the columns of a data set.

        Args:
            prompts: [n] texts or conversations.
            ids: [n] what was written after each, without filling.
            columns: `gold` has an accepted answer, or several, of each row. `question` says which
                rows are about the same question; without it, those of the same prompt. `told` is
                the number of the mode in its prompt; without it, 0.

        Raises:
            InputError: there is no column `gold`, a row of it has no accepted answer, or a mode is
                no number.
        """
        if "gold" not in columns:
            raise InputError("the data set has no column 'gold'; give each row its accepted answer")
        same = [str(one) for one in columns.get("question", prompts)]
        _, group = np.unique(same, return_inverse=True)
        gold = [_accepted(one, row) for row, one in enumerate(columns["gold"])]
        told = np.array(columns.get("told", [0] * len(ids)))
        if told.dtype.kind not in "iu":
            raise InputError("'told' is the number of the mode in a row's prompt, the first is 0")
        return cls(ids, gold, group.astype(np.int64), told.astype(np.int64))


@dataclass(frozen=True)
class Reading:
    """How a model's completions are read."""

    task: Task
    """Says which answers are right."""
    tokenizer: Any
    """Of the transformers library."""
    ends: tuple[int, ...]
    """The tokens that end a thought."""
    cap: int
    """L: most tokens of a thought."""
    until: str = ""
    """What ends an answer, as a new line does; empty: nothing does but the end of the text."""

    def __post_init__(self) -> None:
        if not self.ends or self.cap < 1:
            raise InputError("give the tokens that end a thought, and a cap of at least one token")

    def length(self, ids: Sequence[int]) -> int:
        found = self._end(ids)
        if found is not None:
            return found
        return len(ids) - (len(ids) > 0 and ids[-1] == self.tokenizer.eos_token_id)

    def closed(self, ids: Sequence[int]) -> bool:
        return self._end(ids) is not None

    def right(self, ids: Sequence[int], gold: Sequence[str]) -> bool:
        """Return whether the answer after a thought is right; where it has none, it is not."""
        found = self._end(ids)
        if found is None:
            return False
        return self.graded(ids[found + len(self.ends) :], gold)

    def graded(self, answer: Sequence[int], gold: Sequence[str]) -> bool:
        said: str = self.tokenizer.decode(list(answer), skip_special_tokens=True)
        return self.task.grade(said.split(self.until, maxsplit=1)[0] if self.until else said, gold)

    def thoughts(
        self,
        written: Completions,
        thinker: Thinker,
        *,
        right: FloatArray | None = None,
        surprisal: Callable[[], FloatArray] = unknown,
        progress: float = 0.0,
    ) -> Thoughts:
        """Return completions as a thinker reads them.

        Args:
            written: the completions.
            thinker: its last cut is where thoughts end by force.
            right: [n, S] of the answers at its cuts; None: of those that were written, [n, 1]; one
                that was written after the last cut came too late.
            surprisal: -log Q of each whole thought, [n], in nats.
            progress: share of the updates that are done.

        Raises:
            InputError: a row has a mode that the thinker has not, or the thinker's tags are those
                of another tokenizer.
        """
        told, modes = written.told, len(thinker.modes)
        if len(told) and not 0 <= told.min() <= told.max() < modes:
            raise InputError(f"'told' is a number below {modes}, the modes of the thinker")
        if thinker == AdaCtrl() and self.tokenizer.get_vocab() != NUMBERS:
            problem = "adactrl's tags are of the embedded networks; give AdaCtrl.of(tokenizer)"
            raise InputError(problem)
        lengths, most = self.lengths(written), int(thinker.cuts[-1] * self.cap)
        if right is None:
            pairs = zip(written.ids, written.gold, strict=True)
            said = np.array([self.right(ids, gold) for ids, gold in pairs], dtype=bool)
            right = (said & (lengths <= most))[:, None].astype(np.float64)
        return Thoughts(
            length=np.minimum(lengths, most),
            cap=self.cap,
            right=right,
            group=written.group,
            told=written.told,
            begins=np.array([ids[0] if len(ids) else NOBODY for ids in written.ids]),
            surprisal=surprisal,
            progress=progress,
        )

    def lengths(self, written: Completions) -> IntArray:
        """Return the tokens of each thought, [n]."""
        return np.array([self.length(ids) for ids in written.ids], dtype=np.int64)

    def right_at(
        self,
        written: Completions,
        cuts: Sequence[float],
        ask: Callable[[Sequence[tuple[int, int]]], Sequence[Sequence[int]]],
    ) -> FloatArray:
        """Return whether each thought is right where it is cut, [n, S].

        A thought that ended by then has its own answer. Any other is asked, once at each place.

        Args:
            written: the completions.
            cuts: shares of the cap.
            ask: is given rows and how many tokens of their thoughts stay, and returns the tokens of
                the answers.
        """
        places = (np.array(cuts) * self.cap).astype(np.int64)
        lengths = self.lengths(written)
        stops = np.minimum(lengths[:, None], places)
        closed = np.array([self.closed(ids) for ids in written.ids])
        own = closed[:, None] & (lengths[:, None] <= places)
        asked = sorted(
            {(row, int(stops[row, at])) for row, at in zip(*np.where(~own), strict=True)}
        )
        replies = dict(zip(asked, ask(asked) if asked else (), strict=True))
        found = np.zeros(own.shape)
        for row, at in np.ndindex(*own.shape):
            gold = written.gold[row]
            if own[row, at]:
                found[row, at] = self.right(written.ids[row], gold)
            else:
                found[row, at] = self.graded(replies[row, int(stops[row, at])], gold)
        return found

    def _end(self, ids: Sequence[int]) -> int | None:
        """Return where what ends a thought begins; None: it is not there."""
        width, ends = len(self.ends), list(self.ends)
        starts = range(len(ids) - width + 1)
        return next((at for at in starts if list(ids[at : at + width]) == ends), None)


def told_rows(questions: Sequence[Mapping[str, Any]], thinker: Thinker) -> list[dict[str, Any]]:
    """Return the rows of a data set in which each question has a prompt for each of the modes.

    Args:
        questions: `prompt`, a text or a conversation, and `gold` of each; further columns stay.
        thinker: its modes are put in front of the prompts, of a conversation its last message.
    """
    return [
        {**one, "prompt": _with_mode(mode, one["prompt"]), "question": str(number), "told": told}
        for number, one in enumerate(questions)
        for told, mode in enumerate(thinker.modes)
    ]


def _with_mode(mode: str, prompt: Any) -> Any:
    if isinstance(prompt, str):
        return mode + prompt
    *before, last = prompt
    return [*before, {**last, "content": mode + last["content"]}]


def _accepted(gold: Any, row: int) -> tuple[str, ...]:
    found = (gold,) if isinstance(gold, str) else gold
    if isinstance(found, (list, tuple)) and found and all(isinstance(g, str) and g for g in found):
        return tuple(found)
    raise InputError(f"row {row}: 'gold' is {gold!r}; give an accepted answer, or a list of them")

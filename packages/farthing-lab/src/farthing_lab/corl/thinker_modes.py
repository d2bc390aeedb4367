"""The modes of a trained thinker as operating points, and a proof of the cheapest that will do.

A thinker whose prompt names a mode, such as how long to think, is a pool of one model in several
modes: the dearest of them is the reference, and the others are held against it, as a controller's
are (`certificate.py`). So "mode low is within two points of high" is a promise like any other, and
where it cannot be proved, high answers.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from farthing.errors import InputError
from farthing.models.base import Usage
from farthing.models.prices import Price
from farthing.money import usd_from_nano
from farthing.promises.base import Promise
from farthing.tasks.base import Question
from farthing.traces.arrays import TraceArrays
from farthing.traces.base import Call, SplitName, Trace
from farthing_lab.corl.base import Mode
from farthing_lab.corl.certificate import CHOOSING, PARTS, Certified, RecordedModes, proved
from farthing_lab.corl.questions import GeneratedQuestions
from farthing_lab.corl.traces import laid_out, role_of
from farthing_lab.lm.symbols import END, encode
from farthing_lab.methods.thinkers.training import digits, length, think

CLOSING = len(encode(f"<answer>4</answer>{END}"))
"""Tokens of an answer, with what opens and ends it."""


@dataclass(frozen=True)
class Answered:
    """What a model answered to a question in a mode, and what that cost."""

    answer: str
    cost_nano: int
    tokens: int


Play = Callable[[str, Sequence[Question]], Sequence[Answered]]
"""Answers questions in a mode; it may draw what it writes."""


@dataclass(frozen=True)
class ModalThinker:
    """A model that is told how long to think."""

    name: str
    modes: tuple[str, ...]
    """From the one that thinks least on; the last is the reference."""
    play: Play

    def __post_init__(self) -> None:
        if len(self.modes) < 2:
            raise InputError(f"{self.name} has one mode; there is nothing to hold it against")


def certify_modes(
    thinker: ModalThinker,
    questions: GeneratedQuestions,
    asked: Promise,
    *,
    n: int = 1_000,
    seed: int = 0,
) -> Certified:
    """Answer drawn questions in each mode, and prove the promise of the cheapest that keeps it.

    Args:
        thinker: the model.
        questions: where 200 of the part `train`, and n each of `calibrate` and `test` come from.
        asked: parity or agreement with the last mode.
        n: how many prove, and how many measure.
        seed: draws the questions.
    """
    *cheaper, reference = thinker.modes
    points = tuple(Mode(mode, 0) for mode in cheaper)
    roles = (reference, *map(role_of, points))
    parts: dict[SplitName, TraceArrays] = {}
    for part in PARTS:
        some = questions.sample(part, CHOOSING if part == "train" else n, seed)
        played = [thinker.play(mode, some) for mode in (reference, *cheaper)]
        rows = zip(some, zip(*played, strict=True), strict=True)
        traces = [_trace(one, part, roles, thinker.name, replies) for one, replies in rows]
        parts[part] = laid_out(traces, roles)
    return proved(thinker.name, RecordedModes(points, reference, parts), asked.beside(reference))


def _trace(
    question: Question,
    part: SplitName,
    roles: Sequence[str],
    model: str,
    replies: Sequence[Answered],
) -> Trace:
    return Trace(
        id=question.id,
        question=question.text,
        gold=list(question.gold),
        calls=[
            Call(
                round=1,
                role=role,
                model=model,
                answer=one.answer,
                output_tokens=one.tokens,
                cost_usd=usd_from_nano(one.cost_nano),
            )
            for role, one in zip(roles, replies, strict=True)
        ],
        group=question.group,
        split=part,
        independent=True,
    )


@dataclass(frozen=True)
class EmbeddedThinker:
    """Plays an embedded network: draws a thought, and takes the likeliest digit after it."""

    network: Any
    price: Price
    cap: int = 128
    """Most tokens of a thought."""
    seed: int = 0

    def __call__(self, mode: str, questions: Sequence[Question]) -> list[Answered]:
        """Answer questions; a mode `low` stands in the prompt as `low:`."""
        prompts = [encode(f"{mode}:{one.text}") for one in questions]
        drawn = think(self.network, prompts, self.cap, np.random.default_rng(self.seed))
        lengths = [length(one, self.cap) for one in drawn]
        thoughts = [one.ids[:stop] for one, stop in zip(drawn, lengths, strict=True)]
        contexts = [[*ids, *thought] for ids, thought in zip(prompts, thoughts, strict=True)]
        said = digits(self.network, contexts).argmax(axis=1).tolist()
        rows = zip(prompts, lengths, said, strict=True)
        return [
            Answered(
                str(digit),
                self.price.cost_nano(Usage(len(ids), stop + CLOSING), 0.0),
                stop + CLOSING,
            )
            for ids, stop, digit in rows
        ]

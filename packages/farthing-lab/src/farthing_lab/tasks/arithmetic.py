"""Chains of arithmetic modulo ten: questions as hard as wanted, made by program.

    c=b*7+2;a=4;b=a*3+5;c?

Each statement says what a letter is worth; the question asks for the last one of a chain. Its
length (`hops`) is the difficulty, statements that lead nowhere distract, and the order says
nothing. The multipliers lose nothing modulo ten, so that a guess is right one time in ten whatever
the length.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import pairwise
from typing import Literal, get_args

import numpy as np

from farthing.errors import InputError
from farthing.tasks.base import ExactMatch, Question
from farthing.tasks.questions import QuestionRow, own

Kind = Literal["affine", "sums", "products"]
KINDS: tuple[Kind, ...] = get_args(Kind)
"""What a step does: `b=a*3+5`, `b=a+5`, `b=a*3`."""
Part = Literal["train", "calibrate", "test"]
LETTERS = "abcdefghij"
MULTIPLIERS = (3, 7, 9)
"""Coprime with ten, and not 1."""
LONGEST = 7
"""Most hops of a chain."""
PLUS = range(1, 10)
"""What may be added."""
_STATEMENT = re.compile(r"([a-z])=(?:([0-9])|([a-z])(?:\*([0-9]))?(?:\+([0-9]))?)")
_PARTS: tuple[Part, ...] = ("train",) * 8 + ("calibrate", "test")


@dataclass(frozen=True)
class Recipe:
    """How questions are drawn."""

    kind: Kind
    hops: int
    """Steps from the letter with a number to the one that is asked for; 1 to 7."""
    distractors: int = 2
    """Statements that lead nowhere."""

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise InputError(f"the kind is '{self.kind}'; give one of {', '.join(KINDS)}")
        most = len(LETTERS) - 1 - self.hops
        if not 1 <= self.hops <= LONGEST or not 0 <= self.distractors <= most:
            raise InputError(
                f"{self.hops} hops and {self.distractors} distractors; give 1 to {LONGEST} hops, "
                f"and no more than {len(LETTERS) - 1} of both"
            )


@dataclass(frozen=True)
class Statement:
    """One statement: `target = source * times + plus`, or `target = plus` without a source."""

    target: str
    source: str
    times: int
    plus: int

    def said(self) -> str:
        return (
            f"{self.target}={self.of(self.source)}" if self.source else f"{self.target}={self.plus}"
        )

    def of(self, operand: str) -> str:
        """Return its right-hand side with something in place of the source."""
        return (
            operand
            + (f"*{self.times}" if self.times > 1 else "")
            + (f"+{self.plus}" if self.plus else "")
        )

    def value(self, source: int) -> int:
        """Return what the target is worth, where the source is worth so much."""
        return (source * self.times + self.plus) % 10


@dataclass(frozen=True)
class ChainProblem:
    """One question, with how it is solved."""

    text: str
    recipe: Recipe
    chain: tuple[Statement, ...]
    """From the letter with a number to the one that is asked for."""

    @property
    def answer(self) -> str:
        return str(_values(self.chain)[-1])

    @property
    def reasoning(self) -> str:
        """A chain of thought: the letters from the question back, then each value in turn.

        >>> steps = (Statement("a", "", 1, 4), Statement("b", "a", 3, 5), Statement("c", "b", 7, 2))
        >>> ChainProblem("c=b*7+2;a=4;b=a*3+5;c?", Recipe("affine", 2), steps).reasoning
        'cba;a=4;b=a*3+5=2+5=7;c=b*7+2=9+2=1;'
        """
        return self.traced + self.worked

    @property
    def traced(self) -> str:
        """The first part of the reasoning: the letters from the question back."""
        return "".join(step.target for step in reversed(self.chain)) + ";"

    @property
    def worked(self) -> str:
        """The second part of the reasoning: each value in turn."""
        sources = (0, *_values(self.chain))
        lines = [_worked(s, source) for s, source in zip(self.chain, sources, strict=False)]
        return "".join(lines)

    @property
    def part(self) -> Part:
        return part_of(self.text)

    def question(self) -> Question:
        """Return it as a question of the task, with its kind and length as its group."""
        return Question(
            id=f"{self.recipe.kind}-{self.recipe.hops}-{_digest(self.text).hex()}",
            text=self.text,
            gold=(self.answer,),
            group=f"{self.recipe.kind}-{self.recipe.hops}",
            split=self.part,
        )


def part_of(text: str) -> Part:
    """Return the part that a text belongs to, whoever draws it: train (80 %), calibrate or test.

    Networks learn from `train` alone, so that the others are new to them.
    """
    return _PARTS[_digest(text)[0] % len(_PARTS)]


def draw(recipe: Recipe, generator: np.random.Generator) -> ChainProblem:
    """Draw one question.

    >>> draw(Recipe("sums", 2, 1), np.random.default_rng(0)).text
    'c=g+9;g=e+6;e=5;h=c+6;c?'
    """
    count = recipe.hops + recipe.distractors + 1
    names = [LETTERS[i] for i in generator.permutation(len(LETTERS))[:count]]
    chain = [Statement(names[0], "", 1, int(generator.integers(10)))]
    for source, target in pairwise(names[: recipe.hops + 1]):
        chain.append(_step(recipe.kind, source, target, generator))
    said = [*chain, *_distractors(recipe, names, generator)]
    lines = [said[i].said() for i in generator.permutation(count)]
    return ChainProblem(";".join([*lines, f"{chain[-1].target}?"]), recipe, tuple(chain))


def draw_of(
    part: Part, recipes: Sequence[Recipe], generator: np.random.Generator
) -> Iterator[ChainProblem]:
    """Draw questions of one part without end, each by a recipe at random."""
    while True:
        problem = draw(recipes[int(generator.integers(len(recipes)))], generator)
        if problem.part == part:
            yield problem


def solve(text: str) -> str:
    """Return the answer to a question, by its statements alone.

    >>> solve("c=b*7+2;a=4;b=a*3+5;c?")
    '1'
    """
    *lines, asked = text.strip().split(";")
    if not re.fullmatch(r"[a-z]\?", asked):
        raise InputError(f"'{text:.60}' does not end with a letter and a question mark, as 'c?'")
    steps: dict[str, Statement] = {}
    for line in lines:
        if (found := _STATEMENT.fullmatch(line)) is None:
            raise InputError(f"'{line:.60}' is no statement, such as 'b=a*3+5' or 'a=4'")
        target, value, source, times, plus = found.groups()
        steps[target] = Statement(target, source or "", int(times or 1), int(value or plus or 0))
    return str(_worth(asked[0], steps))


def _worth(letter: str, steps: Mapping[str, Statement]) -> int:
    path = []
    while letter not in path:
        if letter not in steps:
            raise InputError(f"no statement says what '{letter}' is worth")
        path.append(letter)
        if not steps[letter].source:
            return _values([steps[name] for name in reversed(path)])[-1]
        letter = steps[letter].source
    raise InputError(f"the statements go round in a circle at '{letter}'")


def _values(chain: Sequence[Statement]) -> list[int]:
    values: list[int] = []
    for step in chain:
        values.append(step.value(values[-1] if values else 0))
    return values


def _worked(step: Statement, source: int) -> str:
    """Write a statement as it is said, and its value; a product before the sum it is part of."""
    if not step.source:
        return f"{step.said()};"
    product = f"={source * step.times % 10}+{step.plus}" if step.times > 1 and step.plus else ""
    return f"{step.said()}{product}={step.value(source)};"


def _step(kind: Kind, source: str, target: str, generator: np.random.Generator) -> Statement:
    times = 1 if kind == "sums" else MULTIPLIERS[int(generator.integers(len(MULTIPLIERS)))]
    plus = 0 if kind == "products" else PLUS[int(generator.integers(len(PLUS)))]
    return Statement(target, source, times, plus)


def _distractors(
    recipe: Recipe, names: Sequence[str], generator: np.random.Generator
) -> Iterator[Statement]:
    for at in range(recipe.hops + 1, len(names)):
        if generator.random() < 1 / 3:
            yield Statement(names[at], "", 1, int(generator.integers(10)))
        else:
            source = names[int(generator.integers(at))]
            yield _step(recipe.kind, source, names[at], generator)


def _digest(text: str) -> bytes:
    return blake2b(text.encode(), digest_size=6).digest()


def normalise(reply: str) -> str:
    """Return the digit between the last `<answer>` and `</answer>`, or that a reply ends with.

    >>> normalise("cba;a=4;<answer>1</answer>"), normalise("7"), normalise("cb;")
    ('1', '7', 'cb;')
    """
    found = re.findall(r"<answer>\s*([0-9])\s*</answer>", reply) or re.findall(
        r"([0-9])\s*$", reply
    )
    return str(found[-1]) if found else reply.strip()


ARITHMETIC = ExactMatch("arithmetic", normalise, re.compile("[0-9]"))


def question(row: QuestionRow) -> Question:
    """Read a row with `question`, as 'c=b*7+2;a=4;b=a*3+5;c?'; what is right follows from it.

    Whatever else a question of one's own has may stand beside it.
    """
    text = row.text("question")
    try:
        gold = solve(text)
    except InputError as error:
        raise row.refusal("question", str(error)) from None
    return own(replace(row, values={**row.values, "gold": gold}))

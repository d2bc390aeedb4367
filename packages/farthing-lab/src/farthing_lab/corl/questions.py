"""Where a pool's questions come from: drawn by recipes, or listed in a file."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from math import isqrt
from typing import ClassVar

import numpy as np

from farthing.errors import InputError
from farthing.tasks.base import Question
from farthing_lab.tasks.arithmetic import Part, Recipe, draw_of, part_of, solve

_Asked = tuple[str, tuple[str, ...], str]


def _asked(question: Question) -> _Asked:
    return question.text, question.gold, repr(question.beside)


@dataclass(frozen=True)
class GeneratedQuestions:
    """Chains of arithmetic, as many as wanted."""

    recipes: tuple[Recipe, ...]
    """Each is sampled as often as it stands here."""
    texts: ClassVar[tuple[str, ...]] = ()
    """None of others: what is drawn can be read."""

    def check(self, text: str) -> None:
        """Refuse what is no such question: the networks leave out symbols that they do not know."""
        solve(text)

    def draw(self, part: Part, generator: np.random.Generator) -> Question:
        """Draw one question of a part to learn from; rare recipes are drawn more than sampled.

        Each is drawn as often as the square root, rounded down, of how often it stands here: rare
        ones do not wait too long, and frequent ones do not lack practice.
        """
        counts = Counter(self.recipes)
        recipes = tuple(one for one, n in counts.items() for _ in range(isqrt(n)))
        return next(draw_of(part, recipes, generator)).question()

    def sample(self, part: Part, n: int, seed: int) -> list[Question]:
        """Return n questions of a part, no two alike: any prefix is mixed as the recipes are.

        >>> sums = GeneratedQuestions((Recipe("sums", 1), Recipe("sums", 2)))
        >>> some = sums.sample("test", 4, seed=0)
        >>> sorted(question.group for question in some)
        ['sums-1', 'sums-1', 'sums-2', 'sums-2']
        """
        found: dict[str, Question] = {}
        for question in self._in_turn(part, np.random.default_rng(seed)):
            found.setdefault(question.text, question)
            if len(found) == n:
                break
        return list(found.values())

    def _in_turn(self, part: Part, generator: np.random.Generator) -> Iterator[Question]:
        while True:
            for at in generator.permutation(len(self.recipes)):
                yield next(draw_of(part, self.recipes[at : at + 1], generator)).question()


@dataclass(frozen=True)
class ListedQuestions:
    """Questions of a file. Where it names no part, four of five train.

    Those that ask the same are in one part; one that names none follows.
    """

    questions: tuple[Question, ...]

    def __post_init__(self) -> None:
        marked: dict[_Asked, Question] = {}
        for one in self.questions:
            first = marked.setdefault(_asked(one), one) if one.split else one
            if first.split != one.split:
                raise InputError(
                    f"'{one.id}' is marked {one.split} and '{first.id}', which asks the same, "
                    f"{first.split}; mark both alike, or leave one out"
                )

    @property
    def texts(self) -> tuple[str, ...]:
        """What is asked: a controller may not have all of its symbols."""
        return tuple(one.text for one in self.questions)

    def check(self, text: str) -> None:
        """Take any question: nobody knows what these models can read."""

    def draw(self, part: Part, generator: np.random.Generator) -> Question:
        """Draw one question of a part; raises like `sample`."""
        some = self._of(part)
        return some[int(generator.integers(len(some)))]

    def sample(self, part: Part, n: int, seed: int) -> list[Question]:
        some = self._of(part)
        order = np.random.default_rng(seed).permutation(len(some))
        return [some[at] for at in order[:n]]

    def _of(self, part: Part) -> list[Question]:
        marked = {_asked(one): one.split for one in self.questions if one.split}
        some = [
            one for one in self.questions if (marked.get(_asked(one)) or part_of(one.text)) == part
        ]
        if not some:
            raise InputError(f"the file of questions has none to {part}; add some")
        return some

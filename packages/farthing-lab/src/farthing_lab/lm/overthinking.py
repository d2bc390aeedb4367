"""A network that thinks longer than it must, and the shortest thought that would do.

It solves chains of arithmetic as the others do (`tasks/arithmetic.py`), but it derives a line anew
that it has just derived, goes back to the beginning, and re-checks the whole when it has the
answer. It learned that from thoughts that a program wrote at random, so a shorter thought is
always one that it might have had, and nothing is lost by it:

    cba;a=4;b=a*3+5=2+5=7;b=a*3+5=2+5=7;!a=4;b=a*3+5=2+5=7;c=b*7+2=9+2=1;!cba;a=4;...<answer>

The *shortest sufficient thought* is the chain once, without any of that. Its length differs from
question to question, so that no fixed cut is right for all.
"""

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from farthing_lab.lm.supervised import Draw, Example, TrainingCourse, Watch, train
from farthing_lab.lm.symbols import END, MODES, encode
from farthing_lab.models.embedded import WEIGHTS
from farthing_lab.models.weights import load
from farthing_lab.tasks.arithmetic import KINDS, ChainProblem, Recipe, draw_of

BACK = "!"
"""What it writes before it goes back to the beginning."""
RECIPES = tuple(Recipe(kind, hops) for kind in KINDS for hops in (1, 2, 3))
COURSE = TrainingCourse(steps=640, muon=0.01, adam=0.002, warm=32)
"""Fine-tuning of an embedded network that solves these chains without detours."""


@dataclass(frozen=True)
class Habits:
    """How likely each detour is, whenever there is occasion for it."""

    again: float = 0.3
    """Derives the line once more that it has just derived."""
    back: float = 0.15
    """Goes back to the first line, and comes here again."""
    check: float = 0.35
    """Re-checks the whole chain once it has the answer."""


HABITS = Habits()


def overthought(
    problem: ChainProblem, generator: np.random.Generator, habits: Habits = HABITS
) -> str:
    """Return a thought with detours at random; without any it is the problem's `reasoning`.

    >>> from farthing_lab.tasks.arithmetic import Statement
    >>> steps = (Statement("a", "", 1, 4), Statement("b", "a", 1, 5))
    >>> problem = ChainProblem("b=a+5;a=4;b?", Recipe("sums", 1), steps)
    >>> overthought(problem, np.random.default_rng(0), Habits(0.0, 0.0, 0.0))
    'ba;a=4;b=a+5=9;'
    >>> overthought(problem, np.random.default_rng(1))
    'ba;a=4;b=a+5=9;!a=4;b=a+5=9;'
    """
    lines = [f"{line};" for line in problem.worked.split(";") if line]
    found = [problem.traced]
    for at, line in enumerate(lines):
        found.append(line)
        while generator.random() < habits.again:
            found.append(line)
        if at and generator.random() < habits.back:
            found += [BACK, *lines[: at + 1]]
    while generator.random() < habits.check:
        found += [BACK, problem.reasoning]
    return "".join(found)


def sufficient(problem: ChainProblem, thought: str) -> int | None:
    """Return after how many symbols a thought has derived the answer; None where it never does.

    An answer that is right before that is a lucky guess. A line counts that gives the letter that
    is asked for its right value, however it gets there.

    >>> from farthing_lab.tasks.arithmetic import Statement
    >>> steps = (Statement("a", "", 1, 4), Statement("b", "a", 1, 5))
    >>> problem = ChainProblem("b=a+5;a=4;b?", Recipe("sums", 1), steps)
    >>> sufficient(problem, "ba;a=4;b=a+5=9;!ba;"), sufficient(problem, "ba;a=4;b=a+5=8;")
    (12, None)
    """
    letter = problem.chain[-1].target
    found = re.search(rf"(?<![a-z]){letter}=[^;]*(?<![0-9])(?<!\+){problem.answer};", thought)
    return None if found is None else len(encode(thought[: found.end()]))


def shortest(problem: ChainProblem) -> int:
    """Return how many symbols the shortest sufficient thought has.

    >>> from farthing_lab.tasks.arithmetic import Statement
    >>> steps = (Statement("a", "", 1, 4), Statement("b", "a", 1, 5))
    >>> shortest(ChainProblem("b=a+5;a=4;b?", Recipe("sums", 1), steps))
    12
    """
    return len(encode(problem.reasoning))


def examples(habits: Habits = HABITS) -> Draw:
    """Return what draws examples of overthinking, of the part `train` alone.

    Half of them begin with a mode, which means nothing yet: a method may give it a meaning.
    """

    def draw(generator: np.random.Generator) -> Example:
        problem = next(draw_of("train", RECIPES, generator))
        said = int(generator.integers(2 * len(MODES)))
        told = MODES[said] if said < len(MODES) else ""
        thought = overthought(problem, generator, habits)
        written = f"{thought}<answer>{problem.answer}</answer>{END}"
        return Example(encode(told + problem.text), encode(written))

    return draw


def overthinker(
    course: TrainingCourse = COURSE, *, seed: int = 0, watch: Watch = lambda _: None
) -> Any:
    """Return an embedded network that was taught to overthink; minutes on two cores."""
    network, _ = load(str(WEIGHTS / "small"), "float32")
    train(network, examples(), course, seed=seed, watch=watch)
    return network

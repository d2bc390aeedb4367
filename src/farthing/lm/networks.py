"""The five embedded networks: what each may learn from, and for how long.

The gaps between them are made: by the lengths and kinds of the questions that they learn from.
Nobody is right on everything, and two of them are right where the others are not.
"""

from dataclasses import dataclass

import numpy as np

from farthing.lm.supervised import Course, Draw, Example
from farthing.lm.symbols import END, EXPERTS, MODES, encode
from farthing.lm.tiny import Size
from farthing.tasks.arithmetic import KINDS, Kind, Problem, Recipe, draw_of

ALONE = 0.5
"""Share of the controller's examples in which it answers by itself."""
RIGHT = 0.8
"""Share of the replies that are right, in the controller's examples."""
OWN_HOPS = 2
"""The longest chain that the controller is taught to solve by itself."""


@dataclass(frozen=True)
class Network:
    """One network of the pool."""

    name: str
    meaning: str
    """One line: what it is good at."""
    size: Size
    recipes: tuple[Recipe, ...]
    """Questions that it learns from, each as often as it stands here."""
    course: Course
    price: tuple[float, float]
    """USD per million symbols that it reads, and that it writes."""
    seed: int
    calls: bool = False
    """Whether it learns to call others, as a controller does."""


def _of(kind: Kind, *hops: int) -> tuple[Recipe, ...]:
    return tuple(Recipe(kind, hop) for hop in hops)


SIZE = Size(2, 128)
NETWORKS = (
    Network(
        "large",
        "the dear one: chains of multiplying and adding of any length; never saw either alone",
        SIZE,
        _of("affine", 1, 2, 3, 4, 5, 6, 7),
        Course(steps=1_000),
        (3.0, 12.0),
        1,
    ),
    Network(
        "controller",
        "the cheapest: solves the shortest questions, guesses the others, and calls the experts",
        SIZE,
        tuple(r for kind in KINDS for r in _of(kind, 1, 1, 1, 1, 2, 2, 2, 2, 3, 4, 5, 6, 7)),
        Course(steps=2_800),
        (0.05, 0.2),
        5,
        calls=True,
    ),
    Network(
        "small",
        "the cheap one: every kind of question, if it is short",
        SIZE,
        tuple(recipe for kind in KINDS for recipe in _of(kind, 1, 2, 3, 4)),
        Course(steps=800),
        (0.3, 1.2),
        4,
    ),
    Network(
        "sums",
        "a specialist: chains of sums of any length, and nothing else",
        SIZE,
        _of("sums", 1, 2, 3, 4, 5, 6, 7),
        Course(steps=1_000),
        (0.5, 2.0),
        2,
    ),
    Network(
        "products",
        "a specialist: chains of products of any length, and nothing else",
        SIZE,
        _of("products", 1, 2, 3, 4, 5, 6, 7),
        Course(steps=640),
        (0.5, 2.0),
        3,
    ),
)
"""In the order in which they are trained, those that take longest first."""


def draws(network: Network) -> Draw:
    """Return what draws a network's examples, of the part `train` alone."""

    def draw(generator: np.random.Generator) -> Example:
        problem = next(draw_of("train", network.recipes, generator))
        if network.calls:
            return called(problem, generator)
        return Example(encode(problem.text), encode(solution(problem)))

    return draw


def solution(problem: Problem) -> str:
    """Return how a question is answered by thinking, to the end."""
    return f"{problem.reasoning}<answer>{problem.answer}</answer>{END}"


def called(problem: Problem, generator: np.random.Generator) -> Example:
    """Return an example of a controller: under any mode, by itself or through any expert.

    First it takes note of what it sees. Nothing tells it when to call: that is left to
    reinforcement learning. Alone it solves what is short; of what is longer it learns only to
    guess. A reply may be wrong, and it is repeated all the same.
    """
    mode = MODES[int(generator.integers(len(MODES)))]
    guess = str(generator.integers(10))
    if generator.random() < ALONE:
        short = problem.recipe.hops <= OWN_HOPS
        rest = problem.worked if short else ""
        answer = problem.answer if short else guess
    else:
        answer = problem.answer if generator.random() < RIGHT else guess
        expert = EXPERTS[int(generator.integers(len(EXPERTS)))]
        rest = f"<call>{expert}</call><reply>{answer}</reply>"
    written = f"{noted(problem, mode)}{rest}<answer>{answer}</answer>{END}"
    return Example(encode(f"{mode}{problem.text}"), encode(written))


def noted(problem: Problem, mode: str) -> str:
    """Return what a controller notes first: the chain, its last step, its length, and the mode.

    >>> from farthing.tasks.arithmetic import Step
    >>> steps = (Step("a", "", 1, 4), Step("b", "a", 3, 5), Step("c", "b", 7, 2))
    >>> noted(Problem("c=b*7+2;a=4;b=a*3+5;c?", Recipe("affine", 2), steps), "low:")
    'cba;*7+2;2;low:'
    """
    return f"{problem.traced}{problem.chain[-1].of('')};{problem.recipe.hops};{mode}"

"""The five embedded networks: what each may learn from, and for how long.

The gaps between them are made: by the lengths and kinds of the questions that they learn from.
Nobody is right on everything, and two of them are right where the others are not.

The architecture is that of LFM2, as small as it goes. Short convolutions and attention take turns.
A convolution tells each symbol what stands just before it, so that attention finds a statement by
its first symbol at once; a Llama of the same size spends most of its training on that
(`docs/research/log.md`).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from transformers import GenerationConfig, Lfm2Config, Lfm2ForCausalLM

from farthing_lab.lm.supervised import Draw, Example, TrainingCourse
from farthing_lab.lm.symbols import END, EXPERTS, MODES, NUMBERS, PAD, SYMBOLS, encode
from farthing_lab.tasks.arithmetic import KINDS, ChainProblem, Kind, Recipe, draw_of

CONTEXT = 512
"""Most symbols of prompt and answer together."""


@dataclass(frozen=True)
class Size:
    """How large a network is."""

    pairs: int
    """Of a convolution and an attention."""
    width: int
    heads: int = 4


def network(size: Size, seed: int) -> Any:
    """Return a network with random weights; equal seeds give equal weights."""
    config = Lfm2Config(
        vocab_size=len(SYMBOLS),
        hidden_size=size.width,
        intermediate_size=2 * size.width,
        block_auto_adjust_ff_dim=False,
        num_hidden_layers=2 * size.pairs,
        layer_types=["conv", "full_attention"] * size.pairs,
        conv_L_cache=3,
        num_attention_heads=size.heads,
        num_key_value_heads=size.heads,
        max_position_embeddings=CONTEXT,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=NUMBERS[END],
        pad_token_id=NUMBERS[PAD],
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        made = Lfm2ForCausalLM(config)
    made.generation_config = GenerationConfig(eos_token_id=NUMBERS[END], pad_token_id=NUMBERS[PAD])
    return made


ALONE = 0.5
"""Share of the controller's examples in which it answers by itself."""
RIGHT = 0.8
"""Share of the replies that are right, in the controller's examples."""
OWN_HOPS = 2
"""The longest chain that the controller is taught to solve by itself."""


@dataclass(frozen=True)
class NetworkRecipe:
    """One network of the pool."""

    name: str
    meaning: str
    """One line: what it is good at."""
    size: Size
    recipes: tuple[Recipe, ...]
    """Questions that it learns from, each as often as it stands here."""
    course: TrainingCourse
    price: tuple[float, float]
    """USD per million symbols that it reads, and that it writes."""
    seed: int
    calls: bool = False
    """Whether it learns to call others, as a controller does."""


def _of(kind: Kind, *hops: int) -> tuple[Recipe, ...]:
    return tuple(Recipe(kind, hop) for hop in hops)


SIZE = Size(2, 128)
NETWORKS = (
    NetworkRecipe(
        "large",
        "the expensive one: chains of multiplying and adding of any length; never saw either alone",
        SIZE,
        _of("affine", 1, 2, 3, 4, 5, 6, 7),
        TrainingCourse(steps=1_000),
        (3.0, 12.0),
        1,
    ),
    NetworkRecipe(
        "controller",
        "the cheapest: solves the shortest questions, guesses the others, and calls the experts",
        SIZE,
        tuple(r for kind in KINDS for r in _of(kind, 1, 1, 1, 1, 2, 2, 2, 2, 3, 4, 5, 6, 7)),
        TrainingCourse(steps=2_800),
        (0.05, 0.2),
        5,
        calls=True,
    ),
    NetworkRecipe(
        "small",
        "the cheap one: every kind of question, if it is short",
        SIZE,
        tuple(recipe for kind in KINDS for recipe in _of(kind, 1, 2, 3, 4)),
        TrainingCourse(steps=800),
        (0.3, 1.2),
        4,
    ),
    NetworkRecipe(
        "sums",
        "a specialist: chains of sums of any length, and nothing else",
        SIZE,
        _of("sums", 1, 2, 3, 4, 5, 6, 7),
        TrainingCourse(steps=1_000),
        (0.5, 2.0),
        2,
    ),
    NetworkRecipe(
        "products",
        "a specialist: chains of products of any length, and nothing else",
        SIZE,
        _of("products", 1, 2, 3, 4, 5, 6, 7),
        TrainingCourse(steps=640),
        (0.5, 2.0),
        3,
    ),
)
"""In the order in which they are trained, those that take longest first."""


def draws(network: NetworkRecipe) -> Draw:
    """Return what draws a network's examples, of the part `train` alone."""

    def draw(generator: np.random.Generator) -> Example:
        problem = next(draw_of("train", network.recipes, generator))
        if network.calls:
            return called(problem, generator)
        return Example(encode(problem.text), encode(solution(problem)))

    return draw


def solution(problem: ChainProblem) -> str:
    """Return how a question is answered by thinking, to the end."""
    return f"{problem.reasoning}<answer>{problem.answer}</answer>{END}"


def called(problem: ChainProblem, generator: np.random.Generator) -> Example:
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


def noted(problem: ChainProblem, mode: str) -> str:
    """Return what a controller notes first: the chain, its last step, its length, and the mode.

    >>> from farthing_lab.tasks.arithmetic import Statement
    >>> steps = (Statement("a", "", 1, 4), Statement("b", "a", 3, 5), Statement("c", "b", 7, 2))
    >>> noted(ChainProblem("c=b*7+2;a=4;b=a*3+5;c?", Recipe("affine", 2), steps), "low:")
    'cba;*7+2;2;low:'
    """
    return f"{problem.traced}{problem.chain[-1].of('')};{problem.recipe.hops};{mode}"

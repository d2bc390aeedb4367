"""The five embedded networks: what each may learn from, for how long, and how they are made.

The gaps between them are made: by the lengths and kinds of the questions that they learn from.
Nobody is right on everything, and two of them are right where the others are not.

The architecture is that of LFM2, as small as it goes. Short convolutions and attention take turns.
A convolution tells each symbol what stands just before it, so that attention finds a statement by
its first symbol at once; a Llama of the same size spends most of its training on that
(`docs/research/log.md`).
"""

import json
import multiprocessing
import queue
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import GenerationConfig, Lfm2Config, Lfm2ForCausalLM

from farthing_lab.lm.supervised import (
    BUCKET,
    Draw,
    Example,
    TrainingCourse,
    TrainingProgress,
    train,
)
from farthing_lab.lm.symbols import (
    END,
    EXPERTS,
    FIRST,
    MODES,
    NUMBERS,
    PAD,
    SYMBOLS,
    WHOLE,
    decode,
    encode,
    tokenizer,
)
from farthing_lab.models.generation import Hook, generate, without
from farthing_lab.models.generation_rows import GenerationRow
from farthing_lab.tasks.arithmetic import (
    ARITHMETIC,
    KINDS,
    LONGEST,
    ChainProblem,
    Kind,
    Recipe,
    draw_of,
)

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


LENGTHS: dict[Kind, Sequence[int]] = {
    "affine": range(1, LONGEST + 1),
    "sums": range(1, LONGEST + 1),
    "products": range(1, LONGEST + 1),
}
"""What is measured."""
TOGETHER = 250
"""Questions that are answered in one batch."""


@dataclass(frozen=True)
class MeasuredPart:
    """How a network did on the questions of one kind and length."""

    kind: Kind
    hops: int
    right: int
    asked: int
    symbols: int
    """That it wrote."""


def measure(
    network: Any, asked: int, seed: int, *, controls: bool = False
) -> Iterator[MeasuredPart]:
    """Ask a network fresh questions of the part `test`, and count; it takes the likeliest symbols.

    So many for each kind and length. One that controls has to answer by itself.
    """
    for kind, lengths in LENGTHS.items():
        for hops in lengths:
            drawn = draw_of("test", [Recipe(kind, hops)], np.random.default_rng([seed, hops]))
            problems = [next(drawn) for _ in range(asked)]
            texts = [MODES[-1] + one.text if controls else one.text for one in problems]
            replies = answered(network, texts, [alone] if controls else [])
            graded = zip(replies, problems, strict=True)
            right = sum(ARITHMETIC.grade(reply, [problem.answer]) for reply, problem in graded)
            yield MeasuredPart(kind, hops, right, asked, sum(map(len, map(encode, replies))))


alone = without(NUMBERS["<call>"])
"""Forbids calls."""


def answered(network: Any, texts: Sequence[str], hooks: Sequence[Hook] = ()) -> list[str]:
    """Return what a network writes after each text, without its end."""
    replies = []
    for at in range(0, len(texts), TOGETHER):
        prompts = map(encode, texts[at : at + TOGETHER])
        ends = frozenset({NUMBERS[END]})
        rows = [GenerationRow(ids, max_tokens=CONTEXT - len(ids), ends=ends) for ids in prompts]
        for row, done in zip(rows, generate(network, rows, hooks), strict=True):
            written = [number for number in done.ids if number not in row.ends]
            replies.append(decode(written))
    return replies


ASKED = 400
"""Fresh questions for each kind and length, when a network was trained."""
MEASURED_SEED = 11
LOG = "training.json"
"""What a folder of weights says of how they were made."""


Told = Any
"""A queue between processes, of (name, progress, steps)."""


TrainingWatch = Callable[[str, TrainingProgress, int], None]
"""Is told the name of a network, how far it has learned, and its steps in all."""


@dataclass(frozen=True)
class Made:
    """A network that was trained, or had been before."""

    name: str
    seconds: float
    symbols: int
    parameters: int
    measured: tuple[MeasuredPart, ...]


def make(one: NetworkRecipe, out: Path, watch: TrainingWatch, asked: int = ASKED) -> Made:
    """Train a network and write its folder; go on where a kill left off.

    Its folder in `out` has its name; `.NAME.training` beside it keeps what is needed to go on. So
    many fresh questions are asked of it for each kind and length.
    """
    device = "cuda" if torch.cuda.is_available() else "cpu"
    learner = network(one.size, one.seed).to(device)

    def told(progress: TrainingProgress) -> None:
        watch(one.name, progress, one.course.steps)

    kept = out / f".{one.name}.training"
    done = train(learner, draws(one), one.course, seed=one.seed, folder=kept, watch=told)
    learner = learner.to("cpu")
    counts = tuple(measure(learner, asked, MEASURED_SEED, controls=one.calls))
    parameters = sum(parameter.numel() for parameter in learner.parameters())
    made = Made(one.name, round(done.seconds, 1), done.symbols, parameters, counts)
    template = WHOLE if one.calls else FIRST
    curve = [(BUCKET * (at + 1), round(loss, 4)) for at, loss in enumerate(done.losses)]
    write(learner, template, out / one.name, {**asdict(made), "device": device, "loss": curve})
    return made


def make_all(
    networks: Sequence[NetworkRecipe],
    out: Path,
    *,
    workers: int,
    watch: TrainingWatch,
    asked: int = ASKED,
) -> list[Made]:
    """Train networks side by side, each in a process of its own, and write the list of them.

    Give those that take longest first; each worker uses one core. `out` gets a folder for each, and
    `models.json`.
    """
    out.mkdir(parents=True, exist_ok=True)
    context = multiprocessing.get_context("spawn")
    told: Told = context.Queue()
    pool = ProcessPoolExecutor(workers, context, _begin, (told,))
    with pool:
        jobs = [pool.submit(_make_one, one, out, asked) for one in networks]
        while not all(job.done() for job in jobs):
            with suppress(queue.Empty):
                watch(*told.get(timeout=0.5))
        made = [job.result() for job in jobs]
    (out / "models.json").write_text(catalogue(networks, made))
    return made


def _begin(told: Told) -> None:
    """Prepare a process: it has one core, and says how far it is to the one that began it."""
    torch.set_num_threads(1)
    _TOLD.append(told)


def _make_one(one: NetworkRecipe, out: Path, asked: int) -> Made:
    return make(one, out, lambda *progress: _TOLD[0].put(progress), asked)


_TOLD: list[Told] = []
"""Where this process says how far it is."""


def write(network: Any, template: str, folder: Path, said: dict[str, Any]) -> None:
    """Write a folder that the transformers library reads, with a log of how it was made."""
    network.save_pretrained(folder)
    tokenizer(template).save_pretrained(folder)
    (folder / LOG).write_text(json.dumps(said, indent=1) + "\n")


def catalogue(networks: Sequence[NetworkRecipe], made: Sequence[Made]) -> str:
    """Return what says, without PyTorch, which networks there are and what they cost (JSON)."""
    parameters = {one.name: one.parameters for one in made}
    lines = [
        {
            "name": one.name,
            "meaning": one.meaning,
            "input_per_million": one.price[0],
            "output_per_million": one.price[1],
            "parameters": parameters[one.name],
        }
        for one in networks
    ]
    return json.dumps(lines, indent=1) + "\n"

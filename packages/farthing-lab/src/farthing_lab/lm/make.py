"""Make the embedded networks: train, measure, write what ships."""

import json
import multiprocessing
import queue
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch

from farthing_lab.lm.networks import CONTEXT, NetworkRecipe, draws
from farthing_lab.lm.networks import network as random_network
from farthing_lab.lm.supervised import BUCKET, TrainingProgress, train
from farthing_lab.lm.symbols import END, FIRST, MODES, NUMBERS, WHOLE, decode, encode, tokenizer
from farthing_lab.models.generation import Hook, generate, without
from farthing_lab.models.generation_rows import GenerationRow
from farthing_lab.tasks.arithmetic import ARITHMETIC, LONGEST, Kind, Recipe, draw_of

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


class TrainingWatch(Protocol):
    """Is told how a training goes on."""

    def __call__(self, name: str, progress: TrainingProgress, steps: int) -> None:
        """Take notice of a network that has learned so far."""
        ...


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
    network = random_network(one.size, one.seed).to(device)

    def told(progress: TrainingProgress) -> None:
        watch(one.name, progress, one.course.steps)

    kept = out / f".{one.name}.training"
    done = train(network, draws(one), one.course, seed=one.seed, folder=kept, watch=told)
    network = network.to("cpu")
    counts = tuple(measure(network, asked, MEASURED_SEED, controls=one.calls))
    parameters = sum(parameter.numel() for parameter in network.parameters())
    made = Made(one.name, round(done.seconds, 1), done.symbols, parameters, counts)
    template = WHOLE if one.calls else FIRST
    curve = [(BUCKET * (at + 1), round(loss, 4)) for at, loss in enumerate(done.losses)]
    write(network, template, out / one.name, {**asdict(made), "device": device, "loss": curve})
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

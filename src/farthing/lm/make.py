"""Make the embedded networks: train, measure, write what ships."""

import json
import multiprocessing
import queue
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

import torch

from farthing.lm.measure import Measured, measure
from farthing.lm.networks import Network, draws
from farthing.lm.supervised import BUCKET, Progress, train
from farthing.lm.symbols import FIRST, WHOLE, tokenizer
from farthing.lm.tiny import network as random_network

ASKED = 400
"""Fresh questions for each kind and length, when a network was trained."""
MEASURED_SEED = 11
LOG = "training.json"
"""What a folder of weights says of how they were made."""


Told = Any
"""A queue between processes, of (name, progress, steps)."""


class Watch(Protocol):
    """Is told how a training goes on."""

    def __call__(self, name: str, progress: Progress, steps: int) -> None:
        """Take notice of a network that has learned so far."""
        ...


@dataclass(frozen=True)
class Made:
    """A network that was trained, or had been before."""

    name: str
    seconds: float
    symbols: int
    parameters: int
    measured: tuple[Measured, ...]


def make(one: Network, out: Path, watch: Watch, asked: int = ASKED) -> Made:
    """Train a network and write its folder; go on where a kill left off.

    Args:
        one: what to train.
        out: gets a folder of its name. `.NAME.training` beside it keeps what is needed to go on.
        watch: is told how far it is.
        asked: fresh questions for each kind and length, when it was trained.
    """
    device = "cuda" if torch.cuda.is_available() else "cpu"
    network = random_network(one.size, one.seed).to(device)

    def told(progress: Progress) -> None:
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
    networks: Sequence[Network], out: Path, *, workers: int, watch: Watch, asked: int = ASKED
) -> list[Made]:
    """Train networks side by side, each in a process of its own, and write the list of them.

    Args:
        networks: what to train, those that take longest first.
        out: gets a folder for each, and `models.json`.
        workers: processes; each uses one core.
        watch: is told how far each is.
        asked: as of `make`.
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


def _make_one(one: Network, out: Path, asked: int) -> Made:
    return make(one, out, lambda *progress: _TOLD[0].put(progress), asked)


_TOLD: list[Told] = []
"""Where this process says how far it is."""


def write(network: Any, template: str, folder: Path, said: dict[str, Any]) -> None:
    """Write a folder that the transformers library reads, with a log of how it was made."""
    network.save_pretrained(folder)
    tokenizer(template).save_pretrained(folder)
    (folder / LOG).write_text(json.dumps(said, indent=1) + "\n")


def catalogue(networks: Sequence[Network], made: Sequence[Made]) -> str:
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

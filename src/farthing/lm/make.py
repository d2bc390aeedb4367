"""Make the embedded networks: train, measure, write what ships."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

import torch

from farthing.lm.measure import Measured, measure
from farthing.lm.networks import Network, draws
from farthing.lm.supervised import Progress, train
from farthing.lm.symbols import MODES, tokenizer
from farthing.lm.tiny import network as random_network

ASKED = 400
"""Fresh questions for each kind and length, when a network was trained."""
MEASURED_SEED = 11
LOG = "training.json"
"""What a folder of weights says of how they were made."""


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


def make(one: Network, out: Path, watch: Watch) -> Made:
    """Train a network and write its folder; go on where a kill left off.

    Args:
        one: what to train.
        out: gets a folder of its name. `.NAME.training` beside it keeps what is needed to go on.
        watch: is told how far it is.
    """
    device = "cuda" if torch.cuda.is_available() else "cpu"
    network = random_network(one.size, one.seed).to(device)
    curve: list[tuple[int, float]] = []

    def told(progress: Progress) -> None:
        curve.append((progress.step, round(progress.loss, 4)))
        watch(one.name, progress, one.course.steps)

    kept = out / f".{one.name}.training"
    done = train(network, draws(one), one.course, seed=one.seed, folder=kept, watch=told)
    network = network.to("cpu")
    counts = tuple(measure(network, ASKED, MEASURED_SEED, MODES[-1] if one.calls else ""))
    parameters = sum(parameter.numel() for parameter in network.parameters())
    made = Made(one.name, round(done.seconds, 1), done.symbols, parameters, counts)
    write(network, out / one.name, {**asdict(made), "device": device, "loss": curve})
    return made


def write(network: Any, folder: Path, said: dict[str, Any]) -> None:
    """Write a folder that the transformers library reads, with a log of how it was made."""
    network.save_pretrained(folder)
    tokenizer().save_pretrained(folder)
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

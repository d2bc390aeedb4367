"""Teach a network to continue prompts as examples do; go on after a kill as if there was none.

Only what is to be written is learned, not the prompt. Matrices go by Muon (Jordan, 2024), since
Adam takes several times the examples here (`docs/research/log.md`); the rest by AdamW. The
learning rate falls by REX, or by another of `rl/schedules.py`.

What a training needs to go on after a kill is in a folder that appears whole or not at all.
"""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save
from torch.nn import Module
from torch.nn.functional import cross_entropy
from torch.nn.utils import clip_grad_norm_
from torch.optim import Optimizer

from farthing.errors import InputError
from farthing.traces.atomic import write_folder
from farthing_lab.rl.schedules import SCHEDULES, ScheduleName

_TENSORS, _SAID = "state.safetensors", "state.json"


@dataclass(frozen=True)
class TrainingState:
    """Everything that a training changes: weights that learn, optimizers, the source of chance."""

    modules: Mapping[str, Module]
    optimizers: Mapping[str, Optimizer]
    generator: np.random.Generator

    def keep(self, folder: Path, said: Mapping[str, Any]) -> None:
        whole = {"generator": self.generator.bit_generator.state, "said": said}
        files = {_TENSORS: save(self._tensors()), _SAID: json.dumps(whole).encode()}
        write_folder(folder, files)

    def restore(self, folder: Path) -> dict[str, Any]:
        """Take the state of a folder over, and return the figures that were kept with it."""
        tensors = load_file(folder / _TENSORS)
        whole = json.loads((folder / _SAID).read_text())
        with torch.no_grad():
            for name, parameter in self._parameters().items():
                parameter.copy_(tensors[name])
        for name, optimizer in self.optimizers.items():
            state = _nested(tensors, f"{name}/")
            optimizer.load_state_dict(optimizer.state_dict() | {"state": state})
        self.generator.bit_generator.state = whole["generator"]
        said: dict[str, Any] = whole["said"]
        return said

    def _parameters(self) -> dict[str, torch.Tensor]:
        return {
            f"{name}.{inner}": parameter
            for name, module in self.modules.items()
            for inner, parameter in module.named_parameters()
            if parameter.requires_grad
        }

    def _tensors(self) -> dict[str, torch.Tensor]:
        tensors = {name: one.detach().contiguous() for name, one in self._parameters().items()}
        for name, optimizer in self.optimizers.items():
            for at, fields in optimizer.state_dict()["state"].items():
                tensors |= {f"{name}/{at}/{field}": value for field, value in fields.items()}
        return tensors


def _nested(tensors: Mapping[str, torch.Tensor], prefix: str) -> dict[int, dict[str, Any]]:
    state: dict[int, dict[str, Any]] = {}
    for name, value in tensors.items():
        if name.startswith(prefix):
            at, field = name.removeprefix(prefix).split("/")
            state.setdefault(int(at), {})[field] = value
    return state


SKIP = -100
"""Marks symbols that are not learned."""
EVERY_S = 20.0
"""Seconds of training that a kill may cost."""
BUCKET = 8
"""Batches that are drawn together and sorted by length, so that little is padded."""


@dataclass(frozen=True)
class Example:
    """A prompt, and how to go on."""

    prompt: list[int]
    answer: list[int]
    mask: list[int] | None = None
    """1 for what is learned of the answer, 0 for what others write in it; None: all is learned."""


@dataclass(frozen=True)
class TrainingCourse:
    """How long a network learns, and how fast."""

    steps: int
    """Of `batch` examples each; a multiple of `BUCKET`."""
    batch: int = 64
    muon: float = 0.02
    """Learning rate of the matrices; 0: AdamW takes them, too."""
    adam: float = 0.003
    """Learning rate of the rest."""
    warm: int = 50
    """Steps in which the rate rises from 0."""
    clip: float = 1.0
    """Largest norm of a gradient."""
    schedule: ScheduleName = "rex"
    """How the rates fall."""

    def __post_init__(self) -> None:
        if self.steps % BUCKET or self.steps < 1:
            raise InputError(f"{self.steps} steps; give a multiple of {BUCKET}")


@dataclass
class TrainingProgress:
    """How far a training is."""

    step: int = 0
    symbols: int = 0
    """That went through the network, padding too."""
    seconds: float = 0.0
    losses: list[float] = field(default_factory=list)
    """Mean of each bucket so far, in nats a symbol."""

    @property
    def loss(self) -> float:
        return self.losses[-1]


Draw = Callable[[np.random.Generator], Example]
Watch = Callable[[TrainingProgress], None]


def train(
    network: Any,
    draw: Draw,
    course: TrainingCourse,
    *,
    seed: int,
    folder: Path | None = None,
    watch: Watch = lambda _: None,
) -> TrainingProgress:
    """Train a network in place.

    `folder` keeps what is needed to go on, after each bucket that took a while; where it is there
    already, the training goes on from it. None keeps nothing.

    Returns:
        How far it came: `course.steps` steps.
    """
    generator, optimizers = np.random.default_rng(seed), optimizers_of(network, course)
    state = TrainingState({"network": network}, optimizers, generator)
    done = TrainingProgress()
    if folder is not None and folder.exists():
        done = TrainingProgress(**state.restore(folder))
    saved, began = done.seconds, time.monotonic() - done.seconds
    network.train()
    while done.step < course.steps:
        losses = []
        for batch in _bucket([draw(generator) for _ in range(BUCKET * course.batch)], generator):
            _set_rates(optimizers, course, done.step)
            losses.append(_step(network, list(optimizers.values()), batch, course.clip))
            done.step, done.symbols = done.step + 1, done.symbols + batch[0].numel()
        done.seconds = time.monotonic() - began
        done.losses.append(float(np.mean(losses)))
        if folder is not None and (done.seconds - saved > EVERY_S or done.step >= course.steps):
            state.keep(folder, vars(done))
            saved = done.seconds
        watch(done)
    network.eval()
    return done


def _bucket(
    examples: Sequence[Example], generator: np.random.Generator
) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Yield batches of examples of about one length, in random order: see `padded`."""
    ordered = sorted(examples, key=lambda one: len(one.prompt) + len(one.answer))
    size = len(ordered) // BUCKET
    for at in generator.permutation(BUCKET):
        yield padded(ordered[at * size : (at + 1) * size])


def padded(examples: Sequence[Example]) -> tuple[torch.Tensor, torch.Tensor]:
    """Return examples as symbols and targets, [B, T] each, filled up on the right.

    A target is the symbol that is to follow; `SKIP` in the prompt, but for its last symbol, and
    before what an example's mask leaves out.
    """
    longest = max(len(one.prompt) + len(one.answer) for one in examples)
    symbols = torch.zeros(len(examples), longest, dtype=torch.long)
    targets = torch.full((len(examples), longest), SKIP)
    for row, one in enumerate(examples):
        whole = torch.tensor(one.prompt + one.answer)
        symbols[row, : len(whole)] = whole
        first = len(one.prompt) - 1
        learned = torch.tensor(one.mask or [1] * len(one.answer), dtype=torch.bool)
        targets[row, first : len(whole) - 1] = whole[first + 1 :].where(learned, SKIP)
    return symbols, targets


def _step(
    network: Any,
    optimizers: Sequence[torch.optim.Optimizer],
    batch: tuple[torch.Tensor, torch.Tensor],
    clip: float,
) -> float:
    symbols, targets = (part.to(network.device) for part in batch)
    hidden = network.model(symbols).last_hidden_state
    learned = targets != SKIP  # what fills up on the right is seen by nothing before it
    loss = cross_entropy(network.lm_head(hidden[learned]), targets[learned])
    loss.backward()  # type: ignore[no-untyped-call]
    clip_grad_norm_(network.parameters(), clip)
    for optimizer in optimizers:
        optimizer.step()
        optimizer.zero_grad()
    return loss.item()


def optimizers_of(network: Any, course: TrainingCourse) -> dict[str, torch.optim.Optimizer]:
    """Return Muon for the matrices, and AdamW for embeddings, convolutions and norms.

    What does not learn, beside an adapter, is left out.
    """
    named = [(name, p) for name, p in network.named_parameters() if p.requires_grad]
    matrices = [p for name, p in named if course.muon and p.ndim == 2 and "embed" not in name]
    by_muon = {id(p) for p in matrices}
    rest = [p for _, p in named if id(p) not in by_muon]
    found: dict[str, torch.optim.Optimizer] = {}
    if matrices:
        found["muon"] = torch.optim.Muon(matrices, lr=course.muon, weight_decay=0.01)
    if rest:
        found["adam"] = torch.optim.AdamW(rest, lr=course.adam, weight_decay=0.0)
    return found


def _set_rates(
    optimizers: Mapping[str, torch.optim.Optimizer], course: TrainingCourse, step: int
) -> None:
    schedule = SCHEDULES[course.schedule]
    factor = schedule(step / course.steps) * min(1.0, (step + 1) / course.warm)
    rates = {"muon": course.muon, "adam": course.adam}
    for name, optimizer in optimizers.items():
        for group in optimizer.param_groups:
            group["lr"] = rates[name] * factor

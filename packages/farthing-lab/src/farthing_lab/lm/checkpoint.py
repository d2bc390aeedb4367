"""What a training needs to go on after a kill, in a folder that appears whole or not at all."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save
from torch.nn import Module
from torch.optim import Optimizer

from farthing.traces.atomic import write_folder

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

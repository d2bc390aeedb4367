"""What is kept of a training is all of it, and nothing that does not learn."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch.nn import Linear, Module, Sequential
from torch.optim import AdamW, Muon, Optimizer

from farthing_lab.lm.make import Size, network
from farthing_lab.lm.supervised import TrainingState


def made(seed: int) -> TrainingState:
    """Return two modules, one of them frozen in part, with two kinds of optimizer."""
    torch.manual_seed(seed)
    first, second, head = Linear(3, 4), Linear(4, 4), Linear(4, 1)
    first.requires_grad_(requires_grad=False)
    optimizers: dict[str, Optimizer] = {
        "muon": Muon([second.weight], lr=0.1),
        "adam": AdamW([second.bias, *head.parameters()], lr=0.1),
    }
    return TrainingState(
        {"body": Sequential(first, second), "head": head}, optimizers, np.random.default_rng(seed)
    )


def learn(state: TrainingState, steps: int) -> None:
    for _ in range(steps):
        seen = torch.tensor(state.generator.normal(size=(5, 3)), dtype=torch.float32)
        loss = (state.modules["head"](state.modules["body"](seen)) ** 2).mean()
        loss.backward()
        for one in state.optimizers.values():
            one.step()
            one.zero_grad()


def learned(modules: Mapping[str, Module]) -> dict[str, torch.Tensor]:
    return {
        f"{name}.{inner}": value.clone()
        for name, module in modules.items()
        for inner, value in module.state_dict().items()
        if inner not in {"0.weight", "0.bias"}
    }


def equal(first: Mapping[str, torch.Tensor], second: Mapping[str, torch.Tensor]) -> bool:
    assert first.keys() == second.keys()
    return all(torch.equal(first[name], second[name]) for name in first)


def frozen_as(state: TrainingState, other: TrainingState) -> None:
    """Give what does not learn the values that it has elsewhere: it is the caller's to bring."""
    body: Any = state.modules["body"]
    theirs: Any = other.modules["body"]
    body[0].load_state_dict(theirs[0].state_dict())


def test_a_training_goes_on_as_it_would_have(tmp_path: Path) -> None:
    whole = made(1)
    learn(whole, 3)
    figures = {"loss": 0.1, "at": [1, 2], "bad": float("nan")}
    whole.keep(tmp_path / "kept", figures)
    other = made(2)
    frozen_as(other, whole)
    said = other.restore(tmp_path / "kept")
    assert repr(said) == repr(figures)
    assert equal(learned(whole.modules), learned(other.modules))
    learn(whole, 4)
    learn(other, 4)
    assert equal(learned(whole.modules), learned(other.modules))
    assert whole.generator.random() == other.generator.random()


def test_what_is_frozen_is_not_kept(tmp_path: Path) -> None:
    state = made(1)
    learn(state, 1)
    state.keep(tmp_path / "kept", {})
    names = load_file(tmp_path / "kept" / "state.safetensors").keys()
    assert {name for name in names if "/" not in name} == learned(state.modules).keys()
    assert {name for name in names if "/" in name} == {
        "muon/0/momentum_buffer",
        *(f"adam/{at}/{field}" for at in range(3) for field in ("step", "exp_avg", "exp_avg_sq")),
    }
    other = made(2)
    before = other.modules["body"].state_dict()["0.weight"].clone()
    other.restore(tmp_path / "kept")
    assert torch.equal(other.modules["body"].state_dict()["0.weight"], before)


def test_a_network_that_ties_weights_is_kept_whole(tmp_path: Path) -> None:
    first, second = network(Size(1, 16), 1), network(Size(1, 16), 2)
    TrainingState({"network": first}, {}, np.random.default_rng()).keep(tmp_path / "kept", {})
    TrainingState({"network": second}, {}, np.random.default_rng()).restore(tmp_path / "kept")
    assert equal(first.state_dict(), second.state_dict())


def test_keeping_again_replaces_what_was_kept(tmp_path: Path) -> None:
    state = made(1)
    for number in (1, 2):
        learn(state, 1)
        state.keep(tmp_path / "kept", {"number": number})
    assert [path.name for path in tmp_path.iterdir()] == ["kept"], "nothing is left beside it"
    other = made(2)
    frozen_as(other, state)
    assert other.restore(tmp_path / "kept") == {"number": 2}
    assert equal(learned(state.modules), learned(other.modules))


def test_a_checkpoint_of_something_else_is_refused(tmp_path: Path) -> None:
    TrainingState({"body": Linear(1, 1)}, {}, np.random.default_rng()).keep(tmp_path / "kept", {})
    with pytest.raises(KeyError, match=r"head\.weight"):
        TrainingState({"head": Linear(1, 1)}, {}, np.random.default_rng()).restore(
            tmp_path / "kept"
        )

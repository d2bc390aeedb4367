"""Training by an adapter: what learns, what stays, and that a copy of it all would do the same."""

import json
from copy import deepcopy
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
import torch
from masked_update_by_hand import GROUP, REWARD, played, tiny
from torch import Tensor

from farthing.errors import InputError
from farthing_lab.lm.adapters import (
    ACTING,
    BEGAN,
    Began,
    Critic,
    HeadCritic,
    adapt,
    adapted,
    learning,
    save,
)
from farthing_lab.lm.make import write
from farthing_lab.lm.masked_ppo import (
    EpisodeBatch,
    Learners,
    MaskedTrainer,
    Settings,
    UpdateFigures,
)
from farthing_lab.lm.supervised import TrainingState
from farthing_lab.lm.symbols import WHOLE
from farthing_lab.models import smollm2
from farthing_lab.models.weights import ADAPTER, load

TOKENS = torch.arange(2, 14).reshape(2, 6)
SETTINGS = Settings("gae", actor_rate=0.01, critic_rate=0.01, minibatch=3)


def network(seed: int = 0) -> Any:
    """Return a network with an adapter that has learned something."""
    net = tiny()
    adapt(net, 2, "base", seed)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, part in net.named_parameters():
            if "lora_B" in name:
                part.copy_(0.3 * torch.randn(part.shape, generator=generator))
    return net


def updated(net: Any, updates: int = 1, settings: Settings = SETTINGS) -> list[UpdateFigures]:
    trainer = MaskedTrainer(Learners.of(net, settings), settings)
    generator = np.random.default_rng(0)
    return [
        trainer.update(EpisodeBatch.of(played(net), REWARD, GROUP), 1.0, generator)
        for _ in range(updates)
    ]


def parts(net: Any, adapter: bool) -> dict[str, Tensor]:
    state = net.state_dict()
    return {n: t.clone() for n, t in state.items() if (f".{ACTING}." in n) == adapter}


def test_a_new_adapter_changes_nothing_and_learns_alone() -> None:
    net = tiny()
    before = net(TOKENS).logits
    assert not adapted(net)
    adapt(net, 2, "base", seed=0)
    assert adapted(net)
    assert torch.equal(net(TOKENS).logits, before)
    learned = [name for name, part in net.named_parameters() if part.requires_grad]
    assert learned
    assert all(f".{ACTING}." in name for name in learned)


def test_equal_seeds_give_equal_adapters_and_nothing_else_is_drawn() -> None:
    state = torch.get_rng_state()
    one, same, other = (parts(network(seed), adapter=True) for seed in (0, 0, 1))
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(one[name], same[name]) for name in one)
    assert not all(torch.equal(one[name], other[name]) for name in one)


def test_a_critic_stands_where_the_network_does() -> None:
    net = network()
    critics = [Critic.beside(tiny().to("meta")), HeadCritic.of(Began(net), net.to("meta"))]
    assert {part.device.type for one in critics for part in one.parameters()} == {"meta"}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["gae", "group"])
def test_the_base_stays_as_it_is_to_the_last_bit(kind: Literal["gae", "group"]) -> None:
    net = network()
    base, adapter = parts(net, adapter=False), parts(net, adapter=True)
    updated(net, 3, Settings(kind, actor_rate=0.01, minibatch=3))
    after = parts(net, adapter=False)
    assert all(torch.equal(base[name], after[name]) for name in base)
    changed = parts(net, adapter=True)
    assert any(not torch.equal(adapter[name], changed[name]) for name in adapter)


@pytest.mark.slow
def test_the_reference_is_the_adapter_as_it_began() -> None:
    net = network()
    began = Began(net)
    before = net(TOKENS).logits
    figures = updated(net, 8)
    assert abs(figures[0].kl) < 1e-6
    assert abs(figures[-1].kl) > 0.01  # an estimate on few symbols, of either sign
    assert torch.equal(network()(TOKENS).logits, before)
    assert not torch.allclose(net(TOKENS).logits, before)
    del began


def test_reading_as_it_began_leaves_the_adapter_acting_and_learning() -> None:
    net = network()
    began = Began(net)
    before = began.logits(TOKENS)
    with torch.no_grad():
        for name, part in net.named_parameters():
            if f".{ACTING}." in name:
                part.add_(0.1)
    assert torch.equal(began.logits(TOKENS), before)
    assert not before.requires_grad
    assert net.active_adapters() == [ACTING]
    learned = {name for name, part in net.named_parameters() if part.requires_grad}
    assert learned == {name for name, _ in net.named_parameters() if f".{ACTING}." in name}
    assert any(f".{BEGAN}." in name for name, _ in net.named_parameters())


def test_the_critic_is_a_line_through_the_states_as_they_began() -> None:
    net = network()
    alone = deepcopy(net)
    critic = HeadCritic.of(Began(net), net)
    assert (critic(critic.seen(TOKENS)) == 0).all()
    torch.nn.init.normal_(critic.head.weight)
    with torch.no_grad():
        for name, part in net.named_parameters():
            if f".{ACTING}." in name:
                part.add_(0.1)
        states = alone.model(TOKENS).last_hidden_state
    values = critic(critic.seen(TOKENS))
    unit = states / (states**2).sum(-1, keepdim=True).sqrt()
    by_hand = unit @ critic.head.weight[0] + critic.head.bias
    torch.testing.assert_close(values, by_hand)
    values.sum().backward()
    assert all(part.grad is None for part in net.parameters())
    assert [name for name, _ in critic.named_parameters()] == ["head.weight", "head.bias"]


class Apart:
    """What `Began` gives, of a copy of the whole network."""

    def __init__(self, net: Any) -> None:
        self.net = deepcopy(net).requires_grad_(requires_grad=False)

    def logits(self, tokens: Tensor) -> Tensor:
        return self.net(tokens).logits  # type: ignore[no-any-return]

    def states(self, tokens: Tensor) -> Tensor:
        return self.net.model(tokens).last_hidden_state  # type: ignore[no-any-return]


@pytest.mark.slow
def test_updates_are_those_of_a_training_with_copies_of_the_whole_network() -> None:
    one, other = network(), network()
    figures = updated(one, 3)
    copied: Any = Apart(other)
    critic = HeadCritic.of(copied, other)
    trainer = MaskedTrainer(Learners(other, copied.logits, critic), SETTINGS)
    generator = np.random.default_rng(0)
    for said in figures:
        batch = EpisodeBatch.of(played(other), REWARD, GROUP)
        assert trainer.update(batch, 1.0, generator) == said
    mine, theirs = parts(one, adapter=True), parts(other, adapter=True)
    assert all(torch.equal(mine[name], theirs[name]) for name in mine)


@pytest.mark.slow
def test_what_is_kept_is_the_adapter_the_head_and_their_optimizers(tmp_path: Path) -> None:
    net = network()
    trainer = MaskedTrainer(Learners.of(net, SETTINGS), SETTINGS)
    generator = np.random.default_rng(0)
    trainer.update(EpisodeBatch.of(played(net), REWARD, GROUP), 1.0, generator)
    state = TrainingState(trainer.modules, trainer.optimizers, generator)
    state.keep(tmp_path / "kept", {})
    kept = {name for name in state._tensors() if "/" not in name}
    assert all(f".{ACTING}." in name or name.startswith("critic.head") for name in kept)
    again = network()
    other = MaskedTrainer(Learners.of(again, SETTINGS), SETTINGS)
    fresh = np.random.default_rng(5)
    TrainingState(other.modules, other.optimizers, fresh).restore(tmp_path / "kept")
    batch = EpisodeBatch.of(played(net), REWARD, GROUP)
    for one, chance in ((trainer, generator), (other, fresh)):
        one.update(batch, 1.0, chance)
    mine, theirs = parts(net, adapter=True), parts(again, adapter=True)
    assert all(torch.equal(mine[name], theirs[name]) for name in mine)


def test_an_adapter_of_another_name_is_refused() -> None:
    import peft  # noqa: PLC0415 - slow to load

    net = tiny()
    net.add_adapter(peft.LoraConfig(target_modules="all-linear"), "other")
    with pytest.raises(InputError, match="a training needs one called default"):
        learning(net)


def test_a_folder_names_its_base_and_gives_the_same_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tiny(), WHOLE, tmp_path / "base", {})
    monkeypatch.setattr(smollm2, "folder", lambda: tmp_path / "base")
    net, tokenizer = load("smollm2", "float32")
    adapt(net, 2, "smollm2", seed=0)
    with torch.no_grad():
        for name, part in net.named_parameters():
            if "lora_B" in name:
                part.fill_(0.1)
    out = tmp_path / "adapter"
    save(net, out)
    tokenizer.save_pretrained(out)
    config = json.loads((out / ADAPTER).read_text())
    assert config["base_model_name_or_path"] == "smollm2"
    again, _ = load(str(out), "float32")
    assert torch.equal(again(TOKENS).logits, net.eval()(TOKENS).logits)
    save(again, tmp_path / "again")
    config = json.loads((tmp_path / "again" / ADAPTER).read_text())
    assert config["base_model_name_or_path"] == "smollm2"
    (out / "adapter_model.safetensors").rename(out / "adapter_model.bin")
    with pytest.raises(OSError, match=r"there is no adapter_model\.safetensors"):
        load(str(out), "float32")

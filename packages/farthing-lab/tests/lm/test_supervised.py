"""Supervised training: what is learned, that a kill costs nothing, and that it learns at all."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from farthing_lab.lm import supervised
from farthing_lab.lm.make import Size, network
from farthing_lab.lm.supervised import (
    BUCKET,
    SKIP,
    Example,
    TrainingCourse,
    TrainingProgress,
    padded,
    train,
)
from farthing_lab.lm.symbols import SYMBOLS, decode, encode
from farthing_lab.models.generation import generate
from farthing_lab.models.generation_rows import GenerationRow
from farthing_lab.rl.schedules import SCHEDULES, ScheduleName

SIZE = Size(1, 16)


def drawn(generator: np.random.Generator) -> Example:
    """Return a prompt of 1 to 9 symbols, and an answer of 1 to 5."""
    prompt, answer = (
        generator.integers(2, len(SYMBOLS), size=generator.integers(1, most)).tolist()
        for most in (10, 6)
    )
    return Example(prompt, answer)


def weights(net: Any) -> dict[str, torch.Tensor]:
    return {name: value.detach().clone() for name, value in net.state_dict().items()}


def same(first: dict[str, torch.Tensor], second: dict[str, torch.Tensor]) -> bool:
    return all(torch.equal(first[name], second[name]) for name in first)


def test_targets_are_the_answer_and_nothing_else() -> None:
    symbols, targets = padded([Example([5, 6, 7], [8, 1]), Example([9], [4])])
    assert symbols.tolist() == [[5, 6, 7, 8, 1], [9, 4, 0, 0, 0]]
    assert targets.tolist() == [
        [SKIP, SKIP, 8, 1, SKIP],  # the prompt's last symbol predicts the answer's first
        [4, SKIP, SKIP, SKIP, SKIP],
    ]


def test_what_others_write_in_an_answer_is_no_target() -> None:
    _, targets = padded([Example([5, 6], [8, 1, 7, 2], [1, 0, 0, 1])])
    assert targets.tolist() == [[SKIP, 8, SKIP, SKIP, 2, SKIP]]


def test_the_loss_is_that_of_each_example_alone() -> None:
    """Padding and neighbours do not matter, for attention and for convolutions."""
    net, generator = network(Size(2, 16), 3), np.random.default_rng(0)
    examples = [drawn(generator) for _ in range(7)]
    logs = []
    for one in examples:
        with torch.no_grad():
            logits = net(torch.tensor([one.prompt + one.answer])).logits[0]
        for at, symbol in enumerate(one.answer, start=len(one.prompt) - 1):
            row = logits[at].double()
            logs.append(float(row[symbol] - row.exp().sum().log()))
    loss = supervised._step(net, [], padded(examples), clip=1.0)
    assert loss == pytest.approx(-np.mean(logs), rel=1e-5)


def test_the_gradient_of_a_step_is_that_of_each_example_alone() -> None:
    net, generator = network(SIZE, 3), np.random.default_rng(1)
    examples = [drawn(generator) for _ in range(5)]
    symbols = sum(len(one.answer) for one in examples)
    for one in examples:
        logits = net(torch.tensor([one.prompt + one.answer])).logits[0].log_softmax(-1)
        begin = len(one.prompt) - 1
        picked = logits[range(begin, begin + len(one.answer)), one.answer]
        (-picked.sum() / symbols).backward()
    alone = {name: p.grad.clone() for name, p in net.named_parameters()}
    net.zero_grad()
    supervised._step(net, [], padded(examples), clip=float("inf"))
    for name, p in net.named_parameters():
        torch.testing.assert_close(p.grad, alone[name], rtol=1e-4, atol=1e-6)


class KilledError(Exception):
    """Ends a training as a kill does."""


@pytest.mark.slow
@pytest.mark.parametrize("after", [1, 2])
def test_a_killed_training_goes_on_as_if_there_was_no_kill(
    after: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    course = TrainingCourse(steps=4 * BUCKET, batch=2, warm=5)
    whole = network(SIZE, 1)
    told: list[TrainingProgress] = []
    train(whole, drawn, course, seed=7, watch=lambda p: told.append(TrainingProgress(**vars(p))))

    monkeypatch.setattr(supervised, "EVERY_S", 0.0)

    def kill(progress: TrainingProgress) -> None:
        if progress.step >= after * BUCKET:
            raise KilledError

    folder = tmp_path / "kept"
    with pytest.raises(KilledError):
        train(network(SIZE, 1), drawn, course, seed=7, folder=folder, watch=kill)
    other = network(SIZE, 99)  # what is kept counts, and not what it begins with
    rest: list[TrainingProgress] = []
    done = train(
        other,
        drawn,
        course,
        seed=1234,
        folder=folder,
        watch=lambda p: rest.append(TrainingProgress(**vars(p))),
    )
    assert same(weights(whole), weights(other))
    figures = [(p.step, p.symbols, p.loss) for p in told]
    assert [(p.step, p.symbols, p.loss) for p in rest] == figures[after:]
    assert done.seconds > 0

    before = weights(other)
    again = train(other, drawn, course, seed=7, folder=folder)
    assert (again.step, same(before, weights(other))) == (course.steps, True), "it was over"


@pytest.mark.slow
def test_equal_seeds_train_alike_and_others_do_not() -> None:
    nets = [network(SIZE, 1) for _ in range(3)]
    for net, seed in zip(nets, (7, 7, 8), strict=True):
        train(net, drawn, TrainingCourse(steps=BUCKET, batch=2), seed=seed)
    first, second, third = map(weights, nets)
    assert same(first, second)
    assert not same(first, third)


def test_every_drawn_example_is_learned_from_once() -> None:
    generator = np.random.default_rng(0)
    examples = [drawn(generator) for _ in range(BUCKET * 4)]
    batches = list(supervised._bucket(examples, generator))
    assert [len(symbols) for symbols, _ in batches] == [4] * BUCKET
    seen = [
        tuple(row.tolist()) for symbols, _ in batches for row in symbols
    ]  # with what fills them up
    stripped = sorted(_unfilled(row) for row in seen)
    assert stripped == sorted(tuple(one.prompt + one.answer) for one in examples)
    lengths = [symbols.shape[1] for symbols, _ in batches]
    assert lengths != sorted(lengths), "their order is random"


def _unfilled(row: tuple[int, ...]) -> tuple[int, ...]:
    return row[: max(at for at, symbol in enumerate(row) if symbol) + 1]


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_the_rate_rises_and_falls_by_its_schedule(
    monkeypatch: pytest.MonkeyPatch, schedule: ScheduleName
) -> None:
    course = TrainingCourse(2 * BUCKET, 1, warm=4, muon=0.5, adam=0.25, schedule=schedule)
    rates: list[list[float]] = []

    def seen(_: Any, optimizers: Any, batch: Any, clip: float) -> float:
        rates.append([group["lr"] for one in optimizers for group in one.param_groups])
        assert clip == course.clip
        return 0.0

    monkeypatch.setattr(supervised, "_step", seen)
    train(network(SIZE, 1), drawn, course, seed=0)
    warm = [0.25, 0.5, 0.75, *[1.0] * (course.steps - 3)]
    falls = SCHEDULES[schedule]
    factors = [w * falls(step / course.steps) for step, w in enumerate(warm)]
    assert rates == [pytest.approx([0.5 * factor, 0.25 * factor]) for factor in factors]


def test_matrices_go_by_muon_and_everything_is_learned_by_one() -> None:
    net = network(SIZE, 1)
    muon, adam = supervised.optimizers_of(net, TrainingCourse(steps=BUCKET)).values()
    by_muon, by_adam = (
        {id(p) for group in one.param_groups for p in group["params"]} for one in (muon, adam)
    )
    assert not by_muon & by_adam
    assert by_muon | by_adam == {id(p) for p in net.parameters()}
    assert id(net.model.embed_tokens.weight) in by_adam
    assert all(p.ndim == 2 for group in muon.param_groups for p in group["params"])


def test_without_a_rate_of_its_own_adam_takes_the_matrices_and_what_is_frozen_is_left_out() -> None:
    net = network(SIZE, 1)
    net.model.embed_tokens.requires_grad_(requires_grad=False)
    found = supervised.optimizers_of(net, TrainingCourse(steps=BUCKET, muon=0))
    assert list(found) == ["adam"]
    learned = {id(p) for group in found["adam"].param_groups for p in group["params"]}
    assert learned == {id(p) for p in net.parameters() if p.requires_grad}
    assert any(p.ndim == 2 for group in found["adam"].param_groups for p in group["params"])


def test_gradients_are_cut_to_the_largest_norm() -> None:
    net = network(SIZE, 1)
    norms: list[float] = []

    class Spy:
        def step(self) -> None:
            squares = [float((p.grad**2).sum()) for p in net.parameters()]
            norms.append(sum(squares) ** 0.5)

        def zero_grad(self) -> None:
            net.zero_grad()

    batch = padded([drawn(np.random.default_rng(0))])
    spies: Any = [Spy()]
    supervised._step(net, spies, batch, clip=1e9)
    supervised._step(net, spies, batch, clip=1e-3)
    assert norms[0] > norms[1] == pytest.approx(1e-3, rel=1e-3)


@pytest.mark.slow
def test_a_tiny_network_learns_to_repeat_what_it_read() -> None:
    def repeat(generator: np.random.Generator) -> Example:
        digit = str(generator.integers(10))
        return Example(encode(f"a={digit};a?"), encode(f"{digit}<end>"))

    net, losses = network(Size(1, 32), 1), []
    course = TrainingCourse(steps=20 * BUCKET, batch=16, warm=10)
    done = train(net, repeat, course, seed=0, watch=lambda p: losses.append(p.loss))
    assert losses[0] > 1.5
    assert done.loss < 0.1
    rows = [GenerationRow(encode(f"a={digit};a?"), 4, ends=frozenset({1})) for digit in range(10)]
    assert [decode(d.ids) for d in generate(net, rows)] == [f"{digit}<end>" for digit in range(10)]
    assert not net.training

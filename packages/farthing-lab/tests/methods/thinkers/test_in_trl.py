"""TRL's trainer really learns from thinkers, on a tiny network."""

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers

from farthing.errors import InputError
from farthing_lab.lm.make import Size, network
from farthing_lab.lm.overthinking import RECIPES
from farthing_lab.lm.symbols import FIRST, NUMBERS, encode, tokenizer
from farthing_lab.methods.thinkers.base import Thinker, Thoughts
from farthing_lab.methods.thinkers.baselines import LengthPenalty, RightAlone
from farthing_lab.methods.thinkers.brpo import Brpo
from farthing_lab.methods.thinkers.cib import Cib
from farthing_lab.methods.thinkers.completions import Reading, told_rows
from farthing_lab.methods.thinkers.e1 import E1
from farthing_lab.methods.thinkers.in_trl import ThinkerAdvantages, ThinkerReward
from farthing_lab.tasks.arithmetic import ARITHMETIC, draw_of

pytestmark = [
    pytest.mark.extras("trl", "datasets", "accelerate"),
    pytest.mark.filterwarnings("ignore"),
]
UPDATES = 2


class Seen(list[Any]):
    """What a trainer's loss was given, an update at a time."""


def reading() -> Reading:
    return Reading(ARITHMETIC, tokenizer(FIRST), tuple(encode("<answer>")), cap=16)


def rows(thinker: Thinker, count: int = 4) -> list[dict[str, Any]]:
    drawn = draw_of("train", RECIPES, np.random.default_rng(0))
    problems = [next(drawn) for _ in range(count)]
    return told_rows([{"prompt": one.text, "gold": one.answer} for one in problems], thinker)


def trained(
    folder: Path, thinker: Thinker, *, reward: Any = None, **settings: Any
) -> tuple[Any, Seen]:
    """Train for two updates; return the trainer, and what its loss was given."""
    datasets, trl = (importlib.import_module(name) for name in ("datasets", "trl"))

    torch.manual_seed(0)
    net, seen, how = network(Size(1, 16), 1), Seen(), reading()
    net.save_pretrained(folder / "network")
    net = transformers.AutoModelForCausalLM.from_pretrained(
        folder / "network"
    )  # TRL looks for the reference there
    given = {
        "per_device_train_batch_size": 12,
        "num_generations": 4,
        "max_completion_length": 20,
        "learning_rate": 1e-2,
        "max_steps": UPDATES,
        "output_dir": str(folder),
        "report_to": "none",
        "save_strategy": "no",
        "use_cpu": True,
        "bf16": False,
        "gradient_checkpointing": False,
        "disable_tqdm": True,
        "seed": 3,
        **settings,
    }
    args = trl.GRPOConfig(**given)
    data = datasets.Dataset.from_list(rows(thinker))

    class Watched(trl.GRPOTrainer):  # type: ignore[misc, name-defined]
        def _compute_loss(self, model: Any, inputs: dict[str, Any]) -> Any:
            seen.append(dict(inputs))
            return super()._compute_loss(model, inputs)

    class Trainer(ThinkerAdvantages, Watched):
        pass

    common = {"args": args, "train_dataset": data, "processing_class": how.tokenizer}
    trainer: Any = (
        Trainer(net, thinker=thinker, reading=how, answer_tokens=2, **common)
        if reward is None
        else Watched(net, reward_funcs=[reward], **common)
    )
    before = [weights.clone() for weights in net.parameters()]
    trainer.train()
    moved = [not torch.equal(a, b) for a, b in zip(before, net.parameters(), strict=True)]
    assert trainer.state.global_step == UPDATES == len(seen)
    assert all(bool(weights.isfinite().all()) for weights in net.parameters())
    trainer.moved = any(moved)
    return trainer, seen


def test_a_reward_function_trains(tmp_path: Path) -> None:
    """A price on tokens differs between thoughts, whatever their answers."""
    trainer, seen = trained(
        tmp_path, LengthPenalty(), reward=ThinkerReward(LengthPenalty(), reading())
    )
    assert trainer.moved
    assert any("rewards/LengthPenalty/mean" in log for log in trainer.state.log_history)
    assert all(one["advantages"].shape == (12,) for one in seen)


class Told(Brpo):
    """BRPO, with whether a thought is right made up, so that parts differ."""

    judged: list[Thoughts]

    def advantage(self, thoughts: Thoughts, /) -> Any:
        found = super().advantage(thoughts)
        found[:] = np.arange(found.shape[1]) + 10 * np.arange(len(found))[:, None]
        return found


def test_parts_of_a_thought_have_advantages_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cuts of 16 tokens are after 2, 4, 6, 8 and 16; a row's last digit is its part."""
    asked: list[list[int]] = []
    draw = ThinkerAdvantages._answers

    def spy(trainer: Any, contexts: list[list[int]]) -> list[list[int]]:
        asked.extend(contexts)
        return draw(trainer, contexts)

    monkeypatch.setattr(ThinkerAdvantages, "_answers", spy)
    trainer, seen = trained(tmp_path, Told())
    assert trainer.moved
    assert all(one[-1] == NUMBERS["<answer>"] and one.index(NUMBERS["?"]) > 0 for one in asked)
    for one in seen:
        assert one["advantages"].shape == one["completion_ids"].shape
        for ids, mask, found in zip(
            one["completion_ids"], one["completion_mask"].bool(), one["advantages"], strict=True
        ):
            length = trainer.reading.length(ids[mask].tolist())
            at = np.minimum(np.arange(int(mask.sum())), length)
            parts = np.searchsorted([2, 4, 6, 8, 16], at, side="right")
            assert (found[mask].numpy() % 10).astype(int).tolist() == np.where(
                (at < 16) | (length <= 16), parts.clip(max=4), 0
            ).tolist()
            assert not found[~mask].any()


def test_both_ways_give_the_same_advantages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours beside what TRL itself compares, where whoever did not answer is wrong when asked."""
    monkeypatch.setattr(ThinkerAdvantages, "_answers", lambda _, asked: [[] for _ in asked])
    _, ours = trained(tmp_path, LengthPenalty())
    _, theirs = trained(tmp_path, LengthPenalty(), reward=ThinkerReward(LengthPenalty(), reading()))
    [a, b] = [
        {tuple(ids.tolist()): float(found) for ids, found in zip(*pair, strict=True)}
        for pair in (
            (ours[0]["completion_ids"], ours[0]["advantages"][:, 0]),
            (theirs[0]["completion_ids"], theirs[0]["advantages"]),
        )
    ]
    assert a.keys() == b.keys()
    assert max(a.values()) > 0.5
    assert list(a.values()) == pytest.approx([b[ids] for ids in a], rel=0.02, abs=1e-6)


@pytest.mark.parametrize("thinker", [RightAlone(), E1()])
def test_modes_of_a_question_are_in_one_batch(tmp_path: Path, thinker: Thinker) -> None:
    trainer, _ = trained(tmp_path, thinker, shuffle_dataset=False)
    assert trainer.state.global_step == UPDATES


def test_modes_that_would_be_torn_apart_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="E1 compares 3 modes"):
        trained(tmp_path, E1())
    with pytest.raises(InputError, match="E1 compares 3 modes"):
        trained(tmp_path, E1(), shuffle_dataset=False, per_device_train_batch_size=8)


def test_the_prior_is_trls_reference(tmp_path: Path) -> None:
    found: list[Any] = []

    class Watching(Cib):
        def advantage(self, thoughts: Thoughts, /) -> Any:
            found.append(thoughts.surprisal())
            return super().advantage(thoughts)

    trainer, seen = trained(tmp_path, Watching(), beta=0.1)
    assert trainer.moved
    assert (found[0] > 0).all()
    ends = trainer.reading
    nats = {
        round(-float(logps[: min(int(mask.sum()), ends.length(ids[mask].tolist()) + 1)].sum()), 3)
        for ids, mask, logps in zip(
            seen[0]["completion_ids"],
            seen[0]["completion_mask"].bool(),
            seen[0]["ref_per_token_logps"],
            strict=True,
        )
    }
    assert nats == {round(float(one), 3) for one in found[0]}
    with pytest.raises(InputError, match="reads a prior"):
        trained(tmp_path, Cib())


def test_an_answer_follows_its_context(tmp_path: Path) -> None:
    """Nearly cold, the model says what is likeliest, whatever else is asked beside."""
    trainer, _ = trained(tmp_path, RightAlone(), temperature=1e-4)
    contexts = [encode("b=a;a=4;b?<answer>"), encode("a=4;<answer>"), encode("<answer>")]
    answers = trainer._answers(contexts)
    net: Any = trainer.model.eval()
    for context, answer in zip(contexts, answers, strict=True):
        first, second = answer
        assert first == int(net(torch.tensor([context])).logits[0, -1].argmax())
        after = net(torch.tensor([[*context, first]])).logits[0, -1]
        assert second == int(after.argmax()) or first == trainer.reading.tokenizer.eos_token_id

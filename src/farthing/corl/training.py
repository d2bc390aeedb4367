"""Train a pool's controller, and write it as a folder that evaluates and runs.

OUT/.training keeps what is needed to go on after a kill; it goes when the controller is written.
"""

import json
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import transformers

from farthing import plugins
from farthing.corl.checkpoint import CARD, TRAINING, Card, check_out, settle
from farthing.corl.learner import Course, Lesson, Log, Watch, learn
from farthing.corl.pool import Pool
from farthing.corl.session import Opened
from farthing.errors import InputError
from farthing.lm.adapters import save
from farthing.lm.masked_ppo import Settings
from farthing.models.weights import quiet
from farthing.money import usd_from_nano
from farthing.rl.collapse import Prices
from farthing.traces.arrays import IntArray

ASKED = 120
"""Questions on which each expert is asked once, so that it is known what its calls cost."""


@dataclass(frozen=True)
class Plan:
    """How a controller is to be trained; a training that goes on needs the same."""

    reward: str = "hard-gate"
    """A name of `farthing.rewards`."""
    sampler: str = "rollouts"
    """A name of `farthing.samplers`."""
    allocation: str = "even"
    """A name of `farthing.allocations`."""
    course: Course = field(default_factory=Course)
    settings: Settings = field(default_factory=Settings)
    seed: int = 0

    def as_json(self, opened: Opened) -> dict[str, Any]:
        """Return all of it, and the pool's side of it, as JSON values."""
        return {**pool_side(opened.pool), **asdict(self)}


def pool_side(pool: Pool) -> dict[str, Any]:
    """Return what of a pool a training depends on, as JSON values."""
    return {
        "pool": pool.name,
        "style": pool.style,
        "modes": {mode.name: mode.budget_nano for mode in pool.modes},
        "most_turns": pool.most_turns,
        "max_tokens": pool.max_tokens,
        "hooks": pool.hooks,
        "weights": str(pool.weights()),
        "experts": {name: pool.models.sections[name].settings.model for name in pool.experts},
        "prices": {name: str(pool.price(name)) for name in (pool.controller, *pool.experts)},
    }


def train(opened: Opened, plan: Plan, out: Path, watch: Watch = lambda _: None) -> Log:
    """Train the controller by reinforcement, and write its folder.

    Args:
        opened: the pool; its controller is what learns.
        plan: how.
        out: gets the weights, the tokenizer and `controller.json`. A training that was killed goes
            on from what is there.
        watch: is told after each update.

    Raises:
        InputError: the folder holds something else, or a training of another plan.
    """
    check_out(out)
    reward = plugins.load("rewards", plan.reward)
    sampler = plugins.load("samplers", plan.sampler)
    allocation = plugins.load("allocations", plan.allocation)
    said = json.loads(json.dumps(plan.as_json(opened)))
    begin(out, said)
    costs = call_costs(opened)
    least = min(int(some.min()) for some in costs.values())
    lesson = Lesson(
        voice=opened.voice,
        rules=opened.rules,
        modes=opened.modes,
        experts=opened.experts,
        task=opened.task,
        draw=lambda generator: opened.pool.questions.draw("train", generator),
        reward=reward,
        sampler=sampler,
        allocation=allocation,
        prices=Prices(least, {mode.name: mode.budget_nano for mode in opened.modes}),
    )
    kept = out / TRAINING / "state"
    log = learn(lesson, plan.course, plan.settings, seed=plan.seed, folder=kept, watch=watch)
    write(opened, out, card_of(opened, asdict(plan), costs, log))
    return log


def call_costs(opened: Opened) -> dict[str, IntArray]:
    """Return what calls of each expert cost, on questions to train, in nano-dollars."""
    questions = opened.pool.questions.sample("train", ASKED, 0)
    names = opened.rules.names
    replies = opened.experts.ask([(name, one.text) for name in names for one in questions])
    costs = np.array([reply.cost_nano for reply in replies]).reshape(len(names), -1)
    return dict(zip(names, costs, strict=True))


def begin(out: Path, said: Mapping[str, Any]) -> None:
    """Write down the plan, or hold it to the one that was begun.

    What an older version did not write down is not compared.

    Raises:
        InputError: a training of another plan was begun; the message names what is different.
    """
    file = out / TRAINING / "plan.json"
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(said, indent=1))
        return
    before = json.loads(file.read_text())
    changed = [
        place for name in sorted(said.keys() & before) for place in _changed(said, before, name)
    ]
    if changed:
        raise InputError(
            f"{out}: holds a training that was begun with other settings ({', '.join(changed)}); "
            "give the same to go on, or name another folder"
        )


def _changed(
    said: Mapping[str, Any], before: Mapping[str, Any], name: str, above: str = ""
) -> list[str]:
    """Return where two records differ under a name, such as `prices.large`."""
    now, then = said.get(name), before.get(name)
    if now == then:
        return []
    if not isinstance(now, dict) or not isinstance(then, dict):
        return [f"{above}{name}"]
    names = sorted(now.keys() | then)
    return [place for one in names for place in _changed(now, then, one, f"{above}{name}.")]


def card_of(opened: Opened, said: dict[str, Any], costs: Mapping[str, IntArray], log: Log) -> Card:
    """Return the card of a controller that was taught by a plan, `said`."""
    return Card(
        pool=opened.pool.name,
        modes_usd={mode.name: usd_from_nano(mode.budget_nano) for mode in opened.modes},
        style=opened.pool.style,
        most_turns=opened.pool.most_turns,
        call_cost_usd={name: usd_from_nano(float(some.mean())) for name, some in costs.items()},
        seed=said.pop("seed"),
        settings=said,
        updates=[asdict(one) for one in log.updates],
        stopped=log.stopped,
        hooks=opened.pool.hooks,
    )


def write(opened: Opened, out: Path, card: Card) -> None:
    """Write the controller; the card comes last, so that where it is, all is."""
    made = out / TRAINING / "made"
    with quiet(transformers):
        save(opened.voice.network, made)
        opened.tokenizer.save_pretrained(made)
    (made / CARD).write_bytes(msgspec.json.format(msgspec.json.encode(card), indent=1) + b"\n")
    settle(made, out)
    shutil.rmtree(out / TRAINING)

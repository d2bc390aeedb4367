"""CORL's controllers, trained with tiny networks: kills, folders, cards."""

from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import torch
from controller_pool import calls, write_pool
from safetensors.torch import load_file

from farthing.errors import InputError
from farthing.models.prices import FREE, PriceTable, Rates, TokenPrice
from farthing_lab.corl import learner
from farthing_lab.corl import pool as folders
from farthing_lab.corl.evaluation import greedy
from farthing_lab.corl.learner import TrainingSchedule, Update
from farthing_lab.corl.pool import ListedQuestions, read_pool
from farthing_lab.corl.rollouts import PoolSession, load_voice
from farthing_lab.corl.training import TrainingPlan, train
from farthing_lab.lm.masked_ppo import Settings


@pytest.fixture(scope="module")
def pool_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_pool(tmp_path_factory.mktemp("corl"))


PLAN = TrainingPlan(
    course=TrainingSchedule(updates=3, prompts=4, rollouts=1),
    settings=Settings(advantage="gae", minibatch=4),
)


@pytest.mark.slow
@pytest.mark.parametrize("advantage", ["gae", "group"])
def test_a_training_goes_on_after_a_kill_as_if_there_was_none(
    pool_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, advantage: Any
) -> None:
    monkeypatch.setattr(learner, "EVERY_S", 0.0)
    plan = replace(
        PLAN,
        course=TrainingSchedule(updates=3, prompts=4, rollouts=2),
        settings=Settings(minibatch=4, advantage=advantage),
    )

    def killed(update: Update) -> None:
        if update.update == 2:
            raise KeyboardInterrupt

    outs = tmp_path / "whole", tmp_path / "killed"
    for out, watch in ((outs[0], None), (outs[1], killed), (outs[1], None)):
        with PoolSession.of(read_pool(pool_file)) as opened:
            if watch is not None:
                with pytest.raises(KeyboardInterrupt):
                    train(opened, plan, out, watch)
                assert (out / folders.TRAINING).is_dir()
            else:
                train(opened, plan, out)
    whole, again = (load_file(out / "model.safetensors") for out in outs)
    assert all(torch.equal(whole[name], again[name]) for name in whole)
    cards = [folders.read_card(out) for out in outs]
    assert [[one["reward"] for one in card.updates] for card in cards if card] == [
        [one["reward"] for one in cards[0].updates] if cards[0] else []
    ] * 2
    assert not (outs[1] / folders.TRAINING).exists()


def test_it_learns_from_questions_to_train_alone(pool_file: Path, tmp_path: Path) -> None:
    """Where there are no others nothing is missing: to draw one of another part is an error."""
    pool = read_pool(pool_file)
    assert isinstance(pool.questions, ListedQuestions)
    those = tuple(one for one in pool.questions.questions if one.split == "train")
    assert 0 < len(those) < len(pool.questions.questions)
    with PoolSession.of(replace(pool, questions=ListedQuestions(those))) as opened:
        log = train(opened, replace(PLAN, course=TrainingSchedule(1, 4, 1)), tmp_path / "made")
    assert len(log.updates) == 1


@pytest.mark.slow
def test_a_trained_folder_says_how_it_is_played(pool_file: Path, tmp_path: Path) -> None:
    out = tmp_path / "made"
    with PoolSession.of(read_pool(pool_file)) as opened:
        log = train(opened, replace(PLAN, course=TrainingSchedule(1, 4, 1)), out)
        voice = opened.voice
    card = folders.read_card(out)
    assert card is not None
    assert list(card.modes_usd) == ["low", "high"]
    assert card.call_cost_usd["small"] < card.call_cost_usd["large"]
    assert card.updates[0]["reward"] == log.updates[0].reward
    assert card.settings["reward"] == "hard-gate"
    found = folders.pool_of(out, None)
    assert found.pool.name == str(pool_file)
    assert found.pool.price("writer") == read_pool(pool_file).price("writer")
    loaded, _ = load_voice(found.pool.weights(), FREE, 9)
    ours, theirs = (one.network.state_dict() for one in (voice, loaded))
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)
    with pytest.raises(InputError, match="holds a controller already"):
        folders.check_out(out)


@pytest.mark.slow
def test_a_controller_is_evaluated_under_the_hooks_that_it_learned_under(
    pool_file: Path, tmp_path: Path
) -> None:
    out = tmp_path / "made"
    bound = replace(read_pool(pool_file), hooks=("no-calls",))
    with PoolSession.of(bound) as opened:
        log = train(opened, replace(PLAN, course=TrainingSchedule(2, 8)), out)
    assert [one.call_ratio for one in log.updates] == [0.0, 0.0]
    card = folders.read_card(out)
    assert card is not None
    assert card.hooks == ("no-calls",)
    for name in (None, "two"):
        assert folders.pool_of(out, name).pool.hooks == ("no-calls",)
    with PoolSession.of(folders.pool_of(out, None).pool) as opened:
        always = replace(opened, voice=replace(opened.voice, network=calls("small")))
        questions = always.pool.questions.sample("test", 4, 0)
        assert not any(one.calls for one in greedy(always, questions, always.modes[0]))
        free = replace(always, voice=replace(always.voice, hooks=()))
        assert all(one.calls for one in greedy(free, questions, always.modes[0]))


@pytest.mark.slow
def test_a_training_of_another_plan_is_refused(pool_file: Path, tmp_path: Path) -> None:
    def killed(_: Update) -> None:
        raise KeyboardInterrupt

    with PoolSession.of(read_pool(pool_file)) as opened:
        with pytest.raises(KeyboardInterrupt):
            train(opened, PLAN, tmp_path / "out", killed)
        with pytest.raises(InputError, match=r"begun with other settings \(seed\)"):
            train(opened, replace(PLAN, seed=1), tmp_path / "out")
    pool = read_pool(pool_file)
    dearer = PriceTable({"large": TokenPrice((Rates(Decimal(11), Decimal(40)),))})
    for other, changed in (
        (replace(pool, hooks=("no-calls",)), "hooks"),
        (replace(pool, max_tokens=13), "max_tokens"),
        (replace(pool, modes=(replace(pool.modes[0], budget_nano=1), pool.modes[1])), "modes.low"),
        (replace(pool, models=replace(pool.models, prices=dearer)), "prices.large"),
    ):
        with (
            PoolSession.of(other) as opened,
            pytest.raises(InputError, match=rf"begun with other settings \({changed}\)"),
        ):
            train(opened, PLAN, tmp_path / "out")

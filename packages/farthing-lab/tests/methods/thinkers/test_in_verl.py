"""verl's estimators, beside the thinkers that they are made of, by verl's own names of arguments.

verl wants other versions of what the tests of extras run with, so the test at the end reads its
source, and runs its registry and its dispatch alone.
"""

import ast
import importlib
from enum import Enum
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from farthing import plugins
from farthing.errors import InputError
from farthing_lab.methods.thinkers import in_verl
from farthing_lab.methods.thinkers.base import Thoughts
from farthing_lab.methods.thinkers.baselines import LengthPenalty, RightAlone
from farthing_lab.methods.thinkers.brpo import Brpo
from farthing_lab.methods.thinkers.completions import unknown
from farthing_lab.methods.thinkers.in_verl import NAMES, advantages, graded, register

CAP = 8
LENGTHS = (3, 8, 5, 6)
RIGHT = (1.0, 1.0, 0.0, 1.0)
PROMPTS = np.array(["p", "p", "q", "q"], dtype=object)
CONFIG = {"farthing_cap": CAP}


def responses() -> tuple[torch.Tensor, torch.Tensor]:
    """Return rewards at the last tokens, and the mask, [4, 8] each."""
    reward, mask = torch.zeros(2, len(LENGTHS), CAP)
    for row, (length, right) in enumerate(zip(LENGTHS, RIGHT, strict=True)):
        mask[row, :length] = 1
        reward[row, length - 1] = right
    return reward, mask


def plain(right: list[list[float]]) -> Thoughts:
    none = np.zeros(4, int)
    return Thoughts(
        np.array(LENGTHS), CAP, np.array(right), np.array([0, 0, 1, 1]), none, none, unknown
    )


def given(thinker: Any, **changed: Any) -> torch.Tensor:
    reward, mask = responses()
    named = {"token_level_rewards": reward, "response_mask": mask, "index": PROMPTS}
    found, returns = advantages(thinker, **{**named, "config": CONFIG, **changed})
    assert found is returns
    return found


@pytest.mark.parametrize("thinker", [RightAlone(), LengthPenalty()])
def test_a_whole_thought_has_the_advantage_of_its_thinker(thinker: Any) -> None:
    found = given(thinker)
    expected = thinker.advantage(plain([[one] for one in RIGHT]))[:, 0]
    for row, length in enumerate(LENGTHS):
        assert found[row, :length].tolist() == pytest.approx([expected[row]] * length)
        assert not found[row, length:].any()


def test_rewards_at_cuts_are_brpos() -> None:
    """Cuts after 4 and 8 tokens: the second is right from its fourth token on, the last later."""
    reward, _ = responses()
    reward[1, 3] = 1.0
    found = given(Brpo(cuts=(0.5, 1.0)), token_level_rewards=reward)
    right = [[1.0, 1.0], [1.0, 1.0], [0.0, 0.0], [0.0, 1.0]]
    expected = Brpo(cuts=(0.5, 1.0)).advantage(plain(right))
    for row, length in enumerate(LENGTHS):
        parts = [expected[row, int(at >= 4)] for at in range(length)]
        assert found[row, :length].tolist() == pytest.approx(parts)


def test_what_others_wrote_counts_as_nothing() -> None:
    """A reply of two tokens within a response moves what follows, and has no advantage."""
    reward, mask = responses()
    wide = [torch.cat([one[:, :2], torch.zeros(4, 2), one[:, 2:]], 1) for one in (reward, mask)]
    found = given(LengthPenalty(), token_level_rewards=wide[0], response_mask=wide[1])
    assert not found[:, 2:4].any()
    again = torch.cat([found[:, :2], found[:, 4:]], 1)
    assert torch.equal(again, given(LengthPenalty()))


def test_a_response_of_nothing_is_wrong() -> None:
    reward, mask = responses()
    reward[0], mask[0] = 0.0, 0.0
    found = given(RightAlone(), token_level_rewards=reward, response_mask=mask)
    assert not found[0].any()
    assert found[1, 0] > 0


def test_what_cannot_be_read_is_refused() -> None:
    with pytest.raises(InputError, match=r"farthing_cap=N"):
        given(RightAlone(), config={})
    reward, _ = responses()
    with pytest.raises(InputError, match="use_kl_in_reward=False"):
        given(RightAlone(), token_level_rewards=reward - 0.1)


def test_a_response_is_graded_by_its_task() -> None:
    asked: dict[str, Any] = {"data_source": "own", "extra_info": {"num_turns": 1}}
    right = graded(solution_str="so 6 * 3 #### 18", ground_truth="18", **asked)
    assert right == {"score": 1.0, "acc": 1.0}
    wrong = graded(solution_str="so 19", ground_truth=["17", "18"], **asked)
    assert wrong == {"score": 0.0, "acc": 0.0}
    assert graded(solution_str="  Yes ", ground_truth="yes", task="text", **asked)["score"] == 1.0


def verls(path: str, *names: str, **beside: Any) -> SimpleNamespace:
    """Return functions and classes of one of verl's files, run without what the file imports."""
    spec = find_spec("verl")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    [folder] = spec.submodule_search_locations
    tree = ast.parse((Path(folder) / path).read_text())
    kept = [node for node in tree.body if name_of(node) in names]
    assert {name_of(node) for node in kept} == set(names)
    unread = ast.parse("from __future__ import annotations").body  # no annotation is looked up
    made: dict[str, Any] = {"__name__": "verl", "Enum": Enum, **beside}
    exec(compile(ast.Module([*unread, *kept], []), path, "exec"), made)
    return SimpleNamespace(**{name: made[name] for name in names})


def name_of(node: ast.stmt) -> str:
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return node.name
    target = node.target if isinstance(node, ast.AnnAssign) else None
    return target.id if isinstance(target, ast.Name) else ""


@pytest.mark.extras("verl")
@pytest.mark.parametrize("name", NAMES)
def test_verl_itself_finds_an_estimator_and_hands_over_what_it_reads(name: str) -> None:
    registry = ("AdvantageEstimator", "ADV_ESTIMATOR_REGISTRY", "register_adv_est")
    core = verls("trainer/ppo/core_algos.py", *registry, "get_adv_estimator_fn")
    dispatch = verls(
        "trainer/ppo/ray_trainer.py",
        "compute_advantage",
        core_algos=core,
        AdvantageEstimator=core.AdvantageEstimator,
    )
    register(core.register_adv_est)
    reward, mask = responses()
    data = SimpleNamespace(
        batch={"token_level_rewards": reward, "response_mask": mask},
        non_tensor_batch={"uid": PROMPTS},
    )
    done = dispatch.compute_advantage(data, f"farthing-{name}", config=CONFIG)
    expected = given(plugins.load("thinkers", name).make)
    assert torch.equal(done.batch["advantages"], expected)
    assert torch.equal(done.batch["returns"], expected)


@pytest.mark.extras("verl")
def test_verl_itself_finds_the_reward() -> None:
    loading = verls(
        "utils/import_utils.py",
        *("load_module", "load_extern_object"),
        importlib=importlib,
        PKG_PATH_PREFIX="pkg://",
    )
    module = f"pkg://{in_verl.__name__}"
    assert loading.load_extern_object(module, "graded") is graded

"""What the embedded networks learn from: what is right, of one part, with the gaps they say."""

from collections import Counter
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest

from farthing_lab.corl.episode import Ask, FinalAnswer, read
from farthing_lab.lm.make import (
    CONTEXT,
    LENGTHS,
    NETWORKS,
    OWN_HOPS,
    RIGHT,
    NetworkRecipe,
    called,
    draws,
    network,
    noted,
)
from farthing_lab.lm.supervised import BUCKET, Example
from farthing_lab.lm.symbols import END, EXPERTS, MODES, decode
from farthing_lab.tasks.arithmetic import (
    ARITHMETIC,
    KINDS,
    ChainProblem,
    Kind,
    Recipe,
    draw_of,
    part_of,
    solve,
)

BY_NAME = {one.name: one for one in NETWORKS}
SOLVERS = [one for one in NETWORKS if not one.calls]


def examples(one: NetworkRecipe, count: int, seed: int = 0) -> list[Example]:
    drawn, generator = draws(one), np.random.default_rng(seed)
    return [drawn(generator) for _ in range(count)]


def question(example: Example) -> str:
    text = decode(example.prompt)
    for mode in MODES:
        text = text.removeprefix(mode)
    return text


@pytest.mark.parametrize("one", NETWORKS, ids=lambda one: one.name)
def test_a_network_learns_from_the_part_train_alone(one: NetworkRecipe) -> None:
    assert {part_of(question(example)) for example in examples(one, 200)} == {"train"}


@pytest.mark.parametrize("one", NETWORKS, ids=lambda one: one.name)
def test_examples_have_a_symbol_for_everything_and_fit_the_context(one: NetworkRecipe) -> None:
    for example in examples(one, 300):
        assert 0 not in example.prompt + example.answer
        assert len(example.prompt) + len(example.answer) < CONTEXT / 2


@pytest.mark.parametrize("one", SOLVERS, ids=lambda one: one.name)
def test_a_solver_is_shown_thought_and_the_right_answer(one: NetworkRecipe) -> None:
    for example in examples(one, 200):
        text, gold = decode(example.answer), solve(question(example))
        assert text.endswith(f"{gold};<answer>{gold}</answer>{END}")
        assert ARITHMETIC.grade(text.removesuffix(END), [gold])


def controlled(count: int) -> list[tuple[ChainProblem, Example]]:
    generator = np.random.default_rng(5)
    drawn = draw_of("train", BY_NAME["controller"].recipes, generator)
    return [(problem, called(problem, generator)) for problem in islice(drawn, count)]


@pytest.mark.slow
def test_a_controller_is_shown_calls_that_its_syntax_reads() -> None:
    modes, experts, calling, right = Counter[str](), Counter[str](), 0, 0
    shown = controlled(3_000)
    for problem, example in shown:
        prompt, text = decode(example.prompt), decode(example.answer)
        mode = prompt.removesuffix(problem.text)
        assert mode in MODES
        modes[mode] += 1
        assert text.startswith(noted(problem, mode))
        if "<call>" not in text:
            continue
        call, rest = text.split("<reply>")
        reply, turn = rest.split("</reply>")
        move = read(call, EXPERTS)
        assert isinstance(move, Ask)
        assert move.question is None
        assert read(turn.removesuffix(END), EXPERTS) == FinalAnswer(reply)
        experts[move.expert] += 1
        calling, right = calling + 1, right + (reply == problem.answer)
    assert calling / len(shown) == pytest.approx(0.5, abs=0.04)
    # A reply that is not right is any digit, so that one in ten of those is right all the same.
    assert right / calling == pytest.approx(RIGHT + (1 - RIGHT) / 10, abs=0.03)
    assert set(experts) == set(EXPERTS)
    assert max(experts.values()) < 1.25 * min(experts.values())
    assert max(modes.values()) < 1.15 * min(modes.values())


@pytest.mark.slow
def test_a_controller_alone_solves_what_is_short_and_guesses_the_rest() -> None:
    right = Counter[bool]()
    for problem, example in controlled(2_000):
        text = decode(example.answer).removesuffix(END)
        if "<call>" in text:
            continue
        move = read(text, EXPERTS)
        assert isinstance(move, FinalAnswer)
        mode = decode(example.prompt).removesuffix(problem.text)
        text = text.removeprefix(noted(problem, mode))
        if problem.recipe.hops <= OWN_HOPS:
            assert text == f"{problem.worked}<answer>{problem.answer}</answer>"
        else:
            assert text == f"<answer>{move.text}</answer>"
            right[move.text == problem.answer] += 1
    assert right[True] / right.total() == pytest.approx(0.1, abs=0.04)


def cells(name: str) -> set[tuple[Kind, int]]:
    return {(recipe.kind, recipe.hops) for recipe in BY_NAME[name].recipes}


def every(*kinds: Kind, longest: int = 7) -> set[tuple[Kind, int]]:
    return {(kind, hops) for kind in kinds for hops in range(1, longest + 1)}


def test_the_gaps_between_the_networks_are_those_that_they_say() -> None:
    assert cells("large") == every("affine")
    assert cells("sums") == every("sums")
    assert cells("products") == every("products")
    assert cells("small") == every(*KINDS, longest=4)
    assert cells("controller") == every(*KINDS)
    assert every(*KINDS) == {(kind, hops) for kind, lengths in LENGTHS.items() for hops in lengths}


def test_the_pool_is_the_one_that_a_controller_can_name() -> None:
    assert sorted(BY_NAME) == sorted([*EXPERTS, "controller"])
    assert [one.name for one in NETWORKS if one.calls] == ["controller"]
    assert len({one.seed for one in NETWORKS}) == len(NETWORKS)
    assert all(one.course.steps % BUCKET == 0 for one in NETWORKS)


def test_prices_rise_from_the_controller_to_the_dear_one() -> None:
    for at in (0, 1):
        price = {name: one.price[at] for name, one in BY_NAME.items()}
        assert 4 * price["controller"] < price["small"] <= price["sums"] == price["products"]
        assert 4 * price["products"] < price["large"]


def test_networks_have_the_size_that_the_page_names() -> None:
    for one in NETWORKS:
        parameters = sum(p.numel() for p in network(one.size, one.seed).parameters())
        assert 400_000 < parameters < 800_000


def test_equal_generators_draw_equal_examples() -> None:
    one = BY_NAME["controller"]
    assert examples(one, 20, seed=1) == examples(one, 20, seed=1) != examples(one, 20, seed=2)


def test_a_network_learns_from_its_own_recipes() -> None:
    one = replace(BY_NAME["small"], recipes=(Recipe("sums", 1, 0),))
    for example in examples(one, 20):
        assert question(example).count(";") == 2
        assert "*" not in question(example)

"""Who gets which advantage, what is asked at which cut, and that a wrong sign is noticed."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import gamma

from farthing.lm.masked_ppo import Learners, MaskedTrainer
from farthing.lm.networks import Size, network
from farthing.lm.overthinking import RECIPES
from farthing.lm.symbols import NUMBERS, SYMBOLS, encode
from farthing.methods.thinkers import training
from farthing.methods.thinkers.base import Thinker, Thoughts
from farthing.methods.thinkers.baselines import LengthPenalty, RightAlone
from farthing.methods.thinkers.brpo import Brpo
from farthing.methods.thinkers.budget_guidance import BudgetGuidance, RemainingLength, guided
from farthing.methods.thinkers.cib import Cib
from farthing.methods.thinkers.hbpo import SHARES, Hbpo
from farthing.methods.thinkers.training import ENDS, SETTINGS, DrawnThoughts, ThinkingCourse, think
from farthing.models.generation import Context
from farthing.models.generation_rows import Generated
from farthing.tasks.arithmetic import draw_of

torch.set_num_threads(1)
CAP = 16


def tiny(seed: int = 1) -> Any:
    """Return a network whose probabilities are not even."""
    net = network(Size(1, 16), seed).eval()
    with torch.no_grad():
        for p in net.parameters():
            p.mul_(2.0)
    return net


def thought(ids: Sequence[int]) -> Generated:
    ended = ids[-1] == ENDS
    return Generated(tuple(ids), (-1.0,) * len(ids), (), "end" if ended else "length")


def test_each_token_gets_the_advantage_of_the_cut_it_stands_before() -> None:
    """Cuts after 4 and 8 of 8 tokens; what ends a thought counts where it stands."""
    rows = [thought([5] * 6 + [ENDS]), thought([5] * 9), thought([ENDS])]
    advantage = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    found = training.spread(advantage, (0.5, 1.0), rows, 8)
    assert [row.tolist() for row in found] == [[1] * 4 + [2] * 3, [3] * 4 + [4] * 5, [5]]


def test_a_cut_is_asked_for_the_answer_with_the_thought_so_far() -> None:
    """Each chance is that of one pass over prompt, thought so far and the opened answer."""
    net = tiny()
    drawn = draw_of("train", RECIPES, np.random.default_rng(0))
    problems = [next(drawn) for _ in range(3)]
    prompts = [encode(one.text) for one in problems]
    thoughts = [thought([5, 9, 11, ENDS]), thought([7] * 9), thought([20, ENDS])]
    stops = np.array([[2, 3], [2, 8], [1, 1]])
    found = training.chance_at(net, DrawnThoughts(problems, prompts, thoughts), stops)
    for row, (problem, prompt, one) in enumerate(zip(problems, prompts, thoughts, strict=True)):
        for cut, stop in enumerate(stops[row]):
            tokens = torch.tensor([[*prompt, *one.ids[:stop], ENDS]])
            odds = net(tokens).logits[0, -1].softmax(dim=0)
            assert found[row, cut] == pytest.approx(odds[NUMBERS[problem.answer]].item(), rel=1e-4)


def test_a_thinker_sees_lengths_groups_modes_and_surprisal() -> None:
    """What an update hands over is what was drawn, in the order in which it was."""
    net = tiny()
    seen: list[Thoughts] = []

    class Watching(Hbpo):
        def advantage(self, thoughts: Thoughts, /) -> Any:
            seen.append(thoughts)
            return super().advantage(thoughts)

    course = ThinkingCourse(updates=1, prompts=2, rollouts=4, cap=CAP)
    [update] = training.train(net, Watching(), course, seed=3)
    [found] = seen
    assert found.group.tolist() == [0] * 4 + [1] * 4
    assert found.told.tolist() == [0, 1, 2, 3] * 2
    assert (found.length <= CAP).all()
    assert found.right.shape == (8, 1)
    assert set(found.right.flat) <= {0.0, 1.0}  # a guess is no tenth of a right answer
    assert update.length == pytest.approx(found.length.mean())
    # Before the first update the prior is the network itself.
    assert (found.surprisal() > 0).all()


def test_surprisal_is_the_sum_over_the_thoughts_tokens() -> None:
    net = tiny()
    trainer = MaskedTrainer(Learners.of(net, SETTINGS), SETTINGS)
    prompts = [[5, 6], [7, 8, 9]]
    drawn = think(net, prompts, CAP, np.random.default_rng(0))
    found = training.surprisal(trainer, DrawnThoughts([], prompts, drawn))
    assert found == pytest.approx([-sum(one.logprobs) for one in drawn], rel=1e-4)


@pytest.mark.parametrize(("thinker", "passes"), [(RightAlone(), 0), (Cib(), 1)])
def test_the_prior_is_asked_by_those_that_read_it(
    monkeypatch: pytest.MonkeyPatch, thinker: Thinker, passes: int
) -> None:
    asked: list[int] = []

    def watched(_trainer: MaskedTrainer, drawn: DrawnThoughts) -> Any:
        asked.append(len(drawn.thoughts))
        return np.ones(len(drawn.thoughts))

    monkeypatch.setattr(training, "surprisal", watched)
    course = ThinkingCourse(updates=1, prompts=2, rollouts=4, cap=CAP)
    training.train(tiny(), thinker, course, seed=3)
    assert asked == [8] * passes


@pytest.mark.parametrize("budget", [0, 3, 9])
def test_a_guided_thought_keeps_its_budget(budget: int) -> None:
    net = tiny()
    prompts = [[5, 6], [7, 8, 9], [4]] * 4
    own = think(net, prompts, 40, np.random.default_rng(1))
    predictor = BudgetGuidance(steps=20).fit(
        net, list(zip(prompts, [one.ids for one in own], strict=True)), 0
    )
    with guided(net, predictor, budget, ENDS) as hook:
        steered = think(net, prompts, budget, np.random.default_rng(1), [hook])
    assert all(one.ids[-1] == ENDS for one in steered)
    assert max(len(one.ids) for one in steered) <= budget + 1
    assert not net.model._forward_hooks


def test_guidance_weighs_each_token_by_the_chance_that_the_rest_fits() -> None:
    """Beside SciPy's distribution, for every token."""
    net = tiny()
    layer = torch.nn.Linear(16, 2 * len(SYMBOLS))
    predictor = RemainingLength(layer)
    tokens = torch.tensor([[5, 6, 7]])
    with guided(net, predictor, 9, ENDS) as hook, torch.no_grad():
        logits = net(tokens).logits[:, -1]
        steered = hook(logits, [Context([5, 6, 7], 1)])
        hidden = net.model(tokens).last_hidden_state[:, -1]
        shape, rate = predictor.gamma(hidden)
    fits = np.asarray(gamma.cdf(np.log1p(9 - 2), shape[0].numpy(), scale=1 / rate[0].numpy()))
    fits[ENDS] = 1.0
    assert (steered - logits)[0].numpy() == pytest.approx(np.log(fits), rel=1e-3, abs=1e-4)


def test_a_budget_is_all_of_a_thought_but_what_ends_it() -> None:
    """Before the last token of the budget others may still come; after it nothing but the end."""
    net, predictor = tiny(), RemainingLength(torch.nn.Linear(16, 2 * len(SYMBOLS)))
    others = [token for token in range(len(SYMBOLS)) if token != ENDS]
    for taken, some in ((2, True), (3, False)):
        ids = [5, *range(10, 10 + taken)]
        with guided(net, predictor, 3, ENDS) as hook, torch.no_grad():
            steered = hook(net(torch.tensor([ids])).logits[:, -1], [Context(ids, 1)])
        assert bool(steered[0, others].isfinite().any()) is some
        assert steered[0, ENDS].isfinite()


@pytest.mark.slow
def test_the_predictor_finds_the_distribution_that_made_the_lengths() -> None:
    """Every thought has seven tokens: what remains is known from the place."""
    net = tiny()
    thoughts = [([4, 5], [*range(10, 17), ENDS])] * 8
    predictor = BudgetGuidance(steps=400).fit(net, thoughts, 0)
    tokens = torch.tensor([[4, 5, *range(10, 17)]])
    with torch.no_grad():
        hidden = net.model(tokens).last_hidden_state[0, 1:8]
        shape, rate = predictor.gamma(hidden)
    for at, token in enumerate(range(10, 17)):
        mean = float(shape[at, token] / rate[at, token])
        assert mean == pytest.approx(np.log1p(7 - at), rel=0.15)


LENGTHS = np.array([2, 4, 8, 12, 16])
"""What a policy of two numbers a length may choose on the two questions below."""
ENOUGH = np.array([4, 12])
"""From so many tokens on each is answered right."""


def settled(thinker: Thinker, *, sign: float = 1.0, updates: int = 150) -> list[list[int]]:
    """Teach two questions' choice of a length, and return what each chooses in each mode."""
    rng = np.random.default_rng(0)
    modes = len(thinker.modes)
    logits = torch.zeros(2, modes, len(LENGTHS), dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.Adam([logits], lr=0.15)
    group, told = np.repeat([0, 1], 16), np.tile(np.arange(16) % modes, 2)
    for _ in range(updates):
        odds = logits[group, told].softmax(dim=1)
        taken = np.array([rng.choice(len(LENGTHS), p=p) for p in odds.detach().numpy()])
        length = LENGTHS[taken]
        cuts = (np.array(thinker.cuts) * CAP).astype(int)
        stops = np.minimum(length[:, None], cuts)
        right = (stops >= ENOUGH[group][:, None]).astype(float)
        some = Thoughts(length, CAP, right, group, told, partial(np.ones, len(length)))
        advantage = thinker.advantage(some)
        ends = np.searchsorted(cuts, length)
        worth = torch.tensor(advantage[np.arange(len(length)), ends])
        taken_odds = odds.log()[torch.arange(len(length)), torch.tensor(taken)]
        loss = -(sign * worth * taken_odds).mean() - 0.002 * (-(odds * odds.log()).sum(1)).mean()
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    chosen: list[list[int]] = LENGTHS[logits.argmax(dim=2).numpy()].tolist()
    return chosen


def test_a_price_on_tokens_finds_each_questions_shortest_thought() -> None:
    assert settled(LengthPenalty()) == [[4], [12]]


def test_right_alone_takes_any_length_that_is_enough() -> None:
    [[easy], [hard]] = settled(RightAlone())
    assert easy >= 4
    assert hard >= 12


def test_hbpo_takes_the_best_length_for_each_budget() -> None:
    """Budgets of 2, 4, 8 and 10 of 16 tokens; several lengths may be worth the same."""
    for enough, chosen in zip(ENOUGH, settled(Hbpo()), strict=True):
        for share, length in zip(SHARES, chosen, strict=True):
            worth = [_hbpo_worth(int(n), enough, share * CAP) for n in LENGTHS]
            assert _hbpo_worth(length, enough, share * CAP) == max(worth) > 0


def _hbpo_worth(length: int, enough: int, budget: float) -> float:
    some = Thoughts(
        *(np.array([length]), CAP, np.array([[float(length >= enough)]])),
        *(np.zeros(1, int), np.zeros(1, int), lambda: np.ones(1)),
    )
    return float(Hbpo().reward(some, np.array([budget]))[0])


@pytest.mark.slow
@pytest.mark.parametrize("thinker", [LengthPenalty(), RightAlone()])
def test_a_wrong_sign_is_noticed(thinker: Thinker) -> None:
    assert settled(thinker, sign=-1.0) != settled(thinker)


@pytest.mark.slow
def test_advantages_of_the_wrong_thoughts_are_noticed() -> None:
    """Each thought is told what the one at the other end of the batch was worth."""

    class Swapped(LengthPenalty):
        def advantage(self, thoughts: Thoughts, /) -> Any:
            return super().advantage(thoughts)[::-1]

    assert settled(Swapped()) != settled(LengthPenalty())


def test_brpo_prefers_what_is_right_early_at_every_cut() -> None:
    """A longer thought than is needed gains nothing, and loses nothing: BRPO has no price."""
    [[easy], [hard]] = settled(Brpo(cuts=(0.25, 0.5, 0.75, 1.0)))
    assert easy >= 4
    assert hard >= 12

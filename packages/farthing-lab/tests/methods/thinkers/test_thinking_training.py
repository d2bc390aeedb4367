"""Who gets which advantage, what is asked at which cut, and that a wrong sign is noticed."""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import gamma

from farthing.traces.arrays import IntArray
from farthing_lab.lm import supervised
from farthing_lab.lm.make import Size, network
from farthing_lab.lm.masked_ppo import Learners, MaskedTrainer
from farthing_lab.lm.overthinking import RECIPES
from farthing_lab.lm.supervised import Example
from farthing_lab.lm.symbols import END, NUMBERS, SYMBOLS, decode, encode
from farthing_lab.methods.thinkers import training
from farthing_lab.methods.thinkers.adactrl import AdaCtrl
from farthing_lab.methods.thinkers.base import Lesson, Thinker, Thoughts
from farthing_lab.methods.thinkers.baselines import LengthPenalty, RightAlone
from farthing_lab.methods.thinkers.brpo import Brpo
from farthing_lab.methods.thinkers.budget_guidance import BudgetGuidance, RemainingLength, guided
from farthing_lab.methods.thinkers.cib import Cib
from farthing_lab.methods.thinkers.hbpo import Hbpo
from farthing_lab.methods.thinkers.thinkdial import ThinkDial
from farthing_lab.methods.thinkers.training import (
    ENDS,
    SETTINGS,
    TUNING,
    DrawnThoughts,
    ThinkingCourse,
    think,
)
from farthing_lab.models.generation import Context
from farthing_lab.models.generation_rows import Generated
from farthing_lab.rl.schedules import SCHEDULES, ScheduleName, rex
from farthing_lab.tasks.arithmetic import draw_of, solve

torch.set_num_threads(1)
CAP = 16
RNG = np.random.default_rng(0)


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

    course = ThinkingCourse(updates=2, prompts=2, rollouts=4, cap=CAP)
    update, _ = training.train(net, Watching(), course, seed=3)
    found, later = seen
    assert found.group.tolist() == [0] * 4 + [1] * 4
    assert found.told.tolist() == [0, 1, 2, 3] * 2
    assert (found.progress, later.progress) == (0, 1 / 2)
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


@dataclass(frozen=True)
class Halves(Hbpo):
    """Has its network taught the first half of one of its thoughts, so many times."""

    times: int = 1
    parts: tuple[float, ...] = (0.5, 1.0)
    seen: list[Thoughts] = field(default_factory=list)

    def lessons(self, own: Thoughts, /) -> list[Lesson]:
        self.seen.append(own)
        return [Lesson(5, 0, told="low:", begins=(NUMBERS["high:"],))] * self.times


def test_a_network_is_taught_its_own_thoughts_as_a_thinker_has_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Cut, with the right answer after it, told and tagged as the lesson says."""
    asked: list[tuple[Sequence[Sequence[int]], list[Generated]]] = []
    taught: list[Example] = []

    def watched(net: Any, prompts: Any, cap: int, rng: np.random.Generator) -> list[Generated]:
        asked.append((prompts, think(net, prompts, cap, rng)))
        return asked[-1][1]

    monkeypatch.setattr(training, "think", watched)
    monkeypatch.setattr(supervised, "train", lambda _, draw, *args, **kw: taught.append(draw(RNG)))
    course = ThinkingCourse(updates=0, taught=2, rollouts=4, cap=CAP)
    halves = Halves()
    training.train(tiny(), halves, course, seed=3)
    [(prompts, thoughts)], [own], [one] = asked, halves.seen, taught
    assert own.right.shape == (8, 2)
    assert own.group.tolist() == [0] * 4 + [1] * 4
    assert own.begins.tolist() == [some.ids[0] for some in thoughts]
    assert own.surprisal() == pytest.approx([-sum(some.logprobs) for some in thoughts])
    half = thoughts[5].ids[: (int(own.length[5]) + 1) // 2]
    answer = encode(f"<answer>{solve(decode(prompts[5]))}</answer>{END}")
    assert one.prompt == [NUMBERS["low:"], *prompts[5]]
    assert one.answer == [NUMBERS["high:"], *half, *answer]


@pytest.mark.slow
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_the_rate_falls_as_the_course_says(
    schedule: ScheduleName, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By REX to the last bit as before there was a choice; the rate of none is 0."""
    seen: list[float] = []
    update = MaskedTrainer.update

    def noted(trainer: Any, batch: Any, factor: float, generator: Any) -> Any:
        seen.append(factor)
        return update(trainer, batch, factor, generator)

    monkeypatch.setattr(MaskedTrainer, "update", noted)
    course = ThinkingCourse(updates=30, prompts=1, rollouts=2, cap=4, schedule=schedule)
    training.train(tiny(), LengthPenalty(), course, seed=0)
    if schedule == "rex":
        assert seen == [max(rex(n / 30, 0.05), 1e-3) for n in range(30)]
    risen = [0.0, 30**-1 / 0.05, *[1.0] * 28]
    want = [SCHEDULES[schedule](n / 30) * risen[n] for n in range(30)]
    assert seen == pytest.approx(np.maximum(want, 1e-3))


def test_a_network_with_nothing_to_be_taught_stays_as_it_is() -> None:
    net = tiny()
    before = deepcopy(net.state_dict())
    training.train(net, Halves(times=0), ThinkingCourse(updates=0, taught=2, cap=CAP), seed=3)
    assert all(torch.equal(before[name], value) for name, value in net.state_dict().items())


@pytest.mark.slow
def test_what_is_taught_is_learned() -> None:
    """After its lessons the network begins its thoughts with the tag."""
    net = tiny()
    tuning = replace(TUNING, steps=64, adam=0.01, muon=0.02)
    course = ThinkingCourse(updates=0, taught=2, rollouts=4, cap=CAP, tuning=tuning)
    training.train(net, Halves(), course, seed=3)
    tagged = think(net, [[NUMBERS["low:"], *encode("b=a+5;a=4;b?")]] * 8, CAP, RNG)
    assert sum(one.ids[0] == NUMBERS["high:"] for one in tagged) >= 7


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


def settled(thinker: Thinker, *, sign: float = 1.0) -> list[list[int]]:
    """Return what length each of two questions chooses in each mode."""
    chosen: list[list[int]] = LENGTHS[chosen_by(thinker, ENOUGH, sign=sign)].tolist()
    return chosen


def chosen_by(
    thinker: Thinker,
    enough: IntArray,
    tags: Sequence[int] = (0,),
    *,
    sign: float = 1.0,
    updates: int = 150,
) -> IntArray:
    """Teach two questions' choice of a tag and a length; return each one's in each mode."""
    rng = np.random.default_rng(0)
    modes = len(thinker.modes)
    logits = torch.zeros(
        2, modes, len(tags) * len(LENGTHS), dtype=torch.float64, requires_grad=True
    )
    optimizer = torch.optim.Adam([logits], lr=0.15)
    group, told = np.repeat([0, 1], 16), np.tile(np.arange(16) % modes, 2)
    for at in range(updates):
        odds = logits[group, told].softmax(dim=1)
        taken = np.array([rng.choice(len(p), p=p) for p in odds.detach().numpy()])
        length, begins = LENGTHS[taken % len(LENGTHS)], np.array(tags)[taken // len(LENGTHS)]
        cuts = (np.array(thinker.cuts) * CAP).astype(int)
        stops = np.minimum(length[:, None], cuts)
        right = (stops >= enough[group][:, None]).astype(float)
        some = Thoughts(
            length, CAP, right, group, told, begins, partial(np.ones, len(length)), at / updates
        )
        advantage = thinker.advantage(some)
        ends = np.searchsorted(cuts, length)
        worth = torch.tensor(advantage[np.arange(len(length)), ends])
        taken_odds = odds.log()[torch.arange(len(length)), torch.tensor(taken)]
        loss = -(sign * worth * taken_odds).mean() - 0.002 * (-(odds * odds.log()).sum(1)).mean()
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    found: IntArray = logits.argmax(dim=2).numpy()
    return found


@pytest.mark.slow
def test_a_price_on_tokens_finds_each_questions_shortest_thought() -> None:
    assert settled(LengthPenalty()) == [[4], [12]]


@pytest.mark.slow
def test_right_alone_takes_any_length_that_is_enough() -> None:
    [[easy], [hard]] = settled(RightAlone())
    assert easy >= 4
    assert hard >= 12


def test_hbpo_takes_the_best_length_for_each_budget() -> None:
    """Budgets of 2, 4, 8 and 10 of 16 tokens; several lengths may be worth the same."""
    for enough, chosen in zip(ENOUGH, settled(Hbpo()), strict=True):
        for told, length in enumerate(chosen):
            worth = [_hbpo_worth(int(n), enough, told) for n in LENGTHS]
            assert _hbpo_worth(length, enough, told) == max(worth) > 0


def _hbpo_worth(length: int, enough: int, told: int) -> float:
    right, none = np.array([[float(length >= enough)]]), np.zeros(1, int)
    by = np.array([told])
    some = Thoughts(np.array([length]), CAP, right, none, by, none, partial(np.ones, 1))
    return float(Hbpo().earned(some)[0])


@pytest.mark.slow
@pytest.mark.parametrize("thinker", [LengthPenalty(), RightAlone(), ThinkDial()])
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


@pytest.mark.slow
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_adactrl_calls_easy_what_it_can_do_and_is_short_on_that(sign: float) -> None:
    """The second question is right at no length."""
    thinker = AdaCtrl()
    tags = (thinker.easy, thinker.hard)
    [[easy], [hard]] = chosen_by(thinker, np.array([4, CAP + 1]), tags, sign=sign).tolist()
    found = (tags[easy // len(LENGTHS)], int(LENGTHS[easy % len(LENGTHS)]))
    good = (found == (thinker.easy, 4), tags[hard // len(LENGTHS)] == thinker.hard)
    assert good == ((True, True) if sign > 0 else (False, False))


def test_thinkdial_is_as_short_as_it_can_be_in_low_and_as_long_as_it_likes_in_high() -> None:
    easy, hard = settled(ThinkDial())
    assert easy[0] == 4 <= easy[1] <= 8
    assert hard[:2] == [12, 12]
    assert easy[2] >= 4
    assert hard[2] >= 12

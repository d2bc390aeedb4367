"""What every registered pacer keeps: never above the budget, and pure functions of a state."""

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farthing import plugins
from farthing.budgets.pacing.base import Option, Pacer, PacingState, begin, choose, release, settle
from farthing.errors import InputError

NAMES = plugins.names("pacers")
CHEAP, DEAR = Option(0.5, 50, 100), Option(0.9, 200, 400, proved=False)
BUDGET, REQUESTS = 10_000, 100


def pacer_of(name: str) -> Pacer:
    loaded: Pacer = plugins.load("pacers", name)
    return loaded


@pytest.fixture(params=NAMES)
def pacer(request: pytest.FixtureRequest) -> Pacer:
    return pacer_of(request.param)


@dataclass(frozen=True)
class Event:
    """A request, and how many of those under way are settled after it."""

    options: tuple[Option, ...]
    now: float
    settled: int
    cost_share: float
    """What those cost, as a share of the most that they can cost."""
    sent: bool


MONEY = st.integers(0, 10**6)
OPTIONS = st.builds(
    lambda value, costs: Option(value, min(costs), max(costs)),
    st.floats(0.0, 1.0),
    st.tuples(MONEY, MONEY),
)
EVENTS = st.builds(
    Event,
    st.lists(OPTIONS, min_size=1, max_size=4).map(tuple),
    st.floats(-1.0, 2.0),
    st.integers(0, 3),
    st.floats(0.0, 1.0),
    st.booleans(),
)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@settings(deadline=None, max_examples=150)
@given(
    budget=st.integers(1, 10**7),
    requests=st.integers(1, 50),
    events=st.lists(EVENTS, max_size=40),
)
def test_never_above_the_budget_whatever_arrives(
    name: str, budget: int, requests: int, events: list[Event]
) -> None:
    pacer = pacer_of(name)
    state, open_ones, spent = begin(pacer, budget, requests), [], 0
    for event in events:
        choice = choose(pacer, state, event.options, event.now)
        fits = [option.largest_nano <= state.left_nano for option in event.options]
        assert (choice is None) == (not any(fits)), "it refuses only where nothing fits"
        if choice is not None:
            assert fits[choice.index]
            assert choice.option == event.options[choice.index]
            state = choice.state
            open_ones.append(choice.option)
        assert spent + sum(option.largest_nano for option in open_ones) <= budget
        for _ in range(min(event.settled, len(open_ones))):
            option = open_ones.pop(len(open_ones) // 2)
            if event.sent:
                cost = int(event.cost_share * option.largest_nano)
                state = settle(pacer, state, option, cost, event.now)
                spent += cost
            else:
                state = release(state, option)
        assert state.spent_nano == spent
        assert state.reserved_nano == sum(option.largest_nano for option in open_ones)


def random_streams(name: str, streams: int) -> None:
    """Streams of requests that are settled late, in any order, for any cost up to the largest."""
    pacer, rng = pacer_of(name), np.random.default_rng(7)
    for _ in range(streams):
        budget, n = int(rng.integers(1, 2_000)), int(rng.integers(1, 14))
        state, open_ones, spent = begin(pacer, budget, int(rng.integers(1, 20))), [], 0
        largest = rng.integers(0, 400, (n, 3)).tolist()
        share, value, now = rng.random((n, 3)).tolist(), rng.random((n, 3)).tolist(), rng.random(n)
        for at in range(n):
            parts = zip(value[at], share[at], largest[at], strict=True)
            options = [Option(v, int(part * most), most) for v, part, most in parts]
            choice = choose(pacer, state, options, float(now[at]))
            if choice is not None:
                state = choice.state
                open_ones.append(choice.option)
            assert spent + sum(option.largest_nano for option in open_ones) <= budget
            if open_ones and rng.random() < 0.7:
                option = open_ones.pop(int(rng.integers(len(open_ones))))
                cost = int(rng.integers(0, option.largest_nano + 1))
                state, spent = settle(pacer, state, option, cost, float(now[at])), spent + cost
        assert state.spent_nano == spent <= budget


@pytest.mark.parametrize("name", NAMES)
def test_never_above_the_budget_on_random_streams(name: str) -> None:
    random_streams(name, 300)


@pytest.mark.simulations
@pytest.mark.parametrize("name", NAMES)
def test_never_above_the_budget_on_10000_random_streams(name: str) -> None:
    random_streams(name, 10_000)


def after(pacer: Pacer, costs: Sequence[int]) -> PacingState:
    state = begin(pacer, BUDGET, REQUESTS)
    for cost in costs:
        option = Option(1.0, cost, cost)
        choice = choose(pacer, state, [option], 0.1)
        assert choice is not None
        state = settle(pacer, choice.state, option, cost, 0.1)
    return state


def test_the_price_rises_with_spending_and_the_cheap_setting_comes_to_be_chosen(
    pacer: Pacer,
) -> None:
    prices = [pacer.price(after(pacer, [400] * n), 0.0) for n in range(25)]
    assert prices == sorted(prices)
    assert len(set(prices)) > 20
    first = choose(pacer, after(pacer, []), [CHEAP, DEAR], 0.0)
    last = choose(pacer, after(pacer, [400] * 24), [CHEAP, DEAR], 0.0)
    assert first is not None
    assert last is not None
    assert (first.index, last.index) == (1, 0)
    assert (first.keeps_promise, last.keeps_promise) == (False, True)


def test_the_price_falls_where_spending_is_behind(pacer: Pacer) -> None:
    ahead = after(pacer, [400] * 12)
    behind = ahead
    for _ in range(20):
        behind = settle(pacer, _reserved(behind, 0), Option(0.5, 0, 0), 0, 0.4)
    assert pacer.price(behind, 0.4) < pacer.price(ahead, 0.0)


def _reserved(state: PacingState, nano: int) -> PacingState:
    return msgspec.structs.replace(state, reserved_nano=state.reserved_nano + nano)


def test_a_state_is_small_and_comes_back_from_json(pacer: Pacer) -> None:
    state = after(pacer, [400, 30, 7])
    written = msgspec.json.encode(state)
    assert len(written) < 200
    assert msgspec.json.decode(written, type=PacingState) == state


def test_the_same_inputs_give_the_same_choice_and_change_nothing(pacer: Pacer) -> None:
    state = after(pacer, [300] * 5)
    before = msgspec.json.encode(state)
    options = [CHEAP, DEAR]
    assert choose(pacer, state, options, 0.2) == choose(pacer, state, options, 0.2)
    reserved = _reserved(state, 400)
    assert settle(pacer, reserved, DEAR, 9, 0.2) == settle(pacer, reserved, DEAR, 9, 0.2)
    assert msgspec.json.encode(state) == before
    assert options == [CHEAP, DEAR]


def test_requests_settled_late_and_in_another_order_add_up_alike(pacer: Pacer) -> None:
    rng = np.random.default_rng(0)
    costs = rng.integers(1, 150, 40).tolist()
    ends = []
    for order in (costs, costs[::-1]):
        state = _reserved(begin(pacer, BUDGET, 10_000), sum(costs))
        for cost in order:
            state = settle(pacer, state, Option(1.0, cost, cost), cost, 0.3)
        ends.append(state)
    first, second = ends
    assert first.spent_nano == second.spent_nano == sum(costs)
    assert first.reserved_nano == second.reserved_nano == 0
    assert pacer.price(first, 0.3) == pytest.approx(pacer.price(second, 0.3), rel=0.01)


@pytest.mark.parametrize("times", [0.5, 2.0])
def test_a_wrong_guess_of_the_requests_breaks_nothing(pacer: Pacer, times: float) -> None:
    state, n = begin(pacer, BUDGET, REQUESTS), int(times * REQUESTS)
    for at in range(n):
        choice = choose(pacer, state, [CHEAP, DEAR], at / n)
        assert choice is not None or state.left_nano < CHEAP.largest_nano
        if choice is not None:
            cost = choice.option.expected_nano
            state = settle(pacer, choice.state, choice.option, cost, at / n)
    assert state.spent_nano <= BUDGET


def test_a_new_day_begins_at_yesterdays_price(pacer: Pacer) -> None:
    yesterday = after(pacer, [400] * 10)
    today = begin(pacer, 500, 20, yesterday)
    assert (today.budget_nano, today.requests, today.spent_nano) == (500, 20, 0)
    assert today.price == yesterday.price


def test_nothing_to_pay_is_always_chosen_rather_than_refused(pacer: Pacer) -> None:
    gone = msgspec.structs.replace(begin(pacer, BUDGET, REQUESTS), spent_nano=BUDGET + 7)
    free = Option(0.0, 0, 0)
    assert choose(pacer, gone, [CHEAP], 1.0) is None
    choice = choose(pacer, gone, [free, CHEAP], 1.0)
    assert choice is not None
    assert choice.index == 0


@dataclass(frozen=True)
class Odd:
    at: float

    def first_price(self) -> float:
        return 0.0

    def price(self, state: PacingState, now: float, /) -> float:
        return self.at

    def settled(self, state: PacingState, spent_nano: int, now: float, /) -> float:
        return 0.0


@pytest.mark.parametrize("price", [float("nan"), float("inf"), -0.1])
def test_a_price_that_is_none_is_refused(price: float) -> None:
    with pytest.raises(InputError, match="price is"):
        choose(Odd(price), begin(Odd(price), 1, 1), [CHEAP], 0.0)


def test_what_cannot_be_paced_is_refused(pacer: Pacer) -> None:
    with pytest.raises(InputError, match="above \\$0"):
        begin(pacer, 0, 5)
    with pytest.raises(InputError, match="at least 1 request"):
        begin(pacer, 5, 0)
    state = begin(pacer, BUDGET, REQUESTS)
    with pytest.raises(InputError, match="at least one option"):
        choose(pacer, state, [], 0.0)
    with pytest.raises(InputError, match="0 to 1"):
        Option(float("nan"), 1, 2)
    with pytest.raises(InputError, match="in this order"):
        Option(0.5, 2, 1)
    with pytest.raises(ValueError, match="is open"):
        settle(pacer, state, CHEAP, 1, 0.0)
    with pytest.raises(ValueError, match="at least"):
        settle(pacer, _reserved(state, 100), CHEAP, -1, 0.0)


def test_three_come_with_the_package() -> None:
    assert {"dual-descent", "dual-descent-entropy", "dual-descent-following"} <= set(NAMES)

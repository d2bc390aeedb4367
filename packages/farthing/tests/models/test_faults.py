"""Thousands of calls to a failing endpoint: every one ends well, and the money adds up.

`pytest -rP packages/farthing/tests/models/test_faults.py` prints the figures.
"""

import asyncio
import resource
import time
from decimal import Decimal

import pytest
from chat_server import FAULTS, Endpoint

from farthing.errors import ModelError
from farthing.models.base import Completion, Message, Model, Prompt
from farthing.models.openai_compatible import OpenAISettings
from farthing.models.prices import PriceTable, Rates, TokenPrice, largest_usage
from farthing.models.rate_limit import Limited, RateLimiter, RateLimits
from farthing.models.retry import Retrying, RetryPolicy

PRICES = PriceTable({"m": TokenPrice((Rates(Decimal(1), Decimal(2)),))})
UNKNOWN = ("reset", "cut", "slow", "garbage", "content type")
"""Faults after which nobody knows whether the call was charged."""
QUICK = RetryPolicy(tries=20, first_s=0.01, longest_s=0.1)


def prompt(k: int) -> Prompt:
    return Prompt((Message("user", f"question {k:06d}"),), max_tokens=20)


def outcomes(
    endpoint: Endpoint, calls: int, patience: RetryPolicy, concurrent: int, timeout_s: float
) -> list[Completion | ModelError]:
    async def run() -> list[Completion | ModelError]:
        bare = OpenAISettings(model="m", url=endpoint.url, timeout_s=timeout_s).open(PRICES)
        limited = Limited(bare, RateLimiter(RateLimits(concurrent=concurrent)))
        model = Retrying(limited, patience)
        try:
            return list(await asyncio.gather(*(_outcome(model, k) for k in range(calls))))
        finally:
            await model.aclose()

    return asyncio.run(run())


async def _outcome(model: Model, k: int) -> Completion | ModelError:
    try:
        return await model.complete(prompt(k))
    except ModelError as error:
        return error


@pytest.mark.slow
def test_2000_calls_with_faults_are_all_answered_and_none_is_paid_twice(endpoint: Endpoint) -> None:
    calls = 2_000
    endpoint.faults = dict.fromkeys(FAULTS, 0.03) | {"slow": 0.005}
    timeout_s = 3.0
    done = outcomes(endpoint, calls, QUICK, concurrent=64, timeout_s=timeout_s)
    answers = [one for one in done if isinstance(one, Completion)]
    paid = sum(endpoint.answered.values())
    faults = sum(endpoint.failed.values())
    requests = sum(endpoint.calls.values())
    lost, twice = calls - len(answers), paid - calls
    print(f"calls {calls}, requests {requests}, faults {faults}, lost {lost}, paid twice {twice}")  # noqa: T201
    assert len(answers) == calls
    assert [one.text for one in answers] == [f"reply to question {k:06d}" for k in range(calls)]
    assert set(endpoint.failed) == set(FAULTS)
    assert set(endpoint.answered.values()) == {1}
    assert sum(one.tries for one in answers) == requests
    largest = PRICES.own["m"].largest_nano(largest_usage(prompt(0)), timeout_s)
    whole = calls - endpoint.failed["no usage"]
    in_full = sum(endpoint.failed[fault] for fault in (*UNKNOWN, "no usage"))
    each = 2 * 1_000 + 4 * 2_000
    assert sum(one.cost_nano or 0 for one in answers) == whole * each + in_full * largest


@pytest.mark.parametrize("fault", [f for f in FAULTS if f != "no usage"])
def test_each_fault_alone_is_recovered_from(endpoint: Endpoint, fault: str) -> None:
    endpoint.faults = {fault: 1.0}
    endpoint.only_first = True
    done = outcomes(endpoint, 10, QUICK, concurrent=10, timeout_s=3 if fault == "slow" else 20)
    assert [one.tries for one in done] == [2] * 10
    assert all(isinstance(one, Completion) for one in done)
    assert endpoint.failed == {fault: 10}


@pytest.mark.parametrize("fault", ["429 seconds", "429 date"])
def test_retry_after_is_honoured(endpoint: Endpoint, fault: str) -> None:
    endpoint.faults = {fault: 1.0}
    endpoint.only_first = True
    endpoint.retry_after_s = 2.0  # a date has whole seconds: 1 to 2 remain
    started = time.perf_counter()
    outcomes(endpoint, 1, QUICK, concurrent=1, timeout_s=5)
    assert time.perf_counter() - started > 0.9


@pytest.mark.slow
def test_1000_calls_are_under_way_at_once(endpoint: Endpoint) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 3_000:
        pytest.skip("1,000 connections and their other ends need 3,000 open files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 3_000), hard))
    endpoint.gather = 1_000
    done = outcomes(endpoint, 1_000, QUICK, concurrent=1_000, timeout_s=60)
    assert all(isinstance(one, Completion) and one.tries == 1 for one in done)
    assert endpoint.most_under_way == 1_000

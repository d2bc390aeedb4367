"""The tries of a request: what the ledger has of them, and which left the request unanswered."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from serving import marked, total

from farthing.errors import ModelTimeoutError
from farthing.runtime.journal import Attempt as Asked
from farthing.runtime.journal import entry
from farthing.tasks.tools import ToolReply
from farthing.traces.base import CallError
from farthing_gateway.attempts import unanswered
from farthing_gateway.charging import ChargeAttempt, ChargingJournal, RequestCharges, RequestLimits
from farthing_gateway.storage.ledger.base import Amount, Hold, utc_now
from farthing_gateway.storage.ledger.ledger import open_ledger
from farthing_gateway.storage.migrations import migrate

TIMES = tuple[str, float, float, bool]
"""A model, when it was asked, when that ended, and whether it failed."""


def test_a_tool_of_an_agent_is_paid_for(tmp_path: Path) -> None:
    database = str(tmp_path / "gateway.db")

    async def use() -> RequestCharges:
        await migrate(database)
        ledger = await open_ledger(database)
        charges = RequestCharges(ledger, RequestLimits({}), None, 60.0)
        journal = ChargingJournal(charges, {"small": "small-2026"})
        for occurrence in range(2):
            asked = entry(Asked("q", 1, "guide"), "search", "Paris", occurrence)
            number = await journal.start(asked, 700)
            if occurrence:
                await journal.fail(number, ModelTimeoutError("too slow"), 700)
            else:
                await journal.complete(number, ToolReply("a city", 500), 500)
        await ledger.aclose()
        return charges

    charges = asyncio.run(use())
    assert [(one.model, one.cost_nano) for one in charges.tries] == [
        ("search", 500),
        ("search", 700),
    ]
    assert charges.spent_nano == total(database).settled.nano == 1_200
    assert [one.amount.nano for one in marked(database)] == [700]


def tries(*times: TIMES) -> list[ChargeAttempt]:
    """Return tries that ended."""
    hold = Hold("x", Amount(), ("all",), utc_now())
    error = CallError("timeout", "")
    return [
        ChargeAttempt(
            None,  # type: ignore[arg-type]  # nothing is settled here
            hold,
            model,
            error=error if failed else None,
            began=began,
            took_s=ended - began,
        )
        for model, began, ended, failed in times
    ]


@pytest.mark.parametrize(
    ("times", "nothing", "names"),
    [
        ([("a", 0, 1, True), ("b", 2, 3, True)], True, ["b", "a"]),
        ([("a", 0, 1, True), ("b", 2, 3, False)], False, []),
        ([("a", 0, 1, False), ("b", 2, 3, True)], False, ["b"]),
        # asked together, one of them failed: whoever asked has the other's answer
        ([("a", 0, 3, False), ("b", 0.1, 1, True)], False, []),
        ([("a", 0, 1, False), ("b", 0.1, 3, True)], False, []),
        # a retry that succeeds, and one that does not, after somebody else's answer
        ([("a", 0, 1, True), ("a", 2, 3, False)], False, []),
        ([("a", 0, 1, True), ("b", 0, 2, False), ("a", 3, 4, True)], False, []),
        ([("a", 0, 1, False), ("b", 2, 3, True), ("b", 4, 5, True)], False, ["b"]),
        # its first prompt was answered, what it was asked for was not
        ([("a", 0, 1, False), ("a", 2, 3, True)], True, ["a"]),
        ([], True, []),
    ],
)
def test_a_failure_counts_that_no_answer_came_after(
    times: list[TIMES], names: list[str], *, nothing: bool
) -> None:
    assert list(unanswered(tries(*times), nothing=nothing)) == names


@pytest.mark.parametrize(
    ("times", "names"),
    [
        ([("a", 0, 1, True), ("b", 2, 3, True)], ["a", "b"]),
        ([("a", 0, 1, True), ("b", 2, 3, True), ("a", 4, 5, True)], ["b", "a"]),
        ([("a", 0, 1, True), ("b", 2, 3, True), ("a", 4, 5, False)], ["b"]),
        ([("a", 0, 1, False), ("a", 2, 3, True)], ["a"]),
        ([], []),
    ],
)
def test_who_failed_is_who_failed_last(times: list[TIMES], names: list[str]) -> None:
    ledger: Any = None
    charges = RequestCharges(ledger, RequestLimits({}), None, 60.0, tries=tries(*times))
    assert list(charges.failed) == names

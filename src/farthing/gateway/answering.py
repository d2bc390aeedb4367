"""A policy answers a request: the episode is played in `runtime`, its calls paid by the ledger."""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace

from farthing.errors import InputError
from farthing.gateway.completions import Given, given
from farthing.gateway.policies import Chosen, text_of
from farthing.gateway.refusals import RefusedError
from farthing.gateway.requests import ChatRequest
from farthing.gateway.spending import LedgerJournal, Payer
from farthing.models.base import Usage
from farthing.models.prices import Price
from farthing.runtime.answer import Answer
from farthing.runtime.meter import Meter
from farthing.tasks.base import Question
from farthing.traces.base import Call


@dataclass(frozen=True)
class Strongest:
    """The model that savings are counted against."""

    name: str
    price: Price | None

    def would_cost(self, calls: list[Call]) -> int | None:
        """Return what it would have cost in nano-dollars, at the tokens of the last reply.

        What it really would have written nobody knows: this is an estimate, but where it was asked.
        """
        own = [call for call in calls if call.role == self.name and call.input_tokens is not None]
        counted = own or [call for call in calls if call.input_tokens is not None]
        if not counted or self.price is None:
            return None
        last = counted[-1]
        usage = Usage(last.input_tokens or 0, last.output_tokens or 0)
        return self.price.cost_nano(usage, last.latency_s or 0.0)


async def answer(
    request: ChatRequest,
    chosen: Chosen,
    payer: Payer,
    sections: Mapping[str, str],
    strongest: Strongest,
) -> tuple[Given, Answer]:
    """Answer a request under a policy's bundle; return what the client gets, and the answer.

    Args:
        request: of the policy's task.
        chosen: the bundle, and the budget of the request.
        payer: whose money is spent; its note is the id of the trace.
        sections: what clients call a model to what its provider calls it.
        strongest: the model that savings are counted against.

    Raises:
        RefusedError, LimitError: nothing could be bought.
    """
    if chosen.loaded is None:
        raise InputError("no bundle was chosen")
    began = time.perf_counter()
    journal = LedgerJournal(payer, sections)
    question = Question(payer.note, text_of(request.messages[-1]))
    try:
        done = await chosen.loaded.orchestrator.answer(
            question, budget_nano=chosen.budget_nano, meter=Meter(journal)
        )
    finally:
        await asyncio.shield(journal.close())
    _check(done, journal)
    latency = time.perf_counter() - began
    made = given(done, chosen.loaded, request.model, latency, chosen.why, chosen.ended)
    would = strongest.would_cost(list(done.trace.calls))
    saved = None if would is None or done.cost_nano is None else would - done.cost_nano
    return replace(made, receipt=replace(made.receipt, saved_nano=saved)), done


def _check(done: Answer, journal: LedgerJournal) -> None:
    """Refuse where nothing was answered since money or every model failed.

    Raises:
        LimitError: a limit allowed no call.
        RefusedError: the request's own budget allowed none, or every model failed.
    """
    calls = [*done.trace.calls, *([done.escalated] if done.escalated else [])]
    if any(call.error is None for call in calls) or done.abstained:
        return
    if journal.refused is not None:
        raise journal.refused
    failures = [call.error for call in calls if call.error is not None]
    if failures:
        slow = all(one.type == "timeout" for one in failures)
        limited = all(one.type == "rate_limit" for one in failures)
        status = 504 if slow else 429 if limited else 502
        said = f"every model failed; the last: {failures[-1].message}"
        again = {"Retry-After": "1"} if limited else {}
        code = f"upstream_{failures[-1].type}"
        raise RefusedError(status, said, "api_error", code, headers=again)
    why = next(iter(done.caveats), "nothing could be asked")
    if done.ended_by == "failure":
        raise RefusedError(502, "no model could be asked", "api_error", "upstream_authentication")
    raise RefusedError(402, why, "insufficient_quota", "request_budget_exceeded")

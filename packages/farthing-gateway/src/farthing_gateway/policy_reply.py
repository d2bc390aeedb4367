"""A policy answers a request: the episode is played in `runtime`, its calls paid by the ledger.

Where a model fails the policy decides what to do about it, as it was calibrated. Where it asked
nobody else after that, the model's fallbacks are asked, and nothing is promised of what they say.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec

from farthing.errors import AuthenticationError, BudgetError, InputError, ModelError
from farthing.models.base import Usage
from farthing.models.prices import Price
from farthing.money import dollars, usd_from_nano
from farthing.runtime.answer import Answer
from farthing.runtime.meter import Meter
from farthing.tasks.base import Question
from farthing.traces.base import Call
from farthing_gateway.attempts import attempts_json, failed_calls, unanswered
from farthing_gateway.bundles import BundleChoice
from farthing_gateway.charging import ChargeAttempt, ChargingJournal, RequestCharges
from farthing_gateway.completions import PolicyReply, Receipt, build_reply, tokens
from farthing_gateway.errors import ApiError, nobody_answered, over_request_budget
from farthing_gateway.proxy import Proxy
from farthing_gateway.recording.record import FALLBACK
from farthing_gateway.request_context import RequestContext
from farthing_gateway.storage.ledger.base import LimitError
from farthing_gateway.task_match import text_of
from farthing_gateway.upstream_base import Reply

_WRONG_KEY = AuthenticationError.kind
"""A failure that ends an episode without a call in its trace."""


@dataclass(frozen=True)
class Baseline:
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


async def answer_with_policy(
    asked: RequestContext,
    chosen: BundleChoice,
    charges: RequestCharges,
    proxy: Proxy,
    strongest: Baseline,
    group: str | None = None,
) -> tuple[PolicyReply, Answer]:
    """Answer a request as a policy's mode decides; return what the client gets, and the answer.

    Args:
        asked: of the policy's task, as the task asks it.
        chosen: who decides, and the budget of the request.
        charges: whose money is spent; its note is the id of the trace.
        proxy: the models by themselves, which a fallback is asked through.
        strongest: the model that savings are counted against.
        group: that of the trace, as it is recorded, since policies may decide by it.
    """
    if (served := chosen.loaded) is None:
        raise InputError("nobody was chosen")
    request = asked.request
    journal = ChargingJournal(charges, proxy.sections, proxy.breaker.is_open)
    question = Question(charges.note, text_of(request.messages[-1]), group=group)
    try:
        done = await served.answer(
            question, budget_nano=chosen.budget_nano, meter=Meter(journal, disputes=True)
        )
    finally:
        await asyncio.shield(journal.close())
    before = len(charges.tries)
    answered = served.answered(done)
    fallback = await _fallback(asked, journal, proxy, answered=answered)
    if fallback is None:
        if not answered:
            raise _refusal(done, journal, request.options.budget_nano)
        made = build_reply(done, served, request.model, 0.0, chosen.why, chosen.ended)
        done = _with(done, _unseen(done, charges.tries, before, proxy.sections))
    else:
        own = fallback.call(charges.tries[before:], proxy.sections)
        done = _with(done, [*_unseen(done, charges.tries, before, proxy.sections), own])
        made = fallback.given(done, request.model, served.mode)
    cost, would = charges.spent_nano, strongest.would_cost(list(done.trace.calls))
    receipt = replace(
        made.receipt,
        cost_nano=cost,
        estimated=charges.estimated,
        latency_s=asked.deadline.took_s,
        calls=attempts_json(charges.tries),
        saved_nano=None if would is None else would - cost,
    )
    return replace(made, receipt=receipt), done


@dataclass(frozen=True)
class _FallbackReply:
    """The reply of a model that was asked in another one's place."""

    name: str
    instead_of: str
    reply: Reply

    def call(self, tries: Sequence[ChargeAttempt], sections: Mapping[str, str]) -> Call:
        """Return it as a trace's call, under its own name; `tries` are those of fallbacks."""
        text = self.reply.api.text(self.reply.body)
        return Call(
            round=1,
            role=self.name,
            model=sections.get(self.name),
            answer=text.strip() or None,
            text=text or None,
            input_tokens=self.reply.usage.input_tokens,
            output_tokens=self.reply.usage.output_tokens,
            latency_s=self.reply.latency_s,
            cost_usd=usd_from_nano(sum(one.cost_nano for one in tries if one.model == self.name)),
            extra={FALLBACK: 1.0},
        )

    def given(self, done: Answer, model: str, mode: str) -> PolicyReply:
        """Return what the client gets, of which nothing is promised."""
        said = f"{self.instead_of} failed, and its fallback {self.name} answered in its place"
        receipt = Receipt(
            trace=done.id,
            model=model,
            answered_by=self.name,
            cost_nano=None,
            latency_s=0.0,
            says=f"Nothing is promised: {said}; no certificate is about that.",
            mode=mode,
        )
        return PolicyReply((self.reply.api.text(self.reply.body),), receipt, tokens(done.calls))


async def _fallback(
    asked: RequestContext, journal: ChargingJournal, proxy: Proxy, *, answered: bool
) -> _FallbackReply | None:
    """Ask the fallbacks of the models whose failure nobody's answer came after.

    None: there are none, or they failed as well, or no money is left for them. So the policy's own
    reply is what there is, or its refusal.
    """
    charges = journal.charges
    failed = unanswered(charges.tries, nothing=not answered)
    line = proxy.fallbacks_for(failed, {one.model for one in charges.tries})
    if not line:
        return None
    try:
        name, reply = await proxy.send(list(line), asked.request, charges, asked.deadline)
    except LimitError as error:
        journal.refused = error
    except (ModelError, BudgetError):
        pass
    else:
        return _FallbackReply(name, line[name], reply)
    return None


def _unseen(
    done: Answer, tries: Sequence[ChargeAttempt], before: int, sections: Mapping[str, str]
) -> list[Call]:
    """Return the failures that an episode's trace lacks: wrong keys, and those of fallbacks.

    Of the tries of the request, the policy made those `before` a number.
    """
    seen = any(call.error and call.error.type == _WRONG_KEY for call in done.calls)
    mine = () if seen else tries[:before]
    own = [one for one in mine if one.error and one.error.type == _WRONG_KEY]
    return failed_calls([*own, *tries[before:]], sections, {one.model for one in own})


def _with(done: Answer, calls: Sequence[Call]) -> Answer:
    trace = msgspec.structs.replace(done.trace, calls=[*done.trace.calls, *calls])
    return replace(done, trace=trace)


def _refusal(done: Answer, journal: ChargingJournal, budget_nano: int | None) -> Exception:
    if journal.refused is not None:
        return journal.refused
    failures = [call.error for call in done.calls if call.error is not None]
    if failures and (done.ended_by == "failure" or len(failures) == len(done.calls)):
        slow = all(one.type == "timeout" for one in failures)
        limited = all(one.type == "rate_limit" for one in failures)
        status = 504 if slow else 429 if limited else 502
        said = nobody_answered(journal.charges.failed)
        again = {"Retry-After": str(journal.charges.again_s)} if limited else {}
        code = f"upstream_{failures[-1].type}"
        return ApiError(status, said, "api_error", code, headers=again)
    why = next(iter(done.caveats), "nothing could be asked")
    if done.ended_by == "failure":
        return ApiError(502, "no model could be asked", "api_error", "upstream_authentication")
    if budget_nano is not None:
        why += f"; this request allows {dollars(budget_nano)}: allow more, or name no budget"
    return over_request_budget(why)

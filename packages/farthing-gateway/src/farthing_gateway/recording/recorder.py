"""What is kept of a request that was answered, as a trace; and which are tried on other models."""

from dataclasses import dataclass
from datetime import UTC, datetime

import msgspec

from farthing.money import usd_from_nano
from farthing.runtime.answer import Answer
from farthing.traces.base import Call, CallError, Trace
from farthing.traces.costs import kept
from farthing_gateway.attempts import failed_calls
from farthing_gateway.charging import RequestCharges
from farthing_gateway.chat_request import ChatRequest, conversation_of
from farthing_gateway.completions import Receipt
from farthing_gateway.monitoring.auditor import Auditor
from farthing_gateway.monitoring.promises import replied, watched
from farthing_gateway.policies import GatewayPolicy
from farthing_gateway.recording import audit_sampling
from farthing_gateway.recording.record import (
    EMBEDDING,
    FALLBACK,
    STOPPED,
    PolicyDecision,
    RequestRecord,
)
from farthing_gateway.recording.shadow import Shadow, ShadowRequest
from farthing_gateway.recording.traffic import Traffic
from farthing_gateway.task_match import text_of
from farthing_gateway.upstream_base import Reply


@dataclass(frozen=True)
class Recorder:
    """Writes down what was answered, without holding it up."""

    traffic: Traffic
    shadow: Shadow
    auditor: Auditor
    sections: dict[str, str]
    """What clients call a model to what its provider calls it."""

    def passed(
        self,
        request: ChatRequest,
        policy: GatewayPolicy | None,
        charges: RequestCharges,
        receipt: Receipt,
        reply: Reply | None,
        text: str | None = None,
    ) -> None:
        """Record a model's own reply; of a policy's task, maybe try its other models on it.

        Models that failed before it answered in their place are part of it.

        Args:
            request: what was asked.
            policy: whose task it is; None: nobody's.
            charges: who paid.
            receipt: what is said of the reply.
            reply: the reply; None: it was stopped, and nothing bounds what it took.
            text: what it says, where it came in pieces.
        """
        said = reply.api.text(reply.body) if text is None and reply is not None else text
        name = receipt.answered_by or receipt.model
        asked = charges.tries[0].model
        own = [one for one in charges.tries if one.model == name]
        failed = [one for one in charges.tries if one.model != name]
        others = failed_calls(failed, self.sections, {asked})
        error = CallError(STOPPED, receipt.says) if receipt.stopped else None
        if reply is not None and reply.cut is not None:
            error = CallError(reply.cut.kind.kind, reply.cut.said)
        call = Call(
            round=1,
            role=name,
            model=self.sections.get(name),
            answer=None if error else (said or "").strip() or None,
            text=said or None,
            input_tokens=None if reply is None else reply.usage.input_tokens,
            output_tokens=None if reply is None else reply.usage.output_tokens,
            latency_s=receipt.latency_s if reply is None else reply.latency_s,
            cost_usd=usd_from_nano(sum(one.cost_nano for one in own)),
            error=error,
            extra=({} if name == asked else {FALLBACK: 1.0})
            | ({} if request.api.is_chat else {EMBEDDING: 1.0})
            | kept(None if reply is None else reply.usage),
        )
        trace = Trace(
            id=receipt.trace,
            question=text_of(request.messages[-1]),
            calls=[*others, call],
            task=policy.task.name if policy else "text",
            group=policy.name if policy else None,
            independent=True,
        )
        self._put(request, policy, charges, receipt, trace, _Drawn())
        if policy is not None and not receipt.stopped:
            self.shadow.maybe_shadow(ShadowRequest(policy, trace, conversation_of(request)))

    def decided(
        self,
        request: ChatRequest,
        policy: GatewayPolicy,
        charges: RequestCharges,
        receipt: Receipt,
        answer: Answer,
    ) -> None:
        """Record what a policy bought; chance may draw it for an audit, all at once."""
        if not answer.calls:
            return
        trace = msgspec.structs.replace(answer.trace, calls=answer.calls, group=policy.name)
        passed = self._put(
            request, policy, charges, receipt, trace, _drawn(policy, receipt, answer)
        )
        if passed.decided is not None and (passed.audited or passed.decided.explored):
            self.auditor.remember(passed)
        self.shadow.maybe_shadow(ShadowRequest(policy, trace, conversation_of(request)))

    def _put(
        self,
        request: ChatRequest,
        policy: GatewayPolicy | None,
        charges: RequestCharges,
        receipt: Receipt,
        trace: Trace,
        drawn: "_Drawn",
    ) -> RequestRecord:
        passed = RequestRecord(
            id=receipt.trace,
            at=datetime.now(UTC),
            key=charges.key.id if charges.key else None,
            conversation=conversation_of(request),
            policy=policy.name if policy else None,
            model=request.model,
            messages=request.messages,
            trace=trace,
            promise=receipt.promise,
            saved_nano=receipt.saved_nano,
            latency_s=receipt.latency_s,
            system=policy.system if policy else None,
            certificate=receipt.under,
            mode=receipt.mode,
            answered_by=receipt.answered_by,
            group=request.options.group,
            audit=drawn.audit,
            audited=drawn.audited,
            decided=drawn.decided,
        )
        self.traffic.put(passed)
        return passed


@dataclass(frozen=True)
class _Drawn:
    """What is watched of a reply under a promise, and what chance drew it for."""

    audit: float | None = None
    audited: bool = False
    decided: PolicyDecision | None = None


def _drawn(policy: GatewayPolicy, receipt: Receipt, answer: Answer) -> _Drawn:
    """Draw a reply for an audit; nothing where no promise decided.

    What was passed on is not up for one: what is promised of answers is of those given by itself.
    """
    if receipt.under is None or answer.certificate is None:
        return _Drawn()
    section, up = policy.section, answer.escalated is None
    audit, explore = (section.audit, section.explore) if up else (0.0, 0.0)
    draw = audit_sampling.draw(receipt.trace, audit, explore)
    pool = tuple(one.role for one in policy.to_audit)
    promise = msgspec.structs.replace(watched(answer.certificate, pooled=policy.pooled), pool=pool)
    decided = replied(promise, answer, draw, explore, policy.task)
    return _Drawn(audit or None, draw.audited, decided)

"""One request for a chat completion: who answers, within which limits, and what is kept of it."""

import asyncio
from collections.abc import AsyncGenerator, Iterable, Iterator
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, replace

import msgspec

from farthing.models.base import Usage
from farthing.models.chat_completions import UNREADABLE
from farthing.models.thinking import effort_of, split_name
from farthing.runtime.answer import Answer
from farthing_gateway import policy_reply
from farthing_gateway.apis.base import DONE, Api, Translator
from farthing_gateway.apis.chat import CHAT, says_usage
from farthing_gateway.attempts import attempts_json
from farthing_gateway.bundles import BundleChoice
from farthing_gateway.charging import DeferredSettlements, RequestCharges, RequestLimits
from farthing_gateway.chat_request import ChatRequest
from farthing_gateway.completions import NONE, PolicyReply, Receipt
from farthing_gateway.config import ServeConfig
from farthing_gateway.config_sections import PREFIX
from farthing_gateway.errors import ApiError, forbidden, unknown_model
from farthing_gateway.metrics import Metrics
from farthing_gateway.pacing import Pace
from farthing_gateway.policies import GatewayPolicy
from farthing_gateway.proxy import Proxy
from farthing_gateway.recording.recorder import Recorder
from farthing_gateway.request_context import RequestContext
from farthing_gateway.storage.keys import KeyRecord
from farthing_gateway.storage.ledger.base import Amount
from farthing_gateway.storage.ledger.ledger import AccountLedger
from farthing_gateway.task_match import Mismatch
from farthing_gateway.upstream_base import Reply, StreamedReply

STOPPED = "the client stopped the stream, or its time ran out"


@dataclass(frozen=True)
class Route:
    """Where a request goes."""

    model: str
    """The upstream model that answers, where no policy does."""
    policy: GatewayPolicy | None = None
    """Whose task it is."""
    why: str = ""
    """Why nothing is promised of it."""
    outside: str | None = None
    """By what it is outside a policy's task, where it is or nearly is one's."""

    def asked(self, request: ChatRequest) -> ChatRequest:
        """Return what the model is asked: of a task as the task says, else what was asked."""
        return request if self.policy is None else self.policy.asked(request)


@dataclass(frozen=True)
class JsonReply:
    """A reply in one piece."""

    body: bytes
    receipt: Receipt


@dataclass(frozen=True)
class Chat:
    """Answers requests for chat completions."""

    config: ServeConfig
    proxy: Proxy
    policies: dict[str, GatewayPolicy]
    ledger: AccountLedger
    limits: RequestLimits
    strongest: policy_reply.Baseline
    metrics: Metrics
    recorder: Recorder | None
    paces: dict[str, Pace]
    """By policy, those whose modes a pacer chooses."""

    @property
    def models(self) -> list[str]:
        """What clients may ask for: models, and a virtual one for each policy."""
        return [*self.proxy.upstreams, *(PREFIX + name for name in self.policies)]

    def models_for(self, key: KeyRecord | None) -> list[str]:
        """Return those that a key may use; who may use a model may use it at every effort."""
        if key is None or not key.models:
            return self.models
        upstreams, listed = self.proxy.upstreams, key.models
        return [
            name
            for name in self.models
            if name in listed or (name in upstreams and split_name(name)[0] in listed)
        ]

    def check_allowed(self, name: str, key: KeyRecord | None) -> None:
        """Refuse a model that is not served, or that a key may not use."""
        allowed = self.models_for(key)
        if name not in self.models:
            raise unknown_model(name, allowed)
        if name not in allowed:
            raise forbidden(f"use the model '{name}'")

    def _check_effort(self, request: ChatRequest, key: KeyRecord | None) -> None:
        """Refuse another effort than that of the model where a key may use it at that one alone."""
        model, effort = split_name(request.model)
        listed = () if key is None else key.models
        if listed and effort is not None and model not in listed and effort_of(request.body):
            raise forbidden(f"say how long '{request.model}' is to think")

    def route(self, request: ChatRequest, key: KeyRecord | None) -> Route:
        """Return where a request goes."""
        name = request.model
        self.check_allowed(name, key)
        if name in self.proxy.upstreams:
            self._check_effort(request, key)
            taking = [p for p in self.policies.values() if name in p.section.answers_for]
            fit = [(policy, policy.outside(request)) for policy in taking]
            inside = [policy for policy, other in fit if other is None]
            if inside:
                return Route(name, inside[0])
            why = "a model was asked, which promises nothing"
            nearly = [(policy, one) for policy, one in fit if one is not None and one.near_miss]
            for policy, one in nearly[:1]:
                self._outside(policy, one)
                why += f"; nor is it the task of {PREFIX}{policy.name}, since {one}"
            return Route(name, None, why, nearly[0][1].reason if nearly else None)
        if not request.api.is_chat:
            said = f"'{name}' answers chats; name a model for {request.api.path}"
            raise ApiError(400, said, param="model")
        policy = self.policies[name.removeprefix(PREFIX)]
        outside = policy.outside(request)
        if outside is None:
            return Route(self.strongest.name, policy)
        self._outside(policy, outside)
        if policy.section.outside == "refuse":
            said = f"the policy '{policy.name}' does not take this request: {outside}"
            raise ApiError(400, said, code="outside_task")
        why = f"the request is outside the task: {outside}"
        return Route(self.strongest.name, None, why, outside.reason)

    async def whole(self, asked: RequestContext, waiting: DeferredSettlements | None) -> JsonReply:
        """Answer in one piece; settlements wait where they are given a place."""
        request = asked.request
        route = self.route(request, asked.key)
        asked.outside = route.outside
        with self._paying(asked, route, waiting) as charges:
            decided = await self._decided(asked, route, charges)
            if isinstance(decided, PolicyReply):
                body = request.api.whole(decided.body())
                return JsonReply(_with_receipt(body, decided.receipt), decided.receipt)
            line = self.proxy.fallback_chain(route.model)
            name, reply = await self.proxy.send(line, route.asked(request), charges, asked.deadline)
            receipt = self._received(asked, name, reply, charges, decided)
            self._keep(request, route, charges, receipt, reply)
            body = reply.body if reply.api is request.api else _translated(reply.body, request.api)
            return JsonReply(_with_receipt(body, receipt), receipt)

    async def pieces(
        self, asked: RequestContext, waiting: DeferredSettlements | None
    ) -> AsyncGenerator[list[bytes | Receipt]]:
        """Answer in pieces: the data of the events that are there, and the receipt once it is.

        What fails before the first piece is raised before it.
        """
        request = asked.request
        route = self.route(request, asked.key)
        asked.outside = route.outside
        with self._paying(asked, route, waiting) as charges:
            decided = await self._decided(asked, route, charges)
            if not isinstance(decided, PolicyReply):
                async with aclosing(self._streamed(asked, route, charges, decided)) as streamed:
                    async for pieces in streamed:
                        yield pieces
                return
        translator = request.api.translator(request.model)
        chunks = decided.chunks(usage=request.include_usage)
        events = _pieces(translator, chunks)
        yield [decided.receipt, *events, *translator.end(Usage(*decided.usage)), DONE]

    async def _streamed(
        self, asked: RequestContext, route: Route, charges: RequestCharges, why: str
    ) -> AsyncGenerator[list[bytes | Receipt]]:
        """Pass a model's pieces on; a stream that is left is counted and kept as what it was."""
        request, sent, api = asked.request, route.asked(asked.request), asked.request.api
        line, said = self.proxy.fallback_chain(route.model), list[str]()
        usage: bytes | None = None
        opened: tuple[str, StreamedReply] | None = None
        try:
            async with self.proxy.stream(line, sent, charges, asked.deadline) as opened:
                name, streamed = opened
                translator = (CHAT if streamed.api is api else api).translator(request.model)
                async for pieces in streamed:
                    if self.recorder is not None:
                        said.extend(map(streamed.api.text_in_piece, pieces))
                    if request.include_usage and says_usage(pieces[-1]):
                        usage = pieces.pop()  # it comes last; what it all cost is known after it
                    if found := _pieces(translator, pieces):
                        yield [*found]
                reply = charges.tries[-1].bounded(streamed.reply)
        except (GeneratorExit, asyncio.CancelledError):
            if opened is not None:
                stopped = self._receipt(asked, opened[0], charges, STOPPED)
                most = opened[1].so_far and charges.tries[-1].bounded(opened[1].so_far)
                self._keep(request, route, charges, stopped, most, "".join(said))
            raise
        receipt = self._received(asked, name, reply, charges, why)
        self._keep(request, route, charges, receipt, reply, "".join(said))
        last = translator.end(reply.usage)
        if usage is not None:
            last += [_with_receipt(one, receipt) for one in _pieces(translator, [usage])]
        yield [*last, receipt, DONE]

    @contextmanager
    def _paying(
        self, asked: RequestContext, route: Route, waiting: DeferredSettlements | None
    ) -> Iterator[RequestCharges]:
        """Return who pays while the block runs, and learn from its tries which models fail."""
        policy, lease_s = route.policy.name if route.policy else None, self.config.serve.lease_s
        others = route.policy is not None and route.policy.section.brings_models
        noting = frozenset[str]() if others else self.proxy.noting
        claimable: dict[str, Amount] = {} if others else self.proxy.claimable
        charges = RequestCharges(
            self.ledger,
            self.limits,
            asked.key,
            lease_s,
            policy,
            asked.trace,
            waiting,
            noting,
            claimable,
            asked.tries,
        )
        try:
            yield charges
        finally:
            self.proxy.breaker.record(charges.tries)

    async def _decided(
        self, asked: RequestContext, route: Route, charges: RequestCharges
    ) -> PolicyReply | str:
        """Return a policy's reply; where no bundle decides, why nothing is promised."""
        policy, request = route.policy, asked.request
        if policy is None:
            return route.why
        limited = request.options.budget_nano is not None
        chosen = policy.choose(
            request.options, await policy.most_nano(request) if limited else None
        )
        if chosen.loaded is None:
            return chosen.why
        given, answer = await self._answered(asked, policy, chosen, charges)
        receipt = given.receipt
        self.metrics.paid(request.model, receipt.cost_nano, receipt.saved_nano, receipt.promise)
        if self.recorder is not None:
            self.recorder.decided(request, policy, charges, receipt, answer)
        return given

    async def _answered(
        self,
        asked: RequestContext,
        policy: GatewayPolicy,
        chosen: BundleChoice,
        charges: RequestCharges,
    ) -> tuple[PolicyReply, Answer]:
        """Have a bundle answer; where a pacer may choose which, tell it what that cost."""
        pace = self.paces.get(policy.name)
        if pace is None or asked.request.options.choose:
            ended = policy.why_ended(chosen.loaded) if chosen.loaded else ""
            chosen = replace(chosen, ended=ended)
            return await self._played(asked, policy, chosen, charges)
        paced = pace.choose(list(policy.loaded.values()))
        ended = policy.why_ended(paced.mode)
        chosen = BundleChoice(paced.mode, paced.mode.question_budget_nano, ended=ended)
        answered = False
        try:
            found = await self._played(asked, policy, chosen, charges)
            answered = True
            return found
        finally:  # what failed was charged as well
            pace.settle(paced, charges.spent_nano if answered or charges.spent_nano else None)

    async def _played(
        self,
        asked: RequestContext,
        policy: GatewayPolicy,
        chosen: BundleChoice,
        charges: RequestCharges,
    ) -> tuple[PolicyReply, Answer]:
        inside = replace(asked, read=policy.asked(asked.request))
        proxy, strongest = self.proxy, self.strongest
        return await policy_reply.answer_with_policy(
            inside, chosen, charges, proxy, strongest, policy.name
        )

    def _received(
        self, asked: RequestContext, name: str, reply: Reply, charges: RequestCharges, why: str
    ) -> Receipt:
        receipt, price = self._receipt(asked, name, charges, why), self.strongest.price
        if price is None or not asked.request.api.is_chat:
            return receipt
        would = price.cost_nano(reply.usage, reply.latency_s)
        return replace(receipt, saved_nano=would - charges.spent_nano)

    def _receipt(
        self, asked: RequestContext, name: str, charges: RequestCharges, why: str
    ) -> Receipt:
        return Receipt(
            trace=charges.note,
            model=asked.request.model,
            answered_by=name,
            cost_nano=charges.spent_nano,
            estimated=charges.estimated,
            latency_s=asked.deadline.took_s,
            calls=attempts_json(charges.tries),
            says=f"Nothing is promised: {why}.",
            max_tokens=charges.tries[-1].max_tokens,
            dropped=charges.tries[-1].dropped,
            outside=asked.outside,
            stopped=why == STOPPED,
        )

    def _keep(
        self,
        request: ChatRequest,
        route: Route,
        charges: RequestCharges,
        receipt: Receipt,
        reply: Reply | None,
        text: str | None = None,
    ) -> None:
        kind = "stopped" if receipt.stopped else NONE
        self.metrics.paid(request.model, receipt.cost_nano, receipt.saved_nano, kind)
        if self.recorder is not None:
            self.recorder.passed(request, route.policy, charges, receipt, reply, text)

    def _outside(self, policy: GatewayPolicy, why: Mismatch) -> None:
        self.metrics.outside(policy.name, why.reason)
        if self.recorder is not None:
            self.recorder.traffic.outside(policy.name, why.reason)


def _translated(body: bytes, api: Api) -> bytes:
    try:
        return api.whole(body)
    except UNREADABLE:
        raise _untranslatable() from None


def _pieces(translator: Translator, chunks: Iterable[bytes]) -> list[bytes]:
    try:
        return [piece for chunk in chunks for piece in translator.pieces(chunk)]
    except UNREADABLE:
        raise _untranslatable() from None


def _untranslatable() -> ApiError:
    said = "the model's reply came, and was paid for, but is no chat completion that can be read"
    return ApiError(502, said, "api_error", "upstream_malformed")


def _with_receipt(body: bytes, receipt: Receipt) -> bytes:
    """Return a provider's reply with `farthing` added; its bytes stay as they are."""
    said = msgspec.json.encode(receipt.to_json())
    end = body.rstrip()
    if not end.endswith(b"}"):
        return body
    return end[:-1] + b',"farthing":' + said + b"}"

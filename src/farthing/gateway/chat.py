"""One request for a chat completion: who answers, within which limits, and what is kept of it."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass, replace

import msgspec

from farthing.budgets.accounts.base import Accounts
from farthing.gateway import answering
from farthing.gateway.completions import NONE, Given, Receipt
from farthing.gateway.config import ServeConfig
from farthing.gateway.keys import KeyRecord
from farthing.gateway.metrics import Metrics
from farthing.gateway.outside import Outside
from farthing.gateway.pacing import Pace
from farthing.gateway.passing import Passing
from farthing.gateway.policies import Chosen, GatewayPolicy
from farthing.gateway.recording import Recorder
from farthing.gateway.refusals import RefusedError, forbidden, unknown_model
from farthing.gateway.replies import says_usage, text_in_piece
from farthing.gateway.requests import ChatRequest
from farthing.gateway.sections import PREFIX
from farthing.gateway.spending import Limits, Payer, Waiting
from farthing.gateway.tries import listed, seconds
from farthing.gateway.upstream import Reply
from farthing.runtime.answer import Answer


@dataclass(frozen=True)
class Route:
    """Where a request goes."""

    model: str
    """The upstream model that answers, where no policy does."""
    policy: GatewayPolicy | None = None
    """Whose task it is."""
    why: str = ""
    """Why nothing is promised of it."""

    def asked(self, request: ChatRequest) -> ChatRequest:
        """Return what the model is asked: of a task as the task says, else what was asked."""
        return request if self.policy is None else self.policy.asked(request)


@dataclass(frozen=True)
class Whole:
    """A reply in one piece."""

    body: bytes
    receipt: Receipt


@dataclass(frozen=True)
class Chat:
    """Answers requests for chat completions."""

    config: ServeConfig
    passing: Passing
    policies: dict[str, GatewayPolicy]
    ledger: Accounts
    limits: Limits
    strongest: answering.Strongest
    metrics: Metrics
    recorder: Recorder | None
    paces: dict[str, Pace]
    """By policy, those whose modes a pacer chooses."""

    @property
    def models(self) -> list[str]:
        """What clients may ask for: models, and a virtual one for each policy."""
        return [*self.passing.upstreams, *(PREFIX + name for name in self.policies)]

    def route(self, request: ChatRequest, key: KeyRecord | None) -> Route:
        """Return where a request goes.

        Raises:
            RefusedError: there is no such model, the key may not use it, or its policy takes
                nothing outside its task.
        """
        name = request.model
        if name not in self.models:
            raise unknown_model(name, self.models)
        if key is not None and key.models and name not in key.models:
            raise forbidden(f"use the model '{name}'")
        if name in self.passing.upstreams:
            taking = [p for p in self.policies.values() if name in p.section.answers_for]
            fit = [(policy, policy.outside(request)) for policy in taking]
            inside = [policy for policy, other in fit if other is None]
            if inside:
                return Route(name, inside[0])
            why = "a model was asked, which promises nothing"
            nearly = [(policy, one) for policy, one in fit if one is not None and one.nearly]
            for policy, one in nearly[:1]:
                self._outside(policy, one)
                why += f"; nor is it the task of {PREFIX}{policy.name}, since {one}"
            return Route(name, None, why)
        policy = self.policies[name.removeprefix(PREFIX)]
        outside = policy.outside(request)
        if outside is None:
            return Route(self.strongest.name, policy)
        self._outside(policy, outside)
        if policy.section.outside == "refuse":
            said = f"the policy '{policy.name}' does not take this request: {outside}"
            raise RefusedError(400, said, code="outside_task")
        return Route(self.strongest.name, None, f"the request is outside the task: {outside}")

    async def whole(
        self, request: ChatRequest, key: KeyRecord | None, trace: str, waiting: Waiting | None
    ) -> Whole:
        """Answer in one piece; settlements wait where they are given a place.

        Raises:
            RefusedError, LimitError, ModelError: it is not answered.
        """
        route = self.route(request, key)
        payer = self._payer(key, route, trace, waiting)
        decided = await self._decided(request, route, payer)
        if isinstance(decided, Given):
            return Whole(decided.body(), decided.receipt)
        sent, left = route.asked(request), self._left(request)
        line = self.passing.line(route.model)
        name, reply = await self.passing.send(line, sent, payer, left)
        receipt = self._received(request, name, reply, payer, decided)
        self._keep(request, route, payer, receipt, reply)
        return Whole(_with_receipt(reply.body, receipt), receipt)

    async def pieces(
        self, request: ChatRequest, key: KeyRecord | None, trace: str, waiting: Waiting | None
    ) -> AsyncGenerator[bytes | Receipt]:
        """Answer in pieces: the data of each event, and the receipt once it is known.

        What fails before the first piece is raised before it.

        Raises:
            RefusedError, LimitError, ModelError: it is not answered, or no further.
        """
        route = self.route(request, key)
        payer = self._payer(key, route, trace, waiting)
        decided = await self._decided(request, route, payer)
        if isinstance(decided, Given):
            yield decided.receipt
            for chunk in decided.chunks(usage=request.include_usage):
                yield chunk
            return
        sent, left = route.asked(request), self._left(request)
        line = self.passing.line(route.model)
        async with self.passing.stream(line, sent, payer, left) as (name, streamed):
            said: list[str] = []
            usage: bytes | None = None
            async for piece in streamed:
                if self.recorder is not None:
                    said.append(text_in_piece(piece))
                if request.include_usage and says_usage(piece):
                    usage = piece  # it comes last, and what it all cost is known after it
                else:
                    yield piece
            reply = streamed.reply
        receipt = self._received(request, name, reply, payer, decided)
        self._keep(request, route, payer, receipt, reply, "".join(said))
        if usage is not None:
            yield _with_receipt(usage, receipt)
        yield receipt

    def _payer(
        self, key: KeyRecord | None, route: Route, trace: str, waiting: Waiting | None
    ) -> Payer:
        policy, lease_s = route.policy.name if route.policy else None, self.config.serve.lease_s
        return Payer(self.ledger, self.limits, key, lease_s, policy, trace, waiting)

    async def _decided(self, request: ChatRequest, route: Route, payer: Payer) -> Given | str:
        """Return a policy's reply; where no bundle decides, why nothing is promised."""
        policy = route.policy
        if policy is None:
            return route.why
        chosen = policy.choose(request.wishes)
        if chosen.loaded is None:
            return chosen.why
        given, answer = await self._answered(request, policy, chosen, payer)
        receipt = given.receipt
        self.metrics.paid(request.model, receipt.cost_nano, receipt.saved_nano, receipt.promise)
        if self.recorder is not None:
            self.recorder.decided(request, policy, payer, receipt, answer)
        return given

    async def _answered(
        self, request: ChatRequest, policy: GatewayPolicy, chosen: Chosen, payer: Payer
    ) -> tuple[Given, Answer]:
        """Have a bundle answer; where a pacer may choose which, tell it what that cost."""
        pace = self.paces.get(policy.name)
        if pace is None or request.wishes.choose:
            ended = policy.why_ended(chosen.loaded) if chosen.loaded else ""
            chosen = replace(chosen, ended=ended)
            return await self._played(policy.asked(request), chosen, payer)
        paced = pace.choose(list(policy.loaded.values()))
        ended = policy.why_ended(paced.mode)
        chosen = Chosen(paced.mode, paced.mode.question_budget_nano, ended=ended)
        cost: int | None = None
        try:
            found = await self._played(policy.asked(request), chosen, payer)
            cost = found[0].receipt.cost_nano
            return found
        finally:
            pace.settle(paced, cost)

    async def _played(
        self, asked: ChatRequest, chosen: Chosen, payer: Payer
    ) -> tuple[Given, Answer]:
        left = self._left(asked)
        return await answering.answer(asked, chosen, payer, self.passing, self.strongest, left)

    def _received(
        self, request: ChatRequest, name: str, reply: Reply, payer: Payer, why: str
    ) -> Receipt:
        """Return the receipt of a model's own reply, of which nothing is promised."""
        cost, price = payer.spent_nano, self.strongest.price
        would = None if price is None else price.cost_nano(reply.usage, reply.latency_s)
        return Receipt(
            trace=payer.note,
            model=request.model,
            answered_by=name,
            cost_nano=cost,
            latency_s=seconds(payer.tries),
            calls=listed(payer.tries),
            saved_nano=None if would is None else would - cost,
            says=f"Nothing is promised: {why}.",
        )

    def _keep(
        self,
        request: ChatRequest,
        route: Route,
        payer: Payer,
        receipt: Receipt,
        reply: Reply,
        text: str | None = None,
    ) -> None:
        """Count a model's own reply, and record it; `text` is what it said in pieces."""
        self.metrics.paid(request.model, receipt.cost_nano, receipt.saved_nano, NONE)
        if self.recorder is not None:
            self.recorder.passed(request, route.policy, payer, receipt, reply, text)

    def _outside(self, policy: GatewayPolicy, why: Outside) -> None:
        """Count a request that somebody may think to be a policy's task."""
        self.metrics.outside(policy.name, why.reason)
        if self.recorder is not None:
            self.recorder.traffic.outside(policy.name, why.reason)

    def _left(self, request: ChatRequest) -> float:
        """Return the most seconds that an upstream model may take."""
        asked = request.wishes.deadline_s
        return min(self.config.serve.deadline_s, asked or self.config.serve.deadline_s)


def _with_receipt(body: bytes, receipt: Receipt) -> bytes:
    """Return a provider's reply with `farthing` added; its bytes stay as they are."""
    said = msgspec.json.encode(receipt.to_json())
    end = body.rstrip()
    if not end.endswith(b"}"):
        return body
    return end[:-1] + b',"farthing":' + said + b"}"

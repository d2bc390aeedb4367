"""Any other model: requests are read as prompts, its completions written as replies."""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cached_property, reduce

import msgspec

from farthing.errors import BadRequestError, ModelError, ModelTimeoutError
from farthing.models import chat_serving
from farthing.models.base import Completion, Model, Prompt, longest
from farthing.models.prices import Price, largest_usage
from farthing.models.retry import RetryPolicy, add_cost
from farthing.models.usage import added
from farthing_gateway.chat_request import ChatRequest
from farthing_gateway.upstream_base import (
    ASSUMED_OUTPUT,
    Bound,
    Reply,
    StreamedReply,
    check_translated,
)


class SpokenUpstream:
    """A model that knows prompts and completions; each choice of a request is one call to it."""

    notes_sending = False
    max_output = None
    claimed = None

    def __init__(self, name: str, model: Model, price: Price | None, patience: RetryPolicy) -> None:
        self.name = name
        self.model = model.name
        self.price = price
        self.patience = patience
        self._model = model

    def prepare(self, request: ChatRequest, default_max_output: int | None) -> "_SpokenCall":
        """Return the call that a request makes."""
        check_translated(request, self.name)
        asked = _read(request)
        prompts = asked.prompts(default_max_output or ASSUMED_OUTPUT)
        return _SpokenCall(self._model, self.price, asked, prompts)

    async def aclose(self) -> None:
        """Close the model."""
        await self._model.aclose()


@dataclass(frozen=True)
class _SpokenCall:
    """The prompts of a request, one for each of its choices."""

    model: Model
    price: Price | None
    asked: chat_serving.PromptRequest
    prompts: Sequence[Prompt]

    @cached_property
    def bound(self) -> Bound:
        usages = [largest_usage(longest(self.model, prompt)) for prompt in self.prompts]
        tokens = sum(usage.input_tokens + usage.output_tokens for usage in usages)
        if self.price is None:
            return Bound(None, tokens)
        return Bound(sum(map(self.model.largest_cost_nano, self.prompts)), tokens)

    @property
    def rated_tokens(self) -> int:
        return self.bound.tokens

    async def send(self, timeout_s: float | None = None) -> Reply:
        done, seconds = await self._complete(timeout_s)
        return _reply(msgspec.json.encode(chat_serving.reply(self.asked, done)), done, seconds)

    @asynccontextmanager
    async def stream(self, timeout_s: float | None = None) -> AsyncIterator[StreamedReply]:
        done, seconds = await self._complete(timeout_s)
        chunks = [msgspec.json.encode(chunk) for chunk in chat_serving.chunks(self.asked, done)]
        yield _Chunks(chunks, _reply(b"", done, seconds))

    async def _complete(self, timeout_s: float | None) -> tuple[list[Completion], float]:
        started = time.perf_counter()
        try:
            async with asyncio.timeout(timeout_s):
                done = await asyncio.gather(
                    *(self.model.complete(prompt) for prompt in self.prompts),
                    return_exceptions=True,
                )
        except TimeoutError:
            raise ModelTimeoutError(
                f"model '{self.model.name}': no full reply within {timeout_s:g} s",
                cost_nano=self.bound.nano,
            ) from None
        _raise_first(done)
        completions = [one for one in done if isinstance(one, Completion)]
        return completions, time.perf_counter() - started


class _Chunks:
    """Chunks of a reply that is there."""

    def __init__(self, chunks: list[bytes], reply: Reply) -> None:
        self._chunks = iter([chunks])
        self._reply = reply
        self.api = reply.api
        self.ended = False

    def __aiter__(self) -> AsyncIterator[list[bytes]]:
        return self

    async def __anext__(self) -> list[bytes]:
        for chunks in self._chunks:
            return chunks
        self.ended = True
        raise StopAsyncIteration

    @property
    def so_far(self) -> Reply:
        return self._reply

    @property
    def reply(self) -> Reply:
        return self._reply


def _read(request: ChatRequest) -> chat_serving.PromptRequest:
    try:
        return chat_serving.read_request(msgspec.json.encode(request.body))
    except BadRequestError as error:
        error.said = str(error)  # nobody's words but ours
        raise


def _raise_first(done: Sequence[Completion | BaseException]) -> None:
    spent: int | None = 0
    for one in done:
        if isinstance(one, BaseException) and not isinstance(one, ModelError):
            raise one
        spent = add_cost(spent, one.cost_nano)
    for one in done:
        if isinstance(one, ModelError):
            one.cost_nano = spent
            raise one


def _reply(body: bytes, done: Sequence[Completion], seconds: float) -> Reply:
    usages = (one.usage for one in done)
    used = reduce(added, usages)
    cost: int | None = 0
    for one in done:
        cost = add_cost(cost, one.cost_nano)
    return Reply(body, used, used.cached_tokens, cost, seconds, done[0].model)

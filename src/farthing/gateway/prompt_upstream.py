"""Any other model: requests are read as prompts, its completions written as replies."""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import msgspec

from farthing.errors import BadRequestError, ModelError, ModelTimeoutError
from farthing.gateway.chat_request import ChatRequest
from farthing.gateway.upstream_base import ASSUMED_OUTPUT, Bound, Reply, StreamedReply
from farthing.models import chat_serving
from farthing.models.base import Completion, Model, Prompt, Usage, longest
from farthing.models.prices import Price, largest_usage
from farthing.models.retry import RetryPolicy, add_cost


class SpokenUpstream:
    """A model that knows prompts and completions; each choice of a request is one call to it."""

    notes_sending = False
    max_output = None

    def __init__(self, name: str, model: Model, price: Price | None, patience: RetryPolicy) -> None:
        self.name = name
        self.model = model.name
        self.price = price
        self.patience = patience
        self._model = model

    def largest(self, request: ChatRequest, default_max_output: int | None) -> Bound:
        """Return the most that one try can take."""
        return self._bound(_read(request).prompts(default_max_output or ASSUMED_OUTPUT))

    async def send(
        self,
        request: ChatRequest,
        default_max_output: int | None,
        *,
        timeout_s: float | None = None,
    ) -> Reply:
        """Try once; where one choice fails, all do."""
        asked = _read(request)
        done, seconds = await self._complete(
            asked.prompts(default_max_output or ASSUMED_OUTPUT), timeout_s
        )
        body = msgspec.json.encode(chat_serving.reply(asked, done))
        return _reply(body, done, seconds)

    @asynccontextmanager
    async def stream(
        self,
        request: ChatRequest,
        default_max_output: int | None,
        *,
        timeout_s: float | None = None,
    ) -> AsyncIterator[StreamedReply]:
        """Try once; the whole reply is there before its first piece."""
        asked = _read(request)
        done, seconds = await self._complete(
            asked.prompts(default_max_output or ASSUMED_OUTPUT), timeout_s
        )
        chunks = [msgspec.json.encode(chunk) for chunk in chat_serving.chunks(asked, done)]
        yield _Chunks(chunks, _reply(b"", done, seconds))

    async def aclose(self) -> None:
        """Close the model."""
        await self._model.aclose()

    def _bound(self, prompts: Sequence[Prompt]) -> Bound:
        usages = [largest_usage(longest(self._model, prompt)) for prompt in prompts]
        tokens = sum(usage.input_tokens + usage.output_tokens for usage in usages)
        if self.price is None:
            return Bound(None, tokens)
        return Bound(sum(map(self._model.largest_cost_nano, prompts)), tokens)

    async def _complete(
        self, prompts: Sequence[Prompt], timeout_s: float | None
    ) -> tuple[list[Completion], float]:
        started = time.perf_counter()
        try:
            async with asyncio.timeout(timeout_s):
                done = await asyncio.gather(
                    *(self._model.complete(prompt) for prompt in prompts), return_exceptions=True
                )
        except TimeoutError:
            raise ModelTimeoutError(
                f"model '{self.model}': no full reply within {timeout_s:g} s",
                cost_nano=self._bound(prompts).nano,
            ) from None
        _raise_first(done)
        completions = [one for one in done if isinstance(one, Completion)]
        return completions, time.perf_counter() - started


class _Chunks:
    """Chunks of a reply that is there."""

    def __init__(self, chunks: Sequence[bytes], reply: Reply) -> None:
        self._chunks = iter(chunks)
        self._reply = reply
        self.ended = False

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        for chunk in self._chunks:
            return chunk
        self.ended = True
        raise StopAsyncIteration

    @property
    def so_far(self) -> Reply:
        """What it took: all of it is there."""
        return self._reply

    @property
    def reply(self) -> Reply:
        """What it took."""
        return self._reply


def _read(request: ChatRequest) -> chat_serving.PromptRequest:
    try:
        return chat_serving.read_request(msgspec.json.encode(request.body))
    except BadRequestError as error:
        error.said = str(error)  # nobody's words but ours
        raise


def _raise_first(done: Sequence[Completion | BaseException]) -> None:
    """Raise the first failure, with the cost of all."""
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
    usages = [one.usage for one in done]
    used = Usage(
        input_tokens=sum(usage.input_tokens for usage in usages),
        output_tokens=sum(usage.output_tokens for usage in usages),
        estimated=any(usage.estimated for usage in usages),
        cached_tokens=sum(usage.cached_tokens for usage in usages),
    )
    cost: int | None = 0
    for one in done:
        cost = add_cost(cost, one.cost_nano)
    return Reply(body, used, used.cached_tokens, cost, seconds, done[0].model)

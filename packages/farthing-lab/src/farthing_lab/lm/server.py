"""An OpenAI-compatible server of local models, in a process of its own.

PyTorch never loads where requests are decided: whoever decides asks this server over HTTP.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec
from aiohttp import web

from farthing.errors import BadRequestError, ContextTooLongError, InputError, ModelError
from farthing.models.base import MAX_TOKENS, Completion, Message, Prompt, Usage
from farthing.models.chat_serving import PromptRequest, chunks, problem, read_request, reply, shown
from farthing.models.thinking import NONE
from farthing_lab.models.local import LocalModel

LARGEST_BODY = 4 * 2**20
"""Bytes of a request, at most."""
MOST_DIGITS = 18
"""Digits of a budget of thought, at most."""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def serve(
    models: Mapping[str, LocalModel], listening: socket.socket, ready: Callable[[str], None]
) -> None:
    """Serve until the process is interrupted or asked to end.

    The socket is bound; `ready` is told the address, once it answers.
    """
    web.run_app(
        application(models),
        sock=listening,
        print=lambda *_: ready(shown(listening)),
        access_log=None,
        handler_cancellation=True,  # a client that goes away is not answered to the end
    )


def application(models: Mapping[str, LocalModel]) -> web.Application:
    """Return the server's routes over some models, which it closes in the end."""
    served = _Served(models)
    app = web.Application(client_max_size=LARGEST_BODY, middlewares=[_in_their_form])
    app.router.add_post("/v1/chat/completions", served.chat)
    app.router.add_get("/v1/models", served.list)
    app.router.add_get("/v1/models/{name}", served.one)
    app.router.add_get("/health", served.health)
    app.on_cleanup.append(served.close)
    return app


class _Served:
    def __init__(self, models: Mapping[str, LocalModel]) -> None:
        self._models = models

    async def chat(self, http: web.Request) -> web.StreamResponse:
        request = read_request(await http.read())
        model = self._models.get(request.model)
        if model is None:
            return self._unknown(request.model)
        context = model.context or 2 * MAX_TOKENS
        prompts = request.prompts(max(1, min(MAX_TOKENS, context // 2)))
        budget = _budget(request.effort)
        done = await asyncio.gather(*(_thought(model, one, budget) for one in prompts))
        return await _stream(http, request, done) if request.stream else _json(reply(request, done))

    async def list(self, _: web.Request) -> web.Response:
        return _json({"object": "list", "data": [_described(name) for name in self._models]})

    async def one(self, http: web.Request) -> web.Response:
        name = http.match_info["name"]
        return _json(_described(name)) if name in self._models else self._unknown(name)

    async def health(self, _: web.Request) -> web.Response:
        return _json({"status": "ok", "models": list(self._models)})

    async def close(self, _: web.Application) -> None:
        for model in self._models.values():
            await model.aclose()

    def _unknown(self, name: str) -> web.Response:
        known = ", ".join(self._models)
        said = f"there is no model '{name}' here, but: {known}"
        return _refusal(404, said, "model_not_found")


def _budget(effort: str | None) -> int | None:
    """Return the most tokens of thought that a request wants; None: as many as the model likes."""
    if effort is None or effort == "on":
        return None
    if effort == NONE:
        return 0
    if not effort.isdecimal() or len(effort) > MOST_DIGITS:
        said = f"effort '{effort:.40}' is not supported; give 'thinking_token_budget'"
        raise BadRequestError(f"{said}, a number of up to {MOST_DIGITS} digits")
    return int(effort)


async def _thought(model: LocalModel, prompt: Prompt, budget: int | None) -> Completion:
    """Answer a prompt with so many tokens of thought at most, and count them.

    What the assistant began is gone on from, and is no thought of this reply. A thought that is
    longer is closed where it is, and the answer goes on from there: budget forcing (Muennighoff et
    al. 2025, "s1: Simple test-time scaling", section 3).
    """
    close, before = model.closes_thought, _begun(prompt)
    if close is None or budget is None or close in before:
        done = await model.complete(prompt)
        thought, closed, _ = done.text.partition(close or "\0")
        return _with_thoughts(done, model.tokens(thought)) if closed else done
    begun = None
    if most := min(budget, prompt.max_tokens - 1):
        begun = await model.complete(replace(prompt, max_tokens=most, stop=(close,)))
    text, taken = (begun.text, begun.usage.output_tokens) if begun else ("", 0)
    asked = prompt.messages[:-1] if before else prompt.messages
    said = Message("assistant", before + text + close)
    answer = await model.complete(
        replace(prompt, messages=(*asked, said), max_tokens=prompt.max_tokens - taken)
    )
    read = answer.usage.input_tokens - model.tokens(said.content) + model.tokens(before)
    whole = replace(
        answer,
        text=text + close + answer.text,
        usage=Usage(read, taken + answer.usage.output_tokens),
        latency_s=answer.latency_s + (begun.latency_s if begun else 0.0),
        logprobs=(*(begun.logprobs if begun else ()), *answer.logprobs),
    )
    return _with_thoughts(whole, model.tokens(text))


def _begun(prompt: Prompt) -> str:
    """Return the beginning of the reply, where a conversation ends with one of the assistant's."""
    *asked, last = prompt.messages
    return last.content if asked and last.role == "assistant" else ""


def _with_thoughts(done: Completion, tokens: int) -> Completion:
    return replace(done, usage=replace(done.usage, reasoning_tokens=tokens))


@web.middleware
async def _in_their_form(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except web.HTTPRequestEntityTooLarge:
        return _refusal(413, f"the request is longer than {LARGEST_BODY} bytes; shorten it")
    except web.HTTPException as error:  # 404 and 405
        return _refusal(error.status, f"{request.method} {request.path}: {error.reason}")
    except ContextTooLongError as error:
        return _refusal(400, str(error), "context_length_exceeded")
    except (InputError, ModelError) as error:
        return _refusal(400, str(error))
    except Exception as error:  # noqa: BLE001 - whoever asks gets a reply, whatever it is
        said = problem(f"unexpected {type(error).__name__}: {error}", "server_error")
        return _json(said, 500)


async def _stream(
    http: web.Request, request: PromptRequest, done: Sequence[Completion]
) -> web.StreamResponse:
    sent = web.StreamResponse(
        headers={"Content-Type": "text/event-stream", "Cache-Control": "no-cache"}
    )
    await sent.prepare(http)
    for chunk in chunks(request, done):
        await sent.write(b"data: " + msgspec.json.encode(chunk) + b"\n\n")
    await sent.write(b"data: [DONE]\n\n")
    await sent.write_eof()
    return sent


def _described(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": "farthing"}


def _refusal(status: int, message: str, code: str | None = None) -> web.Response:
    return _json(problem(message, "invalid_request_error", code), status)


def _json(body: dict[str, Any], status: int = 200) -> web.Response:
    encoded = msgspec.json.encode(body)
    return web.Response(body=encoded, status=status, content_type="application/json")

"""OpenAI's chat completions from the other side: requests are read, replies written.

What changes a reply and is not supported is refused, never passed over in silence.
"""

import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal
from uuid import uuid4

import msgspec

from farthing.errors import BadRequestError, InputError
from farthing.models.base import (
    MAX_TOKENS,
    Completion,
    Finish,
    Message,
    Prompt,
    Speaker,
    TokenLogprob,
)
from farthing.models.thinking import effort_of

MOST_STOPS = 4
"""Stop texts of a request, at most."""
_NOT_SUPPORTED = (
    *("tools", "functions", "tool_choice", "function_call", "response_format", "logit_bias"),
    *("presence_penalty", "frequency_penalty", "audio", "prediction"),
)
"""Parameters that would change a reply; without effect are null, 0, an empty list, plain text."""
_PLAIN: tuple[Any, ...] = (None, 0, [], {}, "none", "auto", {"type": "text"})
_SPEAKERS: dict[str, Speaker] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
}
_FINISH: dict[Finish, str] = {
    "stop": "stop",
    "length": "length",
    "refused": "content_filter",
    "other": "length",
}

Fraction = Annotated[float, msgspec.Meta(ge=0, le=1)]
Positive = Annotated[int, msgspec.Meta(ge=1)]
Seed = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
"""What every generator takes, also one more for each further choice."""


class _Part(msgspec.Struct, frozen=True):
    type: Literal["text"]
    text: str


class _PromptMessage(msgspec.Struct, frozen=True):
    role: Literal["system", "developer", "user", "assistant"]
    content: str | list[_Part]

    def read(self) -> Message:
        said = self.content
        text = said if isinstance(said, str) else "".join(part.text for part in said)
        return Message(_SPEAKERS[self.role], text)


class _StreamOptions(msgspec.Struct, frozen=True):
    include_usage: bool = False


class _PromptBody(msgspec.Struct, frozen=True):
    model: str
    messages: Annotated[list[_PromptMessage], msgspec.Meta(min_length=1)]
    max_tokens: Positive | None = None
    max_completion_tokens: Positive | None = None
    temperature: Annotated[float, msgspec.Meta(ge=0, le=2)] | None = None
    top_p: Fraction | None = None
    stop: str | list[str] | None = None
    seed: Seed | None = None
    n: Annotated[int, msgspec.Meta(ge=1, le=128)] | None = None
    logprobs: bool | None = None
    top_logprobs: Annotated[int, msgspec.Meta(ge=0, le=20)] | None = None
    stream: bool | None = None
    stream_options: _StreamOptions | None = None

    @property
    def limit(self) -> int | None:
        return self.max_completion_tokens or self.max_tokens


@dataclass(frozen=True)
class PromptRequest:
    """What a request asks for."""

    model: str
    prompt: Prompt
    """What is asked; its `max_tokens` is `MAX_TOKENS` where `limited` is False."""
    limited: bool
    """The request itself says how long a reply may be."""
    n: int
    """Choices to return."""
    top_logprobs: int | None
    """Alternatives to show for each token; None shows no log-probabilities."""
    effort: str | None
    """How long to think, as `effort_of` reads it."""
    stream: bool
    stream_usage: bool
    """A stream ends with what was used."""

    def prompts(self, most_tokens: int) -> tuple[Prompt, ...]:
        """Return a prompt for each choice; with a seed, each has the next one.

        A request that names no limit gets at most `most_tokens` output tokens.
        """
        limit = self.prompt.max_tokens if self.limited else most_tokens
        seed = self.prompt.seed
        return tuple(
            replace(self.prompt, max_tokens=limit, seed=None if seed is None else seed + at)
            for at in range(self.n)
        )


def read_request(body: bytes) -> PromptRequest:
    """Read the body of `POST /v1/chat/completions`.

    >>> said = b'{"model": "small", "messages": [{"role": "user", "content": "a=4;a?"}], "n": 2}'
    >>> request = read_request(said)
    >>> request.model, request.n, request.prompt.temperature, request.limited
    ('small', 2, 1.0, False)
    """
    try:
        raw = msgspec.json.decode(body)
        asked = msgspec.convert(raw, _PromptBody)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadRequestError(f"the request cannot be read: {error}") from None
    for name in _NOT_SUPPORTED:
        if raw.get(name) not in _PLAIN:
            raise BadRequestError(f"'{name}' is not supported; leave it out")
    if asked.top_logprobs and not asked.logprobs:
        raise BadRequestError("'top_logprobs' needs 'logprobs': true")
    return PromptRequest(
        model=asked.model,
        prompt=_prompt(asked),
        limited=asked.limit is not None,
        n=asked.n or 1,
        top_logprobs=(asked.top_logprobs or 0) if asked.logprobs else None,
        effort=effort_of(raw),
        stream=bool(asked.stream),
        stream_usage=bool(asked.stream_options and asked.stream_options.include_usage),
    )


def reply(request: PromptRequest, done: Sequence[Completion]) -> dict[str, Any]:
    """Return the body of a reply; each completion is one choice."""
    choices = [
        {
            "index": at,
            "message": {"role": "assistant", "content": one.text, "refusal": None},
            "logprobs": _logprobs(one, request.top_logprobs),
            "finish_reason": _FINISH[one.finish],
        }
        for at, one in enumerate(done)
    ]
    return head("chat.completion", request.model, uuid4().hex) | {
        "choices": choices,
        "usage": _usage(done),
    }


def chunks(request: PromptRequest, done: Sequence[Completion]) -> list[dict[str, Any]]:
    """Return the same as the chunks of a stream: of each choice its role, its text, its end."""
    first = head("chat.completion.chunk", request.model, uuid4().hex)
    deltas = []
    for at, one in enumerate(done):
        shown = _logprobs(one, request.top_logprobs)
        deltas += [
            piece(at, {"role": "assistant", "content": ""}),
            piece(at, {"content": one.text}, logprobs=shown),
            piece(at, {}, finish=_FINISH[one.finish]),
        ]
    found = [first | {"choices": [delta]} for delta in deltas]
    if request.stream_usage:
        found = [chunk | {"usage": None} for chunk in found]
        found.append(first | {"choices": [], "usage": _usage(done)})
    return found


def problem(
    message: str, kind: str, code: str | None = None, param: str | None = None
) -> dict[str, Any]:
    """Return the body of a reply that says what went wrong.

    >>> problem("no such model", "invalid_request_error", "model_not_found")["error"]["message"]
    'no such model'
    """
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def _prompt(asked: _PromptBody) -> Prompt:
    stop = [asked.stop] if isinstance(asked.stop, str) else asked.stop or []
    if len(stop) > MOST_STOPS or "" in stop:
        raise BadRequestError(f"'stop' takes up to {MOST_STOPS} texts, none of them empty")
    return Prompt(
        messages=tuple(message.read() for message in asked.messages),
        max_tokens=asked.limit or MAX_TOKENS,
        temperature=1.0 if asked.temperature is None else asked.temperature,
        top_p=1.0 if asked.top_p is None else asked.top_p,
        stop=tuple(stop),
        # A prompt that wants no alternatives gets no log-probabilities at all.
        top_logprobs=max(1, asked.top_logprobs or 0) if asked.logprobs else 0,
        seed=asked.seed,
    )


def head(kind: str, model: str, name: str) -> dict[str, Any]:
    """Return what every reply and every chunk of a stream begins with; `name` makes its id."""
    return {
        "id": f"chatcmpl-{name}",
        "object": kind,
        "created": int(time.time()),
        "model": model,
    }


def piece(
    at: int, delta: dict[str, Any], *, logprobs: Any = None, finish: str | None = None
) -> dict[str, Any]:
    """Return what a chunk of a stream adds to a choice."""
    return {"index": at, "delta": delta, "logprobs": logprobs, "finish_reason": finish}


def _usage(done: Sequence[Completion]) -> dict[str, Any]:
    """A prompt counts once, however many choices it has."""
    counts = [one.usage.reasoning_tokens for one in done]
    thoughts = [count for count in counts if count is not None]
    details = {"completion_tokens_details": {"reasoning_tokens": sum(thoughts)}} if thoughts else {}
    read = done[0].usage.input_tokens
    written = sum(one.usage.output_tokens for one in done)
    return {
        "prompt_tokens": read,
        "completion_tokens": written,
        "total_tokens": read + written,
        **details,
    }


def _logprobs(done: Completion, shown: int | None) -> dict[str, Any] | None:
    if shown is None:
        return None
    return {"content": [_token(one, shown) for one in done.logprobs]}


def _token(one: TokenLogprob, shown: int) -> dict[str, Any]:
    top = [_place(token, logprob) for token, logprob in one.top[:shown]]
    return _place(one.token, one.logprob) | {"top_logprobs": top}


def _place(token: str, logprob: float) -> dict[str, Any]:
    return {"token": token, "logprob": logprob, "bytes": list(token.encode())}


def bind(host: str, port: int) -> socket.socket:
    """Return a socket bound to an address; port 0 takes a free one."""
    try:
        kind = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=kind, backlog=2_048)
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise InputError(f"{host}, port {port}: {why}; give others with --host, --port") from None


def shown(listening: socket.socket) -> str:
    """Return the address of a bound socket as clients take it.

    >>> with bind("127.0.0.1", 0) as one:
    ...     shown(one) == f"http://127.0.0.1:{one.getsockname()[1]}/v1"
    True
    """
    host, port = listening.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/v1"

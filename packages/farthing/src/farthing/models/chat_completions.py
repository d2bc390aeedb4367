"""The wire form of OpenAI's chat completions, which most providers and libraries speak."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from farthing.models.base import Completion, Finish, Prompt, TokenLogprob
from farthing.models.failures import reply_failure
from farthing.models.prices import Price, charge_nano, largest_usage
from farthing.models.usage import counting, usage_in

UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What reading a reply raises that is not what it must be."""

_FINISH: dict[str | None, Finish] = {
    "stop": "stop",
    "length": "length",
    "content_filter": "refused",
}


def request_body(prompt: Prompt, model: str, limit_name: str) -> dict[str, Any]:
    """Return what to ask for, without what is not asked for.

    >>> from farthing.models.base import Message
    >>> body = request_body(Prompt((Message("user", "Hi"),), max_tokens=9), "m", "max_tokens")
    >>> sorted(body)
    ['max_tokens', 'messages', 'model', 'temperature']
    """
    body = {
        "model": model,
        "messages": [{"role": m.role, "content": m.content} for m in prompt.messages],
        limit_name: prompt.max_tokens,
        "temperature": prompt.temperature,
        "top_p": prompt.top_p if prompt.top_p < 1 else None,
        "stop": list(prompt.stop) or None,
        "seed": prompt.seed,
        "logprobs": True if prompt.top_logprobs else None,
        "top_logprobs": prompt.top_logprobs or None,
    }
    return {name: value for name, value in body.items() if value is not None}


def merged(request: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Return a request with more fields, which go before its own; objects in both are merged.

    >>> merged({"a": 1, "kwargs": {"x": 1, "y": 1}}, {"kwargs": {"y": 2}})
    {'a': 1, 'kwargs': {'x': 1, 'y': 2}}
    """
    found = dict(request)
    for name, value in more.items():
        own = found.get(name)
        if isinstance(own, Mapping) and isinstance(value, Mapping):
            found[name] = merged(own, value)
        else:
            found[name] = value
    return found


def read_completion(
    body: bytes,
    prompt: Prompt,
    model: str,
    price: Price | None,
    seconds: float,
    hide: Callable[[str], str] = str,
) -> Completion:
    """Read the first choice of a reply; one without usage counts as the largest there can be.

    Raises:
        ModelError: the reply says that it failed; it costs what it says, without `hide`'s key.
    """
    decoded = msgspec.json.decode(body)
    failed = reply_failure(decoded)
    if failed is not None and not failed.passes:
        cost = charge_nano(price, failed.used, seconds) if failed.used else 0
        raise failed.error(f"model '{model}'", cost, hide)
    reply = msgspec.convert(decoded, _Reply)
    choice = reply.choices[0]
    message = choice.message
    refused = bool(message.refusal and not message.content)
    said = counting(usage_in(body), message.content)
    usage = largest_usage(prompt) if said is None or said.unknown else said
    return Completion(
        text=message.content or message.refusal or "",
        model=reply.model or model,
        finish="refused" if refused else _FINISH.get(choice.finish_reason, "other"),
        usage=usage,
        cost_nano=charge_nano(price, usage, seconds),
        reading_nano=price.cost_nano(usage.read(), 0.0) if price else None,
        latency_s=seconds,
        logprobs=choice.logprobs.tokens() if choice.logprobs else (),
    )


class _Alternative(msgspec.Struct, frozen=True):
    token: str
    logprob: float


class _Token(msgspec.Struct, frozen=True):
    token: str
    logprob: float
    top_logprobs: list[_Alternative] | None = None


class _Logprobs(msgspec.Struct, frozen=True):
    content: list[_Token] | None = None

    def tokens(self) -> tuple[TokenLogprob, ...]:
        return tuple(
            TokenLogprob(
                t.token, t.logprob, tuple((a.token, a.logprob) for a in t.top_logprobs or ())
            )
            for t in self.content or ()
        )


class _Message(msgspec.Struct, frozen=True):
    content: str | None = None
    refusal: str | None = None


class _Choice(msgspec.Struct, frozen=True):
    message: _Message
    finish_reason: str | None = None
    logprobs: _Logprobs | None = None


class _Reply(msgspec.Struct, frozen=True):
    choices: list[_Choice]
    model: str | None = None

    def __post_init__(self) -> None:
        if not self.choices:
            raise ValueError("it has no choices")

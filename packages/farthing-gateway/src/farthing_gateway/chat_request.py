"""Requests for chat completions: what is checked, what Farthing itself is asked for, what is plain.

Checked is what the gateway reads. Everything else goes to the provider unchanged, fields that
nobody knows yet included.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from farthing_gateway.apis.base import Api
from farthing_gateway.apis.chat import CHAT
from farthing_gateway.options import RequestOptions, read_options
from farthing_gateway.request_schema import RequestError, checked

MOST_DEPTH = 64
"""Most objects and lists inside each other."""
_INTEGERS = range(-(2**63), 2**64)
_PASSED = ("anthropic-version", "anthropic-beta")
_LIMITS = ("max_completion_tokens", "max_tokens")
_SPOKEN = frozenset({"system", "developer", "user", "assistant"})
_SAID = frozenset({"role", "content"})
"""Fields of a message that is text alone."""
_SAMPLING = frozenset(
    {"model", "messages", "temperature", "top_p", "stop", "seed", "stream", "stream_options"}
    | {"user", "metadata", "store", "prompt_cache_key", "safety_identifier", *_LIMITS}
)
"""Parameters that leave a request plain, whatever their value."""
_NO_EFFECT: tuple[Any, ...] = (None, False, 0, [], {}, "none", "auto", {"type": "text"})
"""Values with which every other parameter leaves it plain as well."""


@dataclass(frozen=True)
class ChatRequest:
    """A request for a chat completion, checked as far as the gateway reads it."""

    body: Mapping[str, Any]
    """As a chat completion, without `farthing`."""
    model: str
    """Who is asked, as the client calls it."""
    stream: bool
    """The reply is wanted in pieces."""
    include_usage: bool
    """A stream ends with what was used."""
    n: int
    """Choices to return."""
    limit: int | None
    """Most output tokens of a choice, where it names a limit."""
    options: RequestOptions
    api: Api = CHAT
    """What it was posted to, and so the form of its reply."""
    native: Mapping[str, Any] | None = None
    """As it came, where that was in another form than a chat completion's."""
    untranslated: str = ""
    """A field of that which a chat completion cannot say."""
    passed: Mapping[str, str] = field(default_factory=dict)
    """Headers that go to a provider that speaks the same API."""

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The messages as they came."""
        messages: list[dict[str, Any]] = self.body["messages"]
        return messages

    @property
    def plain(self) -> bool:
        """Whether it is text messages and sampling parameters alone, and wants one choice."""
        others = (value for name, value in self.body.items() if name not in _SAMPLING | {"n"})
        return (
            self.n == 1
            and not self.untranslated
            and all(value in _NO_EFFECT for value in others)
            and all(map(_is_spoken, self.messages))
        )


def read_request(
    body: bytes, headers: Mapping[str, str], api: Api = CHAT, *, most_depth: int = MOST_DEPTH
) -> ChatRequest:
    """Read the body of a posted request and the headers `X-Farthing-...`.

    Args:
        body: the request as it came.
        headers: of the request; what `farthing` in the body says goes before them.
        api: what it is posted to.
        most_depth: objects and lists that may stand inside each other.

    Raises:
        RequestError: it cannot be read, or a field is not what it must be.

    >>> said = b'{"model": "m", "messages": [{"role": "user", "content": "a=4;a?"}], "new": 1}'
    >>> request = read_request(said, {"X-Farthing-Budget": "0.002"})
    >>> request.model, request.options.budget_nano, request.plain
    ('m', 2000000, False)
    """
    raw = _decoded(body, most_depth)
    options = read_options(raw.pop("farthing", None), headers)
    checked(raw, api.body)
    chat, untranslated = api.to_chat(raw)
    streaming = raw.get("stream_options") if "stream_options" in api.body.__struct_fields__ else {}
    return ChatRequest(
        body=chat,
        model=raw["model"],
        stream=bool(chat.get("stream")),
        include_usage=bool((streaming or {}).get("include_usage")),
        n=chat.get("n") or 1,
        limit=next((chat[name] for name in _LIMITS if chat.get(name)), None),
        options=options,
        api=api,
        native=None if api is CHAT else raw,
        untranslated=untranslated,
        passed={name: headers[name] for name in _PASSED if name in headers},
    )


def conversation_of(request: ChatRequest) -> str:
    """Return a mark of the conversation that a request belongs to: 16 hexadecimal digits.

    It is that of the conversation's name where the request wishes for one. Otherwise it is that of
    the messages up to the first of the user, and of the field `user`: later turns repeat them.
    Two conversations that begin alike for the same user have the same mark.

    >>> first = b'{"model": "m", "messages": [{"role": "user", "content": "Hi"}]}'
    >>> later = first.replace(b"}]", b'}, {"role": "assistant", "content": "Hello"}]')
    >>> conversation_of(read_request(first, {})) == conversation_of(read_request(later, {}))
    True
    """
    named = request.options.conversation
    beginning = ["named", named] if named is not None else ["begun", *_beginning(request)]
    said = msgspec.json.encode(beginning, order="sorted")
    return hashlib.sha256(said).hexdigest()[:16]


def _beginning(request: ChatRequest) -> list[Any]:
    messages = request.messages
    users = (at for at, message in enumerate(messages) if message["role"] == "user")
    return [request.body.get("user"), *messages[: next(users, 0) + 1]]


def _decoded(body: bytes, most_depth: int) -> dict[str, Any]:
    try:
        raw = msgspec.json.decode(body)
    except RecursionError:
        problem = _too_deep(most_depth)
    except UnicodeDecodeError:
        problem = "is not text in UTF-8"
    except msgspec.DecodeError as error:
        problem = f"is not JSON: {error}"
    else:
        if isinstance(raw, dict):
            _check_values(raw, most_depth)
            return raw
        problem = "must be a JSON object"
    raise RequestError(f"the body {problem}")


def _check_values(raw: dict[str, Any], most_depth: int) -> None:
    """Refuse depth and whole numbers that no reader of JSON needs to take; level by level."""
    level: list[Any] = [raw]
    for _ in range(most_depth):
        nested: list[Any] = []
        for outer in level:
            for value in outer.values() if isinstance(outer, dict) else outer:
                if isinstance(value, dict | list):
                    nested.append(value)
                elif isinstance(value, int) and value not in _INTEGERS:
                    raise RequestError("the body has a whole number of more than 64 bits")
        if not nested:
            return
        level = nested
    raise RequestError(f"the body {_too_deep(most_depth)}")


def _too_deep(most_depth: int) -> str:
    return f"has more than {most_depth} objects and lists inside each other"


def _is_spoken(message: Mapping[str, Any]) -> bool:
    others = (value for name, value in message.items() if name not in _SAID)
    return (
        message["role"] in _SPOKEN
        and message.get("content") is not None
        and all(value in _NO_EFFECT for value in others)
        and _is_text(message)
    )


def _is_text(message: Mapping[str, Any]) -> bool:
    content = message.get("content")
    parts = content if isinstance(content, list) else []
    return not message.get("audio") and all(
        part.get("type") in ("text", "refusal") and isinstance(part.get(part["type"]), str)
        for part in parts
    )

"""OpenAI's text completions: a prompt that is gone on with; as a chat, one message of the user."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta

from farthing.models.chat_completions import UNREADABLE
from farthing_gateway.apis.base import Untranslated, known_fields
from farthing_gateway.apis.chat import (
    CHAT_REPLY,
    MOST_CHOICES,
    ChatCompletions,
    ChatReply,
    Limit,
    Model,
    StreamOptions,
)

_SAME = ("model", "max_tokens", "temperature", "top_p", "stop", "seed", "n", "stream", "user")
"""Fields that a chat completion has as well."""
_KNOWN: Mapping[str, Any] = dict.fromkeys((*_SAME, "prompt", "stream_options", "metadata")) | {
    "best_of": (None, 1)
}


class CompletionBody(msgspec.Struct):
    """What is checked of a request for a completion."""

    model: Model
    prompt: str | Annotated[list[Any], Meta(title="a list of texts or tokens")] = ""
    n: Annotated[int, Meta(ge=1, le=MOST_CHOICES)] | None = None
    best_of: Annotated[int, Meta(ge=1, le=MOST_CHOICES)] | None = None
    max_tokens: Limit = None
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    top_p: Annotated[float, Meta(ge=0, le=1)] | None = None
    stop: str | list[str] | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None


class _Choice(msgspec.Struct, frozen=True):
    index: int = 0
    text: Any = ""


class _Body(msgspec.Struct, frozen=True):
    choices: list[_Choice] = []


_BODY = msgspec.json.Decoder(_Body)


class Completions(ChatCompletions):
    """`POST /v1/completions`."""

    name: ClassVar = "completions"
    path: ClassVar = "/completions"
    body: ClassVar = CompletionBody
    limit: ClassVar = "max_tokens"

    def to_chat(self, body: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
        prompt = body.get("prompt", "")
        some = prompt if isinstance(prompt, list) else [prompt]
        said = some[0] if len(some) == 1 and isinstance(some[0], str) else None
        other = known_fields(body, _KNOWN) or ("prompt" if said is None else "")
        messages = [{"role": "user", "content": said or "" if said is not None else str(prompt)}]
        return {name: body[name] for name in _SAME if name in body} | {"messages": messages}, other

    def replies(self, body: Mapping[str, Any]) -> int:
        """Return the completions of all prompts, those that are not returned among them."""
        prompt = body.get("prompt")
        several = isinstance(prompt, list) and not (prompt and isinstance(prompt[0], int))
        prompts = len(prompt) if several and prompt else 1
        return prompts * max(body.get("n") or 1, body.get("best_of") or 1)

    def text(self, body: bytes) -> str:
        try:
            choices = _BODY.decode(body).choices
        except UNREADABLE:
            return ""
        return "".join(c.text for c in choices if c.index == 0 and isinstance(c.text, str))

    def whole(self, chat: bytes) -> bytes:
        raw, reply = msgspec.json.decode(chat), CHAT_REPLY.decode(chat)
        choices = [_choice(c.index, c.said.text, c.finish_reason) for c in reply.choices]
        return msgspec.json.encode(_renamed(raw) | {"choices": choices})

    def translator(self, _: str) -> "CompletionChunks":
        return CompletionChunks()


class CompletionChunks(Untranslated):
    """Writes a chat's chunks as those of a text completion."""

    def pieces(self, chunk: bytes) -> list[bytes]:
        """Return the chunk; nothing where it says only who speaks."""
        raw, reply = msgspec.json.decode(chunk), CHAT_REPLY.decode(chunk)
        choices = [
            _choice(c.index, c.said.text, c.finish_reason)
            for c in reply.choices
            if c.said.text or c.finish_reason
        ]
        if reply.choices and not choices:
            return []
        return [msgspec.json.encode(_renamed(raw) | {"choices": choices})]


def _renamed(raw: Mapping[str, Any]) -> dict[str, Any]:
    name = str(raw.get("id", "")).removeprefix("chatcmpl-")
    return {**raw, "id": f"cmpl-{name}", "object": "text_completion"}


def _choice(index: int, text: str, finish: str | None) -> dict[str, Any]:
    return {"index": index, "text": text, "logprobs": None, "finish_reason": finish}


def finished(reply: ChatReply) -> str | None:
    """Return why the first choice ended; None: it has not."""
    return next((c.finish_reason for c in reply.choices if c.finish_reason), None)


COMPLETIONS = Completions()

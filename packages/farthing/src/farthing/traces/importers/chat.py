"""What logs of chat models have in common: messages and replies.

The forms are those of OpenAI's chat completions, its older completions and its newer responses,
which most gateways and tools log as they are. Source: the OpenAPI description of OpenAI's API
(`CreateChatCompletionResponse`, `Response`).
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from farthing.models.failures import reply_failure
from farthing.traces.base import CallError
from farthing.traces.importers.row import call_error, unpacked

Messages = tuple[tuple[str, str], ...]
"""Who speaks and what is said, in order; instructions are the system's."""
INSTRUCTIONS = ("system", "developer")
"""Roles whose messages say how to answer, not what is asked."""
OBJECTS = frozenset({"chat.completion", "text_completion", "response"})
"""What replies of OpenAI's interfaces say that they are."""
_WIRE = {"choices", "finish_reason", "stop_reason"}
"""Fields that replies have, and answers have not."""
_BESIDE_ERROR = {"error", "type", "object", "id", "request_id", "status", "code"}
_SPEAKERS = frozenset({"system", "user", "assistant"})
"""Who may speak in a conversation of texts alone."""


@dataclass(frozen=True)
class LoggedPrompt:
    """What a model was asked."""

    question: str
    """The user's message; of a longer conversation, all of it but the instructions."""
    key: str
    """The whole prompt: calls that share it are of the same question."""
    system: str | None = None
    """The system prompt, which may be empty; None: the form does not show it."""
    history: str | None = None
    """What was said before the last message; None likewise."""
    messages: Messages | None = field(default=None, repr=False)
    """What was sent, whole; None where it was more than texts, or the form does not show it."""


def read_prompt(prompt: Any) -> LoggedPrompt | None:
    r"""Read a prompt: a text, messages, or an object or JSON text that holds either.

    >>> read_prompt([{"role": "system", "content": "Brief!"}, {"role": "user", "content": "2?"}])
    LoggedPrompt(question='2?', key='system: Brief!\n\nuser: 2?', system='Brief!', history='')
    >>> read_prompt("2 + 2?")
    LoggedPrompt(question='2 + 2?', key='2 + 2?', system=None, history=None)
    """
    opened = unpacked(prompt)
    if isinstance(opened, dict):
        return _of_object(opened)
    if isinstance(opened, list):
        return _of_messages(opened)
    text = str(prompt).strip() if isinstance(prompt, str) else ""
    return LoggedPrompt(text, text, messages=(("user", text),)) if text else None


def read_reply(response: Any) -> str | None:
    """Read the text of a reply: a text, a message, a completion or a response; None: no text.

    >>> read_reply({"choices": [{"message": {"role": "assistant", "content": "4"}}]})
    '4'
    >>> read_reply({"output": [{"type": "message", "content": [{"type": "text", "text": "4"}]}]})
    '4'
    """
    opened = unpacked(response) if isinstance(response, str) else response
    if isinstance(opened, dict):
        found = _of_reply(opened)
        if found is not None or not isinstance(response, str):
            return found or None
    if isinstance(opened, list) and (one := _alternatives(opened)):
        return read_reply(one[0])
    if isinstance(opened, list):
        parts = [found for part in opened if (found := read_reply(part))]
        if parts:
            return "\n".join(parts)
    return response.strip() or None if isinstance(response, str) else None


def _alternatives(parts: list[Any]) -> list[Any]:
    """Return the choices or messages that a list is of, the one that answers first.

    Of a conversation that is the last message; choices are not one text.
    """
    known = [one for one in parts if isinstance(one, dict)]
    choices = [one for one in known if {"message", "finish_reason", "index"} & one.keys()]
    said = [one for one in known if one.get("role") == "assistant" and "type" not in one]
    only = len(said) == len(parts)
    return choices or (said if only else said[-1:])


def failure_of(reply: Any) -> CallError | None:
    """Return why a logged reply is no answer; None where nothing in it says so.

    An answer in JSON that speaks of an error is an answer.

    >>> failure_of({"choices": [{"text": "par", "finish_reason": None}]}).message
    'it has no finish reason, so it is torn'
    >>> failure_of('{"error": "no such city"}')
    """
    opened = unpacked(reply)
    if isinstance(opened, list):
        return next((found for part in opened if (found := failure_of(part))), None)
    if opened is None or not _is_wire(opened):
        return None
    if (failure := reply_failure(opened)) is not None:
        return call_error(failure.said, failure.kind.kind)
    listed = opened.get("choices")
    choices = listed if isinstance(listed, list) else []
    ends = (c.get("finish_reason", "") for c in choices if isinstance(c, dict))
    torn = "it has no finish reason, so it is torn"
    return call_error(torn, "incomplete") if None in ends else None


def _is_wire(reply: Mapping[str, Any]) -> bool:
    error = reply.get("error")
    alone = isinstance(error, dict) and "message" in error and reply.keys() <= _BESIDE_ERROR
    kind = str(reply.get("type"))
    named = str(reply.get("object")) in OBJECTS or kind in {"error", "message"}
    return alone or named or kind.startswith("response.") or bool(_WIRE & reply.keys())


def _of_object(prompt: Mapping[str, Any]) -> LoggedPrompt | None:
    if "content" in prompt:
        return _of_messages([prompt])
    for name in ("messages", "input", "prompt", "question", "query", "text"):
        if prompt.get(name):
            found = read_prompt(prompt[name])
            if found and (said := _instructions(prompt)):
                both = "\n\n".join(filter(None, [said, found.system]))
                key = f"system: {said}\n\n{found.key}"
                sent = found.messages and (("system", said), *found.messages)
                return LoggedPrompt(found.question, key, both, found.history or "", sent)
            if found and found.system is None and "model" in prompt:  # a request holds all
                return replace(found, system="", history="")
            return found
    text = json.dumps(prompt, ensure_ascii=False, sort_keys=True, default=str)
    return LoggedPrompt(text, text) if prompt else None


def _instructions(prompt: Mapping[str, Any]) -> str:
    instructions = prompt.get("instructions")
    if isinstance(instructions, str):
        return instructions.strip()
    return _content(prompt.get("system")) if isinstance(prompt.get("messages"), list) else ""


def _of_messages(messages: list[Any]) -> LoggedPrompt | None:
    said = []
    for message in messages:
        role = message.get("role") if isinstance(message, dict) else None
        if text := _content(message):
            said.append((role if isinstance(role, str) and role else "user", text))
    questions = [(role, text) for role, text in said if role not in INSTRUCTIONS]
    if not questions:
        return None
    question = questions[0][1] if len(questions) == 1 else _transcript(questions)
    system = "\n\n".join(text for role, text in said if role in INSTRUCTIONS)
    key = question if len(said) == 1 else _transcript(said)
    sent = tuple(("system" if role in INSTRUCTIONS else role, text) for role, text in said)
    plain = all(map(_is_text, messages)) and {role for role, _ in sent} <= _SPEAKERS
    history = _transcript(questions[:-1])
    return LoggedPrompt(question, key, system, history, sent if plain else None)


def _is_text(message: Any) -> bool:
    content = message.get("content") if isinstance(message, dict) else message
    parts = content if isinstance(content, list) else [content]
    texts = (p if isinstance(p, str) else p.get("text") for p in parts if isinstance(p, str | dict))
    calls = isinstance(message, dict) and (message.get("tool_calls") or message.get("type"))
    return not calls and all(isinstance(text, str) for text in texts)


def _transcript(said: list[tuple[str, str]]) -> str:
    return "\n\n".join(f"{role}: {text}" for role, text in said)


def _content(message: Any) -> str:
    """Return a message as text; a part that is none stands for itself by a hash of it."""
    content = message
    if isinstance(message, dict):
        content = message.get("content")
        if content is None and message.get("tool_calls"):
            content = [{"type": "tool_calls", "tool_calls": message["tool_calls"]}]
        elif content is None and "type" in message:
            content = [message]
    if isinstance(content, str):
        return content.strip()
    found = []
    for part in content if isinstance(content, list) else [content]:
        text = part.get("text") if isinstance(part, dict) else part
        if isinstance(text, str):
            found.append(text.strip())
        elif isinstance(part, dict):
            written = json.dumps(part, sort_keys=True, default=str)
            digest = hashlib.sha256(written.encode("utf-8", "replace")).hexdigest()[:8]
            found.append(f"[{part.get('type', 'part')} {digest}]")
    return "\n".join(filter(None, found))


def _of_reply(reply: Mapping[str, Any]) -> str | None:
    choices = reply.get("choices")
    if isinstance(choices, list):
        return read_reply(choices[0]) if choices else None
    if isinstance(reply.get("output"), list):
        messages = [
            m for m in reply["output"] if isinstance(m, dict) and m.get("type") == "message"
        ]
        return "\n".join(found for m in messages if (found := read_reply(m))) or None
    for name in ("message", "content", "text", "completion", "output_text", "output"):
        value = reply.get(name)
        if value is not None:
            return read_reply(value)
    if _is_wire(reply) or "role" in reply or not reply:
        return None
    return json.dumps(reply, ensure_ascii=False, default=str)  # an answer in JSON

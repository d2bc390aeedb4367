"""The OpenAPI description of the gateway's addresses."""

from typing import Any

from farthing import __version__
from farthing.gateway.monitoring.feedback import ID, MOST_COMMENT, MOST_GOLD, MOST_ID
from farthing.gateway.options import MOST_GROUP, MOST_SECONDS, MOST_USD

_ERROR = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["message", "type", "param", "code"],
            "properties": {
                "message": {"type": "string"},
                "type": {"type": "string"},
                "param": {"type": ["string", "null"]},
                "code": {"type": ["string", "null"]},
            },
        }
    },
}
_MEANINGS = {
    "400": "The request cannot be read, or a model will not take it",
    "401": "The key is absent, unknown, revoked or expired",
    "402": "A budget does not allow it; the message says which, and when it resets",
    "403": "The key may not do this",
    "404": "There is no such model, address or recorded request",
    "405": "The address takes another method",
    "408": "The request did not come in time",
    "409": "A request under the same idempotency key is being answered",
    "413": "The request is too long",
    "422": "The idempotency key, or a wish, does not fit",
    "429": "Too much in a minute, here or upstream; Retry-After says when to come back",
    "500": "A mistake of the gateway",
    "502": "A model failed",
    "503": "The database of the gateway does not answer, or the gateway ends",
    "504": "A model, or the request's deadline, was too slow",
}


def _text(most: int, said: str) -> dict[str, Any]:
    return {"type": "string", "minLength": 1, "maxLength": most, "description": said}


_CHAT = {
    "type": "object",
    "required": ["model", "messages"],
    "properties": {
        "model": {"type": "string", "minLength": 1, "description": "A model, or farthing/POLICY"},
        "messages": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "required": ["role"],
                "properties": {
                    "role": {
                        "enum": ["system", "developer", "user", "assistant", "tool", "function"]
                    },
                    "content": {
                        "anyOf": [
                            {"type": "string"},
                            {"type": "array", "items": {"type": "object"}},
                            {"type": "null"},
                        ]
                    },
                },
            },
        },
        "n": {"type": ["integer", "null"], "minimum": 1, "maximum": 128},
        "max_tokens": {"type": ["integer", "null"], "minimum": 1, "maximum": 2**31 - 1},
        "max_completion_tokens": {"type": ["integer", "null"], "minimum": 1, "maximum": 2**31 - 1},
        "temperature": {"type": ["number", "null"], "minimum": 0, "maximum": 2},
        "top_p": {"type": ["number", "null"], "minimum": 0, "maximum": 1},
        "stream": {"type": ["boolean", "null"]},
        "stream_options": {
            "type": ["object", "null"],
            "properties": {"include_usage": {"type": "boolean"}},
        },
        "logprobs": {"type": ["boolean", "null"]},
        "top_logprobs": {"type": ["integer", "null"], "minimum": 0, "maximum": 20},
        "farthing": {
            "type": ["object", "null"],
            "additionalProperties": False,
            "properties": {
                "reliability": {
                    "type": "number",
                    "exclusiveMinimum": 0,
                    "exclusiveMaximum": 1,
                    "description": "Least reliability that must be proved",
                },
                "budget": {
                    "type": "number",
                    "minimum": 0,
                    "maximum": MOST_USD,
                    "description": "Most US dollars",
                },
                "mode": _text(64, "A mode of the policy"),
                "deadline": {
                    "type": "number",
                    "exclusiveMinimum": 0,
                    "maximum": MOST_SECONDS,
                    "description": "Seconds",
                },
                "conversation": _text(256, "A name for the conversation that it belongs to"),
                "group": _text(MOST_GROUP, "A group of requests whose promise is watched apart"),
            },
        },
    },
}


_FEEDBACK = {
    "type": "object",
    "required": ["trace_id"],
    "additionalProperties": False,
    "properties": {
        "trace_id": {"type": "string", "maxLength": MOST_ID, "pattern": ID},
        "grade": {
            "description": "Whether the answer is right, or how right it is",
            "anyOf": [
                {"type": "boolean"},
                {"type": "number", "minimum": 0, "maximum": 1},
                {"type": "null"},
            ],
        },
        "gold": {
            "type": ["string", "null"],
            "minLength": 1,
            "maxLength": MOST_GOLD,
            "description": "In place of a grade: an accepted answer",
        },
        "comment": {"type": ["string", "null"], "maxLength": MOST_COMMENT},
    },
}


def description() -> dict[str, Any]:
    """Return the OpenAPI 3.1 description.

    >>> sorted(description()["paths"])[:2]
    ['/health', '/metrics']
    """
    chat = {
        "summary": "Answer a chat completion",
        "description": "As OpenAI's. The reply has an object `farthing`: cost, savings, promise.",
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": _CHAT}},
        },
        "parameters": [_header("Idempotency-Key", "The same key is answered and paid once")],
        "responses": _responses("application/json", "text/event-stream"),
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": "Farthing", "version": __version__},
        "security": [{"key": []}],
        "paths": {
            "/v1/chat/completions": {"post": chat},
            "/v1/feedback": {"post": _feedback()},
            "/v1/watch": {"get": _get("Say how promises are kept, and which alarms rang")},
            "/v1/models": {"get": _get("List models and policies")},
            "/v1/spending": {"get": _get("What was charged, and what is left of each limit")},
            "/v1/models/{name}": {"get": _get("Describe one") | {"parameters": [_name()]}},
            "/health": {"get": _get("Say that the process is there") | {"security": []}},
            "/ready": {"get": _get("Say that requests can be answered") | {"security": []}},
            "/metrics": {"get": _get("Figures for Prometheus", "text/plain")},
            "/openapi.json": {"get": _get("This description") | {"security": []}},
        },
        "components": {
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
            "schemas": {"Error": _ERROR},
        },
    }


def _feedback() -> dict[str, Any]:
    return {
        "summary": "Say how right a reply was",
        "description": "A grade, or an accepted answer by which the task grades what was returned.",
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": _FEEDBACK}},
        },
        "responses": _responses("application/json"),
    }


def _get(summary: str, *kinds: str) -> dict[str, Any]:
    return {"summary": summary, "responses": _responses(*(kinds or ("application/json",)))}


def _responses(*kinds: str) -> dict[str, Any]:
    error = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    found: dict[str, Any] = {
        "200": {"description": "Answered", "content": {kind: {} for kind in kinds}}
    }
    return found | {
        status: {"description": said, "content": error} for status, said in _MEANINGS.items()
    }


def _header(name: str, said: str) -> dict[str, Any]:
    return {
        "name": name,
        "in": "header",
        "required": False,
        "description": said,
        "schema": {"type": "string"},
    }


def _name() -> dict[str, Any]:
    return {"name": "name", "in": "path", "required": True, "schema": {"type": "string"}}

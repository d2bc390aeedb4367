"""The OpenAPI description of the gateway's addresses."""

from typing import Any

from farthing import __version__
from farthing_gateway.apis import APIS
from farthing_gateway.apis.base import Api
from farthing_gateway.monitoring.feedback import ID, MOST_COMMENT, MOST_GOLD, MOST_ID
from farthing_gateway.options import RequestOptions
from farthing_gateway.request_schema import schema_of

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


_SUMMARIES = {
    "chat": "Answer a chat completion, as OpenAI's",
    "completions": "Answer a text completion, as OpenAI's",
    "embeddings": "Embed texts, as OpenAI's",
    "responses": "Answer a response, as OpenAI's, without state",
    "messages": "Answer a message, as Anthropic's",
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
    name = {"name": "name", "in": "path", "required": True, "schema": {"type": "string"}}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Farthing", "version": __version__},
        "security": [{"key": []}],
        "paths": {
            **{f"/v1{api.path}": {"post": _post(api)} for api in APIS},
            "/v1/feedback": {"post": _feedback()},
            "/v1/watch": {"get": _get("Say how promises are kept, and which alarms rang")},
            "/v1/models": {"get": _get("List models and policies")},
            "/v1/spending": {"get": _get("What was charged, and what is left of each limit")},
            "/v1/models/{name}": {"get": _get("Describe one") | {"parameters": [name]}},
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


def _post(api: Api) -> dict[str, Any]:
    schema = schema_of(api.body)
    options = schema_of(RequestOptions)
    schema["properties"]["farthing"] = {"anyOf": [options, {"type": "null"}]}
    streams = () if api.replies({"prompt": ""}) == 0 else ("text/event-stream",)
    return {
        "summary": _SUMMARIES[api.name],
        "description": "The reply has an object `farthing` beside it: cost, savings, promise.",
        "requestBody": {"required": True, "content": {"application/json": {"schema": schema}}},
        "parameters": [_header("Idempotency-Key", "The same key is answered and paid once")],
        "responses": _responses("application/json", *streams),
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

"""A model that labels tickets, and thinks as long as its effort says."""

import json
import random
from pathlib import Path
from typing import Any

from aiohttp import web
from chat_server import completion

THOUGHTS = {"low": 100, "high": 2_000, None: 700}
"""What each effort thinks, in tokens."""
LABELS = ("billing", "technical", "account")


def thinks(body: dict[str, Any]) -> web.Response:
    """Answer as `right` says, after as many tokens of thought as the effort has."""
    said = completion(body, right(body))
    thoughts = THOUGHTS[body.get("reasoning_effort")]
    said["usage"]["completion_tokens"] += thoughts
    said["usage"]["total_tokens"] += thoughts
    said["usage"]["completion_tokens_details"] = {"reasoning_tokens": thoughts}
    return web.json_response(said)


def right(body: dict[str, Any]) -> str:
    """Return the label; a low effort errs where the ticket is complicated, half of the time."""
    text = body["messages"][-1]["content"]
    label = next((one for one in LABELS if one in text), "none")
    hard = "complicated" in text and random.Random(text).random() < 0.5
    if body.get("reasoning_effort") == "low" and hard:
        return LABELS[LABELS.index(label) - 1].capitalize()
    return label.capitalize()


SYSTEM = "Answer with one word: billing, technical or account."


def messages(number: int) -> list[dict[str, str]]:
    drawn = random.Random(number)
    hard = " It is complicated and long." if drawn.random() < 0.2 else ""
    text = f"Ticket {number} about {drawn.choice(LABELS)}.{hard}"
    return [{"role": "system", "content": SYSTEM}, {"role": "user", "content": text}]


def logged(path: Path, n: int) -> Path:
    """Write stored completions of a model that was asked at the effort `high`."""
    with path.open("w") as file:
        for number in range(n):
            said = messages(number)
            request = {"model": "o4-mini", "messages": said, "reasoning_effort": "high"}
            reply = completion(request, right(request))
            reply["usage"]["completion_tokens"] = 2_001
            reply["usage"]["completion_tokens_details"] = {"reasoning_tokens": 2_000}
            reply["usage"].pop("total_tokens")
            file.write(json.dumps(reply | {"messages": said, "request": request}) + "\n")
    return path

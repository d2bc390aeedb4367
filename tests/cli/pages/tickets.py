"""Writes `tickets.jsonl`: LiteLLM's spend log of 3,000 support tickets, all answered by gpt-4o."""

import json
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

SYSTEM = (
    "Classify the support ticket. Answer with one word: billing, technical, account or shipping."
)
WORDS = {
    "billing": ("invoice", "refund", "charge", "receipt"),
    "technical": ("crash", "error", "timeout", "sync"),
    "account": ("password", "profile", "username", "two-factor"),
    "shipping": ("parcel", "courier", "tracking", "customs"),
}
HARD = 0.25
"""Share of the tickets that mention two teams."""


def tickets(n: int, seed: int) -> list[tuple[str, str]]:
    """Return texts and the team that each is for."""
    drawn, found = random.Random(seed), []
    for _ in range(n):
        team = drawn.choice(list(WORDS))
        words = [drawn.choice(WORDS[team])]
        tail = ""
        if drawn.random() < HARD:
            words.append(drawn.choice(WORDS[drawn.choice(list(WORDS))]))
            tail = " It is complicated, and I do not know whom to ask."
        number = drawn.randrange(10**6)
        found.append((f"Ticket {number:06}: I write about {' and '.join(words)}.{tail}", team))
    return found


def row(number: int, text: str, team: str) -> dict[str, Any]:
    """Return a row of the spend log."""
    began = datetime(2026, 10, 1, tzinfo=UTC) + timedelta(minutes=13 * number)
    said = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": text}]
    read, wrote = len(SYSTEM + text) // 4 + 12, 2
    return {
        "request_id": f"chatcmpl-{number}",
        "call_type": "acompletion",
        "model": "gpt-4o",
        "custom_llm_provider": "openai",
        "spend": read * 2.5e-6 + wrote * 1e-5,
        "prompt_tokens": read,
        "completion_tokens": wrote,
        "startTime": began.isoformat(),
        "endTime": (began + timedelta(seconds=0.8)).isoformat(),
        "status": "success",
        "messages": said,
        "response": {"choices": [{"message": {"role": "assistant", "content": team}}]},
        "proxy_server_request": {"model": "gpt-4o", "messages": said, "temperature": 0},
    }


def write(path: Path, n: int, seed: int = 1) -> None:
    """Write a log of n tickets."""
    rows = (row(number, *ticket) for number, ticket in enumerate(tickets(n, seed)))
    path.write_text("".join(json.dumps(one) + "\n" for one in rows))


if __name__ == "__main__":
    write(Path("tickets.jsonl"), 3_000)

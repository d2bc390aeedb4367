"""Write the sample log that ships with the package: 2,000 support tickets, which are made up.

No customer wrote a ticket and no model answered one. Tickets are put together from the parts below
by lot; what the three models "answered" is drawn: nearly always the right team where a ticket names
one matter, and where it names two, the strong model is right more often than the cheap ones. Prices
are in the ratios that providers' small, middle and large models have. As in a real log, some calls
are lacking (the proxy sent part of the traffic to some of the models only), some failed, and a few
carry no cost. It stands in the form of LiteLLM's spend log.

    python benchmarks/sample_log.py            # the same bytes each time
"""

import gzip
import json
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

FILE = Path(__file__).parents[1] / "packages/farthing/src/farthing/traces/sample/tickets.jsonl.gz"
TICKETS = 2_000
MATTERS = {
    "billing": (
        "I was charged twice for order {n}",
        "The invoice for order {n} shows the wrong company",
        "My card was declined, yet {usd} dollars are gone for order {n}",
        "Please send a receipt for order {n}",
        "The discount code was not applied to order {n}",
        "Why did the monthly fee rise to {usd} dollars (contract {n})",
    ),
    "shipping": (
        "Order {n} has not arrived after {days} days",
        "Tracking of parcel {n} has stood still for {days} days",
        "Please deliver order {n} to another address",
        "Parcel {n} was left with a neighbour whom nobody knows",
        "When will order {n} be sent",
        "Only one of the two boxes of order {n} came",
    ),
    "returns": (
        "I want to send back order {n}, it does not fit",
        "How do I get a label to return order {n}",
        "The item of order {n} is broken, please exchange it",
        "It is {days} days since I returned order {n} and I heard nothing",
        "Can I return order {n} without the box",
        "The colour of order {n} is not the one in the picture, I want another",
    ),
    "accounts": (
        "I cannot log in, the password link for user {n} has expired",
        "Please change the e-mail address of user {n}",
        "Delete my account, user {n}, and all data in it",
        "User {n} is locked after {days} tries",
        "How do I add a colleague to account {n}",
        "The code for signing in never reaches my phone, user {n}",
    ),
    "technical": (
        "The app closes itself when I open document {n}",
        "Your API answers 500 since this morning, request {n}",
        "The export of report {n} has no columns",
        "The page stays white on my tablet, session {n}",
        "Sync has been stuck at {days} percent, device {n}",
        "The webhook for event {n} fires twice",
    ),
}
TEAMS = tuple(MATTERS)
OPENINGS = (
    "Hello, ",
    "Hi! ",
    "Good morning, ",
    "",
    "",
    "Dear team, ",
    "Urgent: ",
    "Second message: ",
)
JOINTS = (
    ". Besides, ",
    ", and by the way: ",
    ". It may have to do with this: ",
    "; or is it that ",
)
CLOSINGS = (
    ".",
    ". Thanks!",
    ". Please help.",
    ". I have been a customer for years.",
    ". Best, {name}",
)
NAMES = ("Ada", "Bo", "Chen", "Dilek", "Emeka", "Freya", "Goran", "Hana", "Ines", "Jonas")
SYSTEM = (
    "You route support tickets. Answer with one word, the team that a ticket is for: billing, "
    "shipping, returns, accounts or technical."
)
HARD = 0.2
"""Share of tickets that name two matters; the right team is that of the first."""
SKILL = {"small": (0.975, 0.5), "medium": (0.985, 0.62), "large": (0.992, 0.93)}
"""How often each model is right: one matter, two."""
USD = {"small": (0.10, 0.40), "medium": (0.40, 1.60), "large": (2.50, 10.00)}
"""Per million tokens, in and out."""
SECONDS = {"small": 0.35, "medium": 0.5, "large": 1.1}
NOT_SENT = {"small": 0.03, "medium": 0.05, "large": 0.0}
"""Share of tickets that the proxy did not send to a model, by lot."""
FAILED, NO_COST = 0.006, 0.004
BEGAN = datetime(2026, 3, 2, 8, tzinfo=UTC)


def log() -> Iterator[dict[str, Any]]:
    """Yield the rows of the log, as time passes."""
    draw = random.Random(20_260_302)
    at = BEGAN
    for number in range(TICKETS):
        at += timedelta(seconds=round(draw.expovariate(1 / 90), 1))
        text, team, other = _ticket(draw)
        for model, skill in SKILL.items():
            if draw.random() >= NOT_SENT[model]:
                yield _call(draw, f"{number:04d}-{model}", model, text, at) | _outcome(
                    draw, model, text, team, other, skill[other is not None]
                )


def _ticket(draw: random.Random) -> tuple[str, str, str | None]:
    """Return a ticket's text, its team, and the team of the second matter, if it has one."""
    team = draw.choice(TEAMS)
    matter = draw.choice(MATTERS[team])
    other = None
    if draw.random() < HARD:
        other = draw.choice([one for one in TEAMS if one != team])
        second = draw.choice(MATTERS[other])
        matter = f"{matter}{draw.choice(JOINTS)}{second[0].lower()}{second[1:]}"
    text = draw.choice(OPENINGS) + matter + draw.choice(CLOSINGS)
    filled = text.format(
        n=draw.randrange(10_000, 100_000),
        usd=draw.randrange(9, 400),
        days=draw.randrange(3, 30),
        name=draw.choice(NAMES),
    )
    return filled, team, other


def _call(draw: random.Random, name: str, model: str, text: str, at: datetime) -> dict[str, Any]:
    took = SECONDS[model] * draw.lognormvariate(0, 0.35)
    return {
        "request_id": name,
        "call_type": "acompletion",
        "model": model,
        "startTime": at.isoformat(timespec="milliseconds"),
        "endTime": (at + timedelta(seconds=took)).isoformat(timespec="milliseconds"),
        "messages": [{"role": "system", "content": SYSTEM}, {"role": "user", "content": text}],
        "proxy_server_request": {"temperature": 0.0, "max_tokens": 8},
    }


def _outcome(
    draw: random.Random, model: str, text: str, team: str, other: str | None, skill: float
) -> dict[str, Any]:
    """Return what came of a call: an answer and what it cost, or a failure."""
    if draw.random() < FAILED:
        error = {"error_class": "Timeout", "error_message": "no reply after 30 s"}
        return {"status": "failure", "spend": 0.0, "metadata": {"error_information": error}}
    said = team
    if draw.random() >= skill:
        said = other or draw.choice([one for one in TEAMS if one != team])
    reads = 36 + len(text) // 4
    writes = 2 if said in {"accounts", "technical"} else 1
    usd = (reads * USD[model][0] + writes * USD[model][1]) / 1e6
    written = draw.choice((said, said, said, said.capitalize(), f"{said}."))
    return {
        "status": "success",
        "spend": None if draw.random() < NO_COST else round(usd, 9),
        "prompt_tokens": reads,
        "completion_tokens": writes,
        "response": {"choices": [{"message": {"role": "assistant", "content": written}}]},
    }


def written() -> bytes:
    """Return the log as JSON Lines."""
    return "".join(f"{json.dumps(row)}\n" for row in log()).encode()


if __name__ == "__main__":
    FILE.write_bytes(gzip.compress(written(), compresslevel=9, mtime=0))
    print(f"{FILE.name}: {FILE.stat().st_size:,} bytes")

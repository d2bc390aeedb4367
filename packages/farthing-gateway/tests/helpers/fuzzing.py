"""Made-up requests to a gateway that runs, out of its own OpenAPI description.

Each is checked: its status is one that the description knows and no failure of the gateway, its
reply is what the description says, and it comes in time.
"""

import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

IN_TIME_S = 20.0
"""Seconds after which a reply counts as a hang."""


CHECKS = [
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "unsupported_method",
]
"""What is checked of each reply. Not that all which fits the description is accepted: a number of
more than 64 bits, say, is refused."""


@dataclass
class Fuzzed:
    """What came of it."""

    statuses: Counter[str] = field(default_factory=Counter)
    """Requests by operation and status."""
    refused: Counter[str] = field(default_factory=Counter)
    """Messages to requests that were as the description says, and yet refused."""
    slowest_s: float = 0.0
    wrong: list[str] = field(default_factory=list)
    """What was not as it should be."""

    @property
    def cases(self) -> int:
        """Requests that were sent."""
        return self.statuses.total()


def fuzz(
    url: str, chats: int, others: int, *, key: str, seed: int = 0, models: tuple[str, ...] = ()
) -> Fuzzed:
    """Send made-up requests, and see what comes of them.

    Args:
        url: of the gateway, without a path.
        chats: requests for chat completions; half of them break what the description asks for.
        others: requests to each of the other addresses.
        key: that opens it.
        seed: of the requests.
        models: those that requests name, which hardly one would hit by chance.
    """
    found = Fuzzed()
    described: Any = import_module("schemathesis").openapi.from_url(f"{url}/openapi.json")
    for result in described.get_all_operations():
        operation = result.ok()
        # Only questions vary without end.
        n = chats if operation.method == "post" else others
        for mode in ("positive", "negative"):
            _fuzz_one(operation, _Sent(mode, n // 2, key, seed, models), found)
    return found


@dataclass(frozen=True)
class _Sent:
    """How the requests to one address are made."""

    mode: str
    n: int
    key: str
    seed: int
    models: tuple[str, ...]


def _fuzz_one(operation: Any, sent: _Sent, found: Fuzzed) -> None:
    hypothesis: Any = import_module("hypothesis")
    generation: Any = import_module("schemathesis").GenerationMode
    wanted = generation(sent.mode)
    cases = operation.as_strategy(generation_mode=wanted)
    chosen = hypothesis.strategies.sampled_from([None, *sent.models * 2])

    def send(case: Any, model: str | None) -> None:
        if model is not None and isinstance(case.body, dict) and "model" in case.body:
            case.body["model"] = model
        _send(case, f"{operation.label}, {sent.mode}", sent.key, found)

    settings = hypothesis.settings(
        max_examples=sent.n,
        deadline=None,
        database=None,
        phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    run = hypothesis.seed(sent.seed)(settings(hypothesis.given(cases, chosen)(send)))
    with suppress(hypothesis.errors.Unsatisfiable):  # an address with nothing to break
        run()


def _send(case: Any, label: str, key: str, found: Fuzzed) -> None:
    began = time.monotonic()
    try:
        reply = case.call(headers={"Authorization": f"Bearer {key}"}, timeout=IN_TIME_S)
    except Exception as error:  # noqa: BLE001 - that is what is looked for
        found.statuses[f"{label}: none"] += 1
        found.wrong.append(f"{label}: {type(error).__name__}: {error:.200}")
        return
    found.slowest_s = max(found.slowest_s, time.monotonic() - began)
    found.statuses[f"{label}: {reply.status_code}"] += 1
    failures: Any = import_module("schemathesis.core.failures")
    checks: Any = import_module("schemathesis.checks").CHECKS
    # A request may give itself so little time that nobody could answer.
    late = reply.status_code == 504 and reply.json()["error"]["code"] == "deadline_exceeded"
    names = CHECKS[1:] if late and _deadline(case) < IN_TIME_S else CHECKS
    try:
        case.validate_response(reply, checks=checks.get_by_names(names))
    except failures.FailureGroup as group:
        found.wrong += [f"{label}: {error!s:.600}" for error in group.exceptions]
    if reply.status_code in (400, 422) and "positive" in label:
        found.refused[reply.json()["error"]["message"]] += 1


def _deadline(case: Any) -> float:
    """Return the seconds that a request gives itself."""
    wishes = case.body.get("farthing") if isinstance(case.body, dict) else None
    return float((wishes or {}).get("deadline") or IN_TIME_S)

"""Questions of which a test says who is right, recorded as a user records them.

Everything goes through `farthing.from_records` or a file of JSON lines, and nothing else is known
of how questions are kept.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import farthing as ft

COST_USD = {"small": 0.0001, "medium": 0.0002, "large": 0.001}
Right = Mapping[str, Sequence[bool]]
"""Role to whether it is right, a question each."""


def records(
    name: str, right: Right, *, split: str | None = None, sure: Sequence[float] | None = None
) -> list[dict[str, Any]]:
    """Return questions that each role was asked alone.

    Who is right says `yes`. Where all are wrong they say the same; else who is wrong says its name.

    Args:
        name: questions of other names are others.
        right: who is right.
        split: the part that the questions are marked for.
        sure: how sure the first role says that it is; None: nobody says so.
    """
    found = []
    for i, row in enumerate(zip(*right.values(), strict=True)):
        told = dict(zip(right, row, strict=True))
        calls = [
            {"round": 1, "role": role, "model": role, "cost_usd": COST_USD[role]}
            | {"answer": "yes" if told[role] else role if any(row) else "no"}
            | ({} if sure is None or role != next(iter(told)) else {"confidence": sure[i]})
            for role in told
        ]
        mark = {} if split is None else {"split": split}
        found.append(
            {"id": f"{name}-{i}", "independent": True, "gold": ["yes"], "calls": calls} | mark
        )
    return found


def paid(
    records: Sequence[Mapping[str, Any]], cost_usd: Mapping[str, float]
) -> list[dict[str, Any]]:
    """Return records in which calls of some roles cost something else; who is right stays."""
    return [
        {
            **record,
            "calls": [
                {**call, "cost_usd": cost_usd.get(call["role"], call["cost_usd"])}
                for call in record["calls"]
            ],
        }
        for record in records
    ]


def traces(*parts: Sequence[Mapping[str, Any]]) -> ft.Traces:
    """Return records as questions."""
    return ft.from_records([record for part in parts for record in part], "told")


def write(path: Path, *parts: Sequence[Mapping[str, Any]]) -> Path:
    """Write records as a trace file."""
    path.write_text("".join(json.dumps(record) + "\n" for part in parts for record in part))
    return path


def both(n: int, *, lost: int = 0, won: int = 0, neither: int = 0) -> dict[str, list[bool]]:
    """Return who of a small and a large model is right on n questions.

    Args:
        n: questions.
        lost: those that the large one alone has right.
        won: those that the small one alone has right.
        neither: those that both have wrong, alike.
    """
    rest = n - lost - won - neither
    small = [False] * lost + [True] * won + [False] * neither + [True] * rest
    large = [True] * lost + [False] * won + [False] * neither + [True] * rest
    return {"small": small, "large": large}

"""What the paper published, tables 2 to 9, to lay beside our figures."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from importlib.resources import files

import msgspec

from farthing.recommendation.base import Comparison, Row
from farthing_lab.comparison.rows import ran, rows_at
from farthing_lab.generator.presets import preset

TEST_QUESTIONS = 200
"""Questions that the paper's costs are the sum over (section 5.1)."""

OUR_NAMES: Mapping[str, str] = {
    "gpt-4o-exit": "exit-guide",
    "llama-exit": "exit-base",
    "llm-policy-gpt-4o": "llm-policy-guide",
    "llm-policy-llama": "llm-policy-base",
    "ccpo-lambda-0": "ccpo-published",
    "ccpo-lambda-1e-4": "ccpo-published-lambda-1e-4",
    "ccpo-lambda-2e-4": "ccpo-published-lambda-2e-4",
}
"""The paper's policies under our names; the others have the same name.

The paper's CCPO is ours as published, each lambda by itself: the corrected one is another method.
"""


def tables() -> list[dict[str, float | str]]:
    """Return every row of the paper's tables as printed; cost in cents for the test questions."""
    text = (files("farthing_lab.comparison") / "published.json").read_text(encoding="utf-8")
    rows: list[dict[str, float | str]] = json.loads(text)
    return rows


def fitted_to(name: str) -> str:
    """Say what made a preset's questions up.

    >>> fitted_to("mmlu-llama2-7b")
    "made-up questions of a generator fitted to the paper's figures for mmlu with llama-2-7b"
    """
    found = preset(name)
    figures = f"the paper's figures for {found.dataset} with {found.base_model}"
    return f"made-up questions of a generator fitted to {figures}"


def published(name: str) -> list[Mapping[str, float | str]]:
    """Return the rows that belong to a preset, with our names and costs in USD a question.

    >>> [row["cost_usd"] for row in published("mmlu-llama2-7b") if row["policy"] == "uala"]
    [0.0008495, 0.0003806]
    """
    wanted = (preset(name).dataset, preset(name).base_model)
    return [
        {
            "policy": OUR_NAMES.get(str(row["policy"]), str(row["policy"])),
            "alpha": row["alpha"],
            "cost_usd": round(float(row["cost_cents"]) / 100 / TEST_QUESTIONS, 12),
            "coverage": row["coverage"],
            "avg_len": row["avg_len"],
            "set_size": row["set_size"],
            "table": row["table"],
        }
        for row in tables()
        if (row["dataset"], row["base_model"]) == wanted
    ]


CORRECTED, AS_PRINTED = "ccpo", "ccpo-published"
"""CCPO with its constraint corrected, and as the paper has it: the paper's figures are of this."""


@dataclass(frozen=True)
class Published:
    """One line of a table of the paper."""

    policy: str
    cost_usd: float
    """Dollars a question."""
    coverage: float
    avg_len: float
    set_size: float
    """Answers with repetitions: the paper counts leaves."""
    table: int
    """The number of the table in the paper."""


def beside(comparison: Comparison, alpha: Fraction) -> list[tuple[Row, Published]]:
    """Pair our rows of one alpha with the paper's of the same policy and alpha."""
    papers = {
        entry["policy"]: msgspec.convert(entry, Published)
        for entry in comparison.published
        if Fraction(str(entry["alpha"])) == alpha
    }
    return [(row, papers[row.policy]) for row in rows_at(comparison, alpha) if row.policy in papers]


def notes(comparison: Comparison, alpha: Fraction) -> tuple[str, ...]:
    """Say what stands on either side of the stroke, and who has no figure in the paper."""
    pairs = beside(comparison, alpha)
    table = ", ".join(str(n) for n in dict.fromkeys(paper.table for _, paper in pairs))
    sides = (
        "before the stroke ours, on made-up questions; behind it the paper's, as printed in table "
        f"{table} of arXiv 2511.11828, on {TEST_QUESTIONS} recorded ones"
    )
    shown = {row.policy for row, _ in pairs}
    others = [r for r in rows_at(comparison, alpha) if ran(r) and r.policy not in shown]
    if not others:
        return (sides,)
    without = f"not in the paper: {', '.join(row.label for row in others)}"
    for row in others:
        if row.policy == CORRECTED:
            without += f"; {row.label} has a corrected constraint, the paper's own is {AS_PRINTED}"
    return (sides, without)

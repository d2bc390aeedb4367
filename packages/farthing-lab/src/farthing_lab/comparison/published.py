"""What the paper published, tables 2 to 9, to lay beside our figures."""

import json
from collections.abc import Mapping
from importlib.resources import files

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

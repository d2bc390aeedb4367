"""A comparison made by hand, so that reports are tested without any learner."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from farthing.methods.base import Calibration
from farthing.promises.kinds.parity import Parity
from farthing.recommendation.base import METRICS, TIMES_OPTIMUM, Alone, Comparison, Difference, Row

ALPHA = Fraction(1, 10)
Sketch = tuple[str, str, Calibration, float, float]
HOSTILE = "<script>alert('x')</script>|\n[red]**bold**"
ROWS: tuple[Sketch, ...] = (
    ("random", "Random", "none", 3.4e-4, 0.58),
    ("llm-policy-guide", "LLM as policy (guide)", "none", float("nan"), float("nan")),
    ("fixed-depth-1", "Fixed depth 1", "none", 2.3e-4, 0.83),
    ("fixed-depth-2", "Fixed depth 2", "none", 4.5e-4, 0.92),
    ("cpo", "CPO", "none", 2.4e-4, 0.83),
    ("cpo-online", "CPO online", "online", 3.7e-4, 0.897),
    ("uala", "UALA", "split", 3.8e-4, 0.91),
    ("cpo-batch", "CPO batch", "split", 3.9e-4, 0.905),
    ("ccpo", "CCPO (λ=0)", "split", 3.3e-4, 0.902),
    ("ccpo-lambda", "CCPO (λ=0.5)", "split", 3.5e-4, 0.903),
    ("ccpo-published", "CCPO as published", "split", 3.7e-4, 0.904),
    ("stopping", "Supervised stopping", "split", 3.1e-4, 0.901),
)


def make_row(sketch: Sketch, seed: int) -> Row:
    """Make one row whose means are near what is given."""
    policy, label, calibration, cost, coverage = sketch
    if np.isnan(cost):
        return Row(policy, label, ALPHA, calibration, note="no replies recorded")
    rng = np.random.default_rng(seed)
    centre = dict.fromkeys(METRICS, 0.5) | {
        "cost_usd": cost,
        "total_cost_usd": cost * 200,
        "coverage": coverage,
        "coverage_solvable": coverage - 0.01,
        "avg_len": cost / 2.3e-4,
        "set_size": 1.4,
        "set_size_leaves": 2.2,
        "empty": 0.0,
    }
    per_split = {
        name: list(value * (1 + 0.03 * rng.standard_normal(40))) for name, value in centre.items()
    }
    spread = np.linspace(0.0, 1.0, 500)
    start = 2.3e-4
    frontier = [
        (float(start + s * 6.8e-4), float(1 - 0.2 * np.exp(-(s * 6.8e-4) / (cost - 1.8e-4))))
        for s in spread
    ]
    curves = (
        {
            name: list(base + 0.1 * base * rng.standard_normal(400) * np.linspace(1, 0.4, 400))
            for name, base in (
                ("cost", cost),
                ("coverage", coverage),
                ("kappa", 0.2),
                ("violation", 0.01),
                ("length", 1.4),
            )
        }
        if "cpo" in policy
        else {}
    )
    per_split[TIMES_OPTIMUM] = [cost / 2.9e-4] * 40
    pointwise = calibration == "none"
    return Row(
        policy,
        label,
        ALPHA,
        calibration,
        per_split,
        kappa=[] if pointwise else [0.2] * 40,
        frontier=[(cost, coverage)] if pointwise else frontier,
        curves=curves,
    )


def make(source: str = "hotpotqa-llama2-7b", label: str | None = None) -> Comparison:
    """Make a comparison of a dozen policies at one alpha."""
    rows = [make_row(row, seed) for seed, row in enumerate(ROWS)]
    if label:
        rows.append(make_row(("mine", label, "split", 4e-4, 0.9), 99))
    differences = [
        Difference(ALPHA, "ccpo", "stopping", "cost_usd", 2e-5, 1.2e-5, 2.8e-5),
        Difference(ALPHA, "ccpo", "stopping", "coverage", 0.001, -0.004, 0.006),
    ]
    optimum = [(2.3e-4 + 0.1e-4 * i, 1 - 0.16 * 0.87**i) for i in range(60)]
    return Comparison(
        source=source,
        fingerprint="ab" * 32,
        sizes={"train": 1000, "calibrate": 200, "test": 200},
        horizon=4,
        roles=("base", "guide"),
        splits=40,
        seeds=[0],
        rows=rows,
        differences=differences,
        optimum=optimum,
        published=[
            {
                "alpha": "0.1",
                "policy": "cpo-batch",
                "cost_usd": 0.07835 / 200,
                "coverage": 0.905,
                "avg_len": 1.70,
                "set_size": 2.19,
                "table": 2,
            }
        ],
        notes=["made by hand"],
        made_up="made-up questions",
    )


@pytest.fixture
def comparison() -> Comparison:
    """Return a comparison of a dozen policies at one alpha."""
    return make()


PARITY = Parity("guide", Fraction(1, 50))


@pytest.fixture
def proved() -> Comparison:
    """Return a comparison under parity: one kept it, one did not, one never proved anything."""
    rows = [
        proved_row("cheap", "Cheap", 3e-4, realised=-0.01, kept=0.95, fell_back=0.1),
        proved_row("broken", "Broken", 1e-4, realised=-0.1, kept=0.2, fell_back=0.0),
        proved_row("never", "Never", 9e-4, realised=0.0, kept=1.0, fell_back=1.0),
    ]
    return replace(
        make(),
        rows=rows,
        differences=[Difference(ALPHA, "broken", "cheap", "cost_usd", -2e-4, -3e-4, -1e-4)],
        optimum=[],
        published=[],
        promise=PARITY,
        reference="guide",
        today=Alone("guide", 9e-4, 0.91),
    )


def proved_row(
    policy: str, label: str, cost: float, *, realised: float, kept: float, fell_back: float
) -> Row:
    """Make one row under parity with a reference at 0.91 for 9e-4 dollars."""
    shares = {"kept": kept, "fell_back": fell_back}
    figures = {
        "cost_usd": [cost] * 20,
        "total_cost_usd": [cost * 200] * 20,
        "accuracy": [0.91 + realised] * 20,
        "realised": [realised] * 20,
        "answered": [1.0] * 20,
        **{name: [float(i < share * 20) for i in range(20)] for name, share in shares.items()},
        "saved": [1 - cost / 9e-4] * 20,
        "gained": [realised] * 20,
    }
    saved, gained = 1 - cost / 9e-4, realised
    ends = {"saved": (saved - 0.05, saved + 0.05), "gained": (gained - 0.01, gained + 0.02)}
    return Row(policy, label, ALPHA, "proved", figures, ends, frontier=[(1e-4, -0.2), (9e-4, 0.0)])


@pytest.fixture
def hostile() -> Comparison:
    """Return a comparison whose names try to break out of the page."""
    return make(source=HOSTILE, label=HOSTILE)

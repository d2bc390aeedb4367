"""What a judge who says what is the same leaves of epsilon and delta, exactly, from the command.

The judge calls every answer of the small model the reference's, but for `DIFFER` questions. Chance
draws all of them to be compared, and persons confirm all but `ERRORS`. So both counts are known,
and levels change what is proved where the textbook tests say.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from scipy import stats
from told_pool import both, records, write

import farthing as ft

Farthing = Callable[..., Any]
N, DIFFER, ERRORS = 300, 4, 2
EPSILON, DELTA = 0.1, 0.1
HAIR = 1e-7


@dataclass(frozen=True)
class Shares:
    """Levels of the whole, and what of them goes to the judge."""

    epsilon: float
    delta: float
    judge_epsilon: float
    judge_delta: float

    @property
    def options(self) -> Sequence[str]:
        """As the command line takes them."""
        names = ("--epsilon", "--delta", "--judge-epsilon", "--judge-delta")
        given = (self.epsilon, self.delta, self.judge_epsilon, self.judge_delta)
        return [
            part for name, each in zip(names, given, strict=True) for part in (name, f"{each:.15f}")
        ]


@pytest.fixture
def proves(farthing: Farthing) -> Callable[[Shares], bool]:
    """Return whether `farthing calibrate` proves agreement at some levels."""
    train, test = (records(part, both(60), split=part) for part in ("train", "test"))
    # Small never says what large does, word for word.
    held = records("held", both(N, lost=N), split="calibrate")
    traces = write(Path("logs.jsonl"), train, held, test)
    lines: list[dict[str, object]] = [{"kind": "pairs", "seed": 0, "number": N, "judge": "j"}]
    for i in range(N):
        said = {"kind": "same", "id": f"held-{i}", "answer": "small", "reference": "large"}
        lines.append(said | {"same": i >= DIFFER, "judge": "j"})
        if i >= DIFFER + ERRORS:
            lines.append(said | {"same": True})
    grades = Path("grades.jsonl")
    grades.write_text("".join(json.dumps(line) + "\n" for line in lines))
    common = ("--bundle", "b", "--traces", traces)
    trained = ("--policy", "always-small", "--grade", "same as large", "--out", "b")
    assert farthing("train", "--traces", traces, *trained).code == 0

    def run(shares: Shares) -> bool:
        promise = ("--promise", "agreement", "--reference", "large", "--grades", grades)
        done = farthing("calibrate", *common, *promise, *shares.options)
        certificate = ft.load("b").certificate
        assert certificate is not None
        assert certificate.n == N
        assert done.code == (0 if certificate.promises else 1), done
        return certificate.promises

    return run


def judged(delta: float) -> float:
    """Return what share of the judge's words may be false, by those that were checked."""
    return float(stats.beta.ppf(1 - delta, ERRORS + 1, N - ERRORS))


def differing(delta: float) -> float:
    """Return what share of answers may differ by the judge's own word."""
    return float(stats.beta.ppf(1 - delta, DIFFER + 1, N - DIFFER))


@pytest.mark.slow
def test_the_policy_has_what_the_judge_leaves_of_epsilon(proves: Callable[[Shares], bool]) -> None:
    edge = 0.05 + differing(DELTA - 0.03)
    assert judged(0.03) < 0.05
    assert proves(Shares(edge + HAIR, DELTA, 0.05, 0.03))
    assert not proves(Shares(edge - HAIR, DELTA, 0.05, 0.03))


@pytest.mark.slow
def test_the_policy_has_what_the_judge_leaves_of_delta(proves: Callable[[Shares], bool]) -> None:
    rare = stats.binomtest(DIFFER, N, EPSILON - 0.05, alternative="less").pvalue
    edge = 0.03 + float(rare)
    assert proves(Shares(EPSILON, edge + HAIR, 0.05, 0.03))
    assert not proves(Shares(EPSILON, edge - HAIR, 0.05, 0.03))


@pytest.mark.slow
def test_the_judge_has_its_own_share_of_both_and_no_more(
    proves: Callable[[Shares], bool],
) -> None:
    """The policy has so much that nothing hangs on it."""
    edge = judged(0.02)
    assert proves(Shares(0.4, 0.4, edge + HAIR, 0.02))
    assert not proves(Shares(0.4, 0.4, edge - HAIR, 0.02))
    rare = float(stats.binomtest(ERRORS, N, 0.03, alternative="less").pvalue)
    assert proves(Shares(0.4, 0.4, 0.03, rare + HAIR))
    assert not proves(Shares(0.4, 0.4, 0.03, rare - HAIR))

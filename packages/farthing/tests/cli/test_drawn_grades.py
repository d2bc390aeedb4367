"""Grades count where chance drew them: those of other questions change nothing of a certificate."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from told_pool import both, records, write

import farthing as ft
from farthing.traces import splits as sampling

Farthing = Callable[..., Any]
N = 200
IDS = np.array([f"held-{i}" for i in range(N)])
SEED, PROBABILITY, PAIRS = 3, 0.4, 60
Line = Mapping[str, object]


@pytest.fixture
def certified(farthing: Farthing) -> Callable[..., dict[str, Any]]:
    """Return what `farthing calibrate` certifies by lines of grades, but for their fingerprint."""
    train, test = (records(part, both(60), split=part) for part in ("train", "test"))
    held = records("held", both(N, lost=12), split="calibrate")
    for record in held:
        del record["gold"]
    traces = write(Path("logs.jsonl"), train, held, test)
    common = ("--bundle", "b", "--traces", traces, "--grades", "grades.jsonl")

    trained = ("--policy", "always-small", "--grade", "same as large", "--out", "b")
    assert farthing("train", "--traces", traces, *trained).code == 0

    def run(lines: Iterable[Line], *asked: object) -> dict[str, Any]:
        Path("grades.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        done = farthing("calibrate", *common, "--reference", "large", *asked)
        assert done.code in {0, 1}, done
        certificate = ft.load("b").certificate
        assert certificate is not None
        said: dict[str, Any] = certificate.to_json()
        return {name: each for name, each in said.items() if name != "fingerprint"}

    return run


def golds(wrong: Sequence[str]) -> list[Line]:
    """Return what persons accept: `yes`, but of some questions what nobody said."""
    plan = {"kind": "draw", "seed": SEED, "probability": PROBABILITY}
    return [
        plan,
        *({"kind": "gold", "id": i, "gold": ["neither" if i in wrong else "yes"]} for i in IDS),
    ]


@pytest.mark.slow
def test_parity_by_lot_reads_the_grades_of_drawn_questions_alone(
    certified: Callable[..., dict[str, Any]],
) -> None:
    asked = ("--promise", "parity", "--epsilon", "0.2", "--delta", "0.1")
    drawn = sampling.sample_ids(IDS, SEED, PROBABILITY)
    found = certified(golds([]), *asked)
    promise = found["promise"]
    assert promise["sample"]["questions"] == int(drawn.sum())
    assert promise["sample"]["probability"] == PROBABILITY
    assert promise["point"] == 0
    lost = np.arange(N) < 12
    assert certified(golds(IDS[~drawn].tolist()), *asked) == found
    assert certified(golds(IDS[~drawn & lost].tolist()), *asked) == found
    # Where nobody lost anything that was drawn nothing is lost; where all did nothing is proved.
    tight = ("--promise", "parity", "--epsilon", "0.07", "--delta", "0.1")
    assert certified(golds([]), *tight)["promise"]["point"] is None
    assert certified(golds(IDS[drawn & lost].tolist()), *tight)["promise"]["point"] == 0


def sames(confirmed: Sequence[bool]) -> list[Line]:
    """Return what a judge calls the same, everything, and what persons confirm of that."""
    said = {"kind": "same", "reference": "large", "answer": "small", "same": True}
    persons = [said | {"id": IDS[i]} for i in range(12) if confirmed[i]]
    judge = [said | {"id": IDS[i], "judge": "j"} for i in range(12)]
    return [{"kind": "pairs", "seed": SEED, "number": PAIRS, "judge": "j"}, *judge, *persons]


@pytest.mark.slow
def test_a_judge_is_checked_on_the_questions_that_were_drawn_alone(
    certified: Callable[..., dict[str, Any]],
) -> None:
    """Small and large differ in words on twelve questions, of which chance draws some."""
    levels = ("--promise", "agreement", "--epsilon", "0.2", "--delta", "0.2")
    asked = (*levels, "--judge-epsilon", "0.1", "--judge-delta", "0.1")
    drawn = np.isin(np.arange(12), sampling.order(IDS, SEED)[:PAIRS])
    assert 0 < drawn.sum() < 12

    def judged(confirmed: Sequence[bool]) -> tuple[int, int]:
        found = certified(sames(confirmed), *asked)["promise"]["judge"]
        return found["checked"], found["errors"]

    assert judged([True] * 12) == judged(drawn.tolist()) == (PAIRS, 0)
    assert judged((~drawn).tolist()) == judged([False] * 12) == (PAIRS, int(drawn.sum()))

"""What `recommend` of a selective promise costs, with the reference's price for what is withheld.

    .venv/bin/python benchmarks/selective_recommended.py ../shared/data/traces [--draws 20]
        [--alphas 0.1,0.2] [--only NAME]

Of the answers given 1 - alpha are to be right, at confidence 0.9. Draws are those of
`benchmarks/recommend.py --pooled`: 500 test questions are withheld from `recommend`, and its bundle
is played on them. A question without an answer costs the reference's price, but where that was
asked already; costs are shares of asking the reference everything. Where nothing is proved the
reference answers everything.
"""

import argparse
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

import numpy as np
from recommend import DELTA, FILES, POOLED, Draw, draws
from recordings import needed

from farthing.errors import UnprovedError
from farthing.methods.base import Dataset
from farthing.methods.selective.policy import SelectivePolicy
from farthing.promises.kinds.selective import Selective
from farthing.recommendation.bundle_run import run_bundle
from farthing.recommendation.escalation import EscalationModel
from farthing.recommendation.metrics import stream
from farthing.recommendation.played import ReportingQuestions
from farthing.recommendation.recommend import recommend
from farthing.recommendation.splits import as_played
from farthing.traces.arrays import NO_SPLIT, TraceArrays
from farthing.traces.assemble import load


@dataclass(frozen=True)
class Outcome:
    """What came of one draw."""

    cost: float
    """Of all questions, as a share of asking the reference everything."""
    given: float
    """Share of the questions that are answered."""
    right: float
    """Share of those answers that is right; NaN where none is given."""
    proved: bool


def play(traces: TraceArrays, draw: Draw, strong: str, alpha: Fraction, seed: int) -> Outcome:
    """Recommend from the known questions, and play the test questions."""
    forgotten = replace(traces, split=np.full(len(traces), NO_SPLIT, dtype=np.int8))
    known, test = Dataset("", forgotten.take(draw.known)), traces.take(draw.test)
    try:
        found = recommend(known, Selective(1 - alpha, DELTA), reference=strong, seed=seed)
    except UnprovedError:
        return Outcome(1.0, 0.0, np.nan, proved=False)
    bundle = found.bundle
    part = ReportingQuestions(test, as_played("the test questions", bundle, test))
    done = run_bundle(bundle, part, stream(bundle.kind, seed))
    assert isinstance(bundle.policy, SelectivePolicy)
    theirs, given = EscalationModel.of(part, strong), done.set_size > 0
    extra = theirs.extra_nano(bundle.policy.calls_made(part.played))
    whole = done.cost_nano + np.where(given, 0, extra)
    right = float(done.best_correct[given].mean()) if given.any() else np.nan
    cost = float(whole.sum() / theirs.cost_nano.sum())
    return Outcome(cost, float(given.mean()), right, proved=True)


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("--draws", type=int, default=20)
    arguments.add_argument("--alphas", default="0.1,0.2")
    arguments.add_argument("--only", default="")
    given = arguments.parse_args()
    names = [n for n in FILES if given.only in n and (given.only or n not in POOLED)]
    needed(*(given.folder / f"{name}.jsonl.gz" for name in names))
    print(
        "| | alpha | cost | answered | right | proved |\n| --- | ---: | ---: | ---: | ---: | ---: |"
    )
    for name in names:
        traces = load(given.folder / f"{name}.jsonl.gz")
        for alpha in map(Fraction, given.alphas.split(",")):
            each = [
                play(traces, draw, FILES[name], alpha, seed)
                for seed, draw in enumerate(draws(traces, given.draws, pooled=True))
            ]
            cost = np.array([one.cost for one in each])
            error = cost.std(ddof=1) / np.sqrt(len(cost)) if len(cost) > 1 else np.nan
            print(
                f"| {name} | {float(alpha):g} | {cost.mean():.3f} ± {error:.3f} "
                f"| {np.mean([one.given for one in each]):.3f} "
                f"| {np.nanmean([one.right for one in each]):.3f} "
                f"| {np.mean([one.proved for one in each]):.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()

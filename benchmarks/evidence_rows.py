"""Which row of models is worth a proof, by training questions: what the score should read.

    .venv/bin/python benchmarks/evidence_rows.py ../shared/data/traces [--draws 16] [--first 100]

300 questions train the evidence cascade's rows, 500 test, the others prove parity at confidence
0.9. Each score picks a row by training questions; the row is proved at all of delta, and its cost
is that of the proved point, or of the strong model, on test questions. Costs are shares of the
strong model's. Beside them the best of twelve likely rows in hindsight, and the cheapest proved of
three methods side by side, at three fifths, a quarter and three twentieths of delta.
"""

import argparse
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
from recordings import needed

from farthing.methods.cascades.conformal_arbitrage import ArbitrageLearner
from farthing.methods.evidence.learner import TriedRow, _Lesson
from farthing.methods.pool import PoolPolicy
from farthing.methods.routers.pool_gain import PoolGainLearner
from farthing.promises.chains import prove_all
from farthing.promises.paired import Paired, parity_proved
from farthing.promises.statistics.cross_fitted import CrossFitted
from farthing.traces.arrays import TraceArrays
from farthing.traces.assemble import load

FILES = {
    "mmlu-nine-models": "gpt-4o",
    "medmcqa-nine-models": "gpt-4o",
    "zeroeval-ten-models": "gpt-4o-2024-08-06",
}
TRAIN, TEST, LIKELY = 300, 500, 12
DELTA = Fraction(1, 10)
EPSILONS = (0.0, 0.01, 0.02)
SCORES: dict[str, Callable[[CrossFitted], CrossFitted]] = {
    "losses seen": lambda row: replace(row, expected=None),
    "losses expected": lambda row: replace(
        row, expected=None if row.expected is None else 2 * row.expected - row.lost + row.won
    ),
    "half of each": lambda row: row,
}
Found = tuple[float, float]
"""Cost on the proving questions, and on those to test."""


def points(policy: PoolPolicy, traces: TraceArrays, place: int, last: int) -> tuple[Paired, Paired]:
    """Return a policy's points down from one, on the proving questions and on those to test."""
    found = policy.points(traces)
    right, alone = traces.correct[:, 0, place], traces.cost_nano[:, 0, place]
    cost, correct = found.cost_nano[:, : last + 1], found.correct[:, : last + 1]
    both = (slice(None, -TEST), slice(-TEST, None))
    return tuple(  # type: ignore[return-value]
        Paired(cost[rows], correct[rows], right[rows], reference_nano=alone[rows]) for rows in both
    )


def cheapest(
    proof: Paired, test: Paired, epsilon: float, delta: Fraction
) -> tuple[Found | None, bool]:
    """Return what the cheapest proved point costs, None if none is, and whether all are proved."""
    proved = parity_proved(proof, epsilon, delta)
    spent = np.where(proved, proof.cost_nano.mean(axis=0), np.inf)
    point = int(spent.argmin())
    if not spent[point] < proof.reference_nano.mean():
        return None, bool(proved.all())
    return (float(spent[point]), float(test.cost_nano[:, point].mean())), bool(proved.all())


def side_by_side(chains: list[tuple[Paired, Paired]], epsilon: float) -> Found | None:
    """Return what the cheapest of three methods costs that are proved at their shares of delta."""
    found: dict[int, Found | None] = {}

    def prove(place: int, share: Fraction) -> bool:
        found[place], passed = cheapest(*chains[place], epsilon, DELTA * share)
        return passed

    prove_all([Fraction(3, 5), Fraction(1, 4), Fraction(3, 20)], prove)
    return min((each for each in found.values() if each is not None), default=None)


def one_draw(traces: TraceArrays, strong: str, seed: int) -> dict[tuple[str, float], float]:
    """Return the costs of one draw, as shares of the strong model's."""
    train, rest = np.split(np.random.default_rng(seed).permutation(len(traces)), [TRAIN])
    place, taught, others = (
        traces.roles.index(strong),
        traces.take(np.sort(train)),
        traces.take(rest),
    )
    proving, paid = len(rest) - TEST, float(others.cost_nano[-TEST:, 0, place].mean())
    lesson = _Lesson.of(taught, place, seed)
    rows, known = list(lesson.rows()), dict[int, tuple[Paired, Paired]]()

    def of_row(row: TriedRow, epsilon: float) -> tuple[Paired, Paired]:
        useful = row.figures.cost < 1
        start = row.figures.start(epsilon, useful, proving)
        if id(row) not in known:
            known[id(row)] = points(lesson.policy(row), others, place, len(useful) - 1)
        return tuple(cut(each, start) for each in known[id(row)])  # type: ignore[return-value]

    found = {}
    plain = [learner(strong).learn(taught, seed) for learner in (PoolGainLearner, ArbitrageLearner)]
    beside = [points(policy, others, place, len(policy.values) - 1) for policy in plain]
    for epsilon in EPSILONS:
        for name, read in SCORES.items():
            ranked = sorted(rows, key=lambda row: read(row.figures).score(epsilon, proving))
            first = of_row(ranked[0], epsilon)
            proved = cheapest(*first, epsilon, DELTA)[0]
            found[name, epsilon] = proved[1] / paid if proved else 1.0
            if name == "half of each":
                tried = [
                    cheapest(*of_row(row, epsilon), epsilon, DELTA)[0] for row in ranked[:LIKELY]
                ]
                found["hindsight", epsilon] = min(
                    [each[1] / paid for each in tried if each] + [1.0]
                )
                together = side_by_side([first, *beside], epsilon)
                found["side by side", epsilon] = together[1] / paid if together else 1.0
    return found


def cut(paired: Paired, last: int) -> Paired:
    """Return the points up to one."""
    cost, correct = paired.cost_nano[:, : last + 1], paired.correct[:, : last + 1]
    return replace(paired, cost_nano=cost, correct=correct)


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("--draws", type=int, default=16)
    arguments.add_argument("--first", type=int, default=100, help="seed of the first draw")
    given = arguments.parse_args()
    needed(*(given.folder / f"{name}.jsonl.gz" for name in FILES))
    for name, strong in FILES.items():
        traces = load(given.folder / f"{name}.jsonl.gz")
        found: dict[tuple[str, float], list[float]] = defaultdict(list)
        for seed in range(given.first, given.first + given.draws):
            for key, share in one_draw(traces, strong, seed).items():
                found[key].append(share)
        for epsilon in EPSILONS:
            said = (
                f"{key} {np.mean(found[key, epsilon]):.3f}" for key, at in found if at == epsilon
            )
            print(f"{name}, epsilon {epsilon:g}: {', '.join(said)}", flush=True)


if __name__ == "__main__":
    main()

"""How many questions are answered where answers must be right, and who should be tested for it?

The policy as trained, made to say how sure it is; one model that is named; and the candidates that
training questions think best: one with all of delta, or several with equal shares of it.

    python benchmarks/selective.py --traces FILE [--policies lazy] [--alphas 0.1,0.2] [--marked]
"""

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np
from recordings import needed

from farthing.methods.base import Dataset, Silent
from farthing.methods.selective.learner import SelectiveFit
from farthing.methods.selective.single_models import considered
from farthing.process.batch_replay import replay
from farthing.promises.kinds.selective import Selective
from farthing.recommendation import prove_selective
from farthing.recommendation.candidates import single_candidate
from farthing.recommendation.played import PlayedPolicy, Questions
from farthing.traces.arrays import SPLITS, TraceArrays
from farthing.traces.files import read_arrays

DELTA = Fraction(1, 10)
TESTED = (1, 2, 4, 99)
"""Numbers of candidates that are tested together; the last stands for all."""
Found = tuple[bool, float, float, float, str]
"""Whether anything is proved; share answered; of those right (NaN where none); USD; by whom."""


def divisions(
    traces: TraceArrays, number: int, *, marked: bool
) -> Iterator[tuple[int, list[TraceArrays]]]:
    """Divide questions anew: into training, of the marked size, and equal halves of the rest.

    With `marked`, the marked questions train each time.
    """
    own = np.flatnonzero(traces.split == SPLITS.index("train"))
    size = own.size or int(0.6 * len(traces))
    for seed in range(number):
        rng = np.random.default_rng(seed)
        order = rng.permutation(len(traces))
        if marked:
            order = np.append(own, rng.permutation(np.setdiff1d(order, own)))
        held = (len(order) - size) // 2
        parts = np.split(order, [size, size + held])
        yield seed, [traces.take(rows) for rows in parts]


def proved(
    tested: Sequence[SelectiveFit], asked: Selective, held: Questions, new: TraceArrays
) -> Found:
    """Prove what can be proved, and act on new questions."""
    plays = PlayedPolicy(tested[0].policy, "allow", None)
    made = prove_selective.prove_candidates(asked, tested, plays, held)
    certificate = made.certificate
    found = replay(made.policy, new, "allow").act(certificate.kappa or 1.0)
    given = found.set_size > 0 if certificate.promises else np.zeros(len(new), dtype=bool)
    right = float(found.best_correct[given].mean()) if given.any() else np.nan
    name = getattr(certificate.promise, "candidate", "") or "nobody"
    return certificate.promises, float(given.mean()), right, found.cost_nano.mean() / 1e9, name


def ways(all_of: Sequence[SelectiveFit], asked: Selective, train: Questions, n: int, alone: str):
    """Return who is tested, by how that is chosen."""
    yield "as trained", all_of[:1]
    named = [one for one in all_of if one.name == f"{alone}, by its confidence"]
    if named:
        yield f"{alone} alone", named
    best = prove_selective.best_first(all_of, asked, train, n)
    for number in TESTED:
        yield f"best {number}" if number < 99 else "all", best[:number]


def row(name: str, found: Sequence[Found], alpha: Fraction) -> str:
    """Return the means of one way as a row of a table."""
    table = np.array([one[:4] for one in found], dtype=float)
    share, right = table[:, 1], table[:, 2]
    error = share.std(ddof=1) / np.sqrt(len(share))
    known = right[~np.isnan(right)]
    below = (known < 1 - alpha).sum() / len(right)
    whom = ", ".join(f"{who} ({n})" for who, n in Counter(one[4] for one in found).most_common(2))
    usd = table[:, 3].mean()
    return (
        f"| {name} | {table[:, 0].mean():.2f} | {share.mean():.3f} ± {error:.3f} | "
        f"{known.mean() if known.size else np.nan:.3f} | {below:.2f} | {1e3 * usd:.3f} | "
        f"{share.mean() / usd:,.0f} | {whom} |"
    )


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--traces", type=Path, required=True)
    parser.add_argument("--policies", default="lazy")
    parser.add_argument("--alphas", default="0.1,0.2")
    parser.add_argument("--alone", default="gpt-4o", help="a model to compare with")
    parser.add_argument("--marked", action="store_true", help="train on the marked questions")
    parser.add_argument("--divisions", type=int, default=40)
    args = parser.parse_args()
    needed(args.traces)
    print("| tested | proved | answered | right | below | USD/1k | answers/USD | whom |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for name in args.policies.split(","):
        dataset = Dataset("", read_arrays(args.traces))
        candidate, learner = single_candidate(dataset, name)
        traces = dataset.arranged(candidate.method.space)
        for alpha in map(Fraction, args.alphas.split(",")):
            asked, rows = Selective(1 - alpha, DELTA), {}
            for seed, (train, held, new) in divisions(traces, args.divisions, marked=args.marked):
                if seed == 0 or not args.marked:
                    policy = learner.fit(train, Fraction(1, 10), seed, Silent()).policy
                    all_of = considered(policy, train, candidate.empty, alpha)
                part = Questions(train, train)
                for way, tested in ways(all_of, asked, part, len(held), args.alone):
                    rows.setdefault(way, []).append(
                        proved(tested, asked, Questions(held, held), new)
                    )
            print(f"{name}, alpha {float(alpha)}, {len(train)}, {len(held)}, {len(new)} questions")
            for way, found in rows.items():
                print(row(way, found, alpha), flush=True)


if __name__ == "__main__":
    main()

"""Is CCPO, or a controller, learned sooner where the horizon grows with what is mastered?

    .venv/bin/python benchmarks/discount.py ccpo [--seeds 3] [--updates 2000]
    .venv/bin/python benchmarks/discount.py recorded TRACES [--alpha 1/5] [--seeds 3]
    .venv/bin/python benchmarks/discount.py corl OUT [--seeds 2] [--updates 16]

`rl/discount.py` beside no discount, with a tenth, a quarter and all of the updates; paired by seed.
`ccpo`: the generator; cost over the known optimum's at the same coverage, of two presets at two
levels. `recorded`: half of the questions train, and cost at the coverage is measured on the other
half, where no optimum is known, in USD per 1,000. `corl`: pool `two`, by a value model; the reward
of fresh questions in each of three modes, by likeliest tokens.
"""

import argparse
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import torch
from recordings import needed

from farthing.methods.base import Silent
from farthing.traces.arrays import FloatArray, TraceArrays
from farthing.traces.files import read_arrays
from farthing.traces.pool import in_turn, is_thought
from farthing_lab.comparison.thresholded import at_coverage
from farthing_lab.corl.evaluation import evaluate
from farthing_lab.corl.learner import TrainingSchedule
from farthing_lab.corl.pool import built_in
from farthing_lab.corl.rollouts import PoolSession
from farthing_lab.corl.training import TrainingPlan, train
from farthing_lab.generator.generate import generate
from farthing_lab.generator.optimum import optimal_cost
from farthing_lab.generator.presets import preset
from farthing_lab.lm.masked_ppo import Settings
from farthing_lab.methods.ccpo.learner import CcpoConfig, CcpoLearner
from farthing_lab.reports.corl import evaluation_record
from farthing_lab.rl.discount import Discount

PRESETS = ("hotpotqa-llama2-7b", "mmlu-llama3.2-3b")
ALPHAS = (Fraction(1, 20), Fraction(1, 10))
SHARES = (0.1, 0.25, 1.0)
KINDS: tuple[Discount, ...] = ("fixed", "automatic")
TRAIN, FRESH = 1_000, 100_000


@cache
def generated(name: str, n: int, seed: int, part: int) -> TraceArrays:
    return generate(preset(name).config, n, np.random.default_rng([seed, part]))


def cost_at(
    config: CcpoConfig, known: TraceArrays, fresh: TraceArrays, alpha: Fraction, seed: int
) -> float:
    """Train, and return the cost on fresh questions at the coverage, in USD."""
    fitted = CcpoLearner(config).fit(known, alpha, seed, Silent())
    grown = fitted.curves.get("mastered")
    if grown is not None:
        steps = [int((grown < k).sum()) for k in range(2, int(grown.max()) + 1)]
        print(f"  updates until each further round: {steps}", flush=True)
    return at_coverage(fitted.policy, fresh, float(1 - alpha), "argmax")["cost_usd"]


def over_optimum(config: CcpoConfig, name: str, alpha: Fraction, seed: int) -> float:
    """Return the cost of a training on the generator over the known optimum's."""
    known, fresh = generated(name, TRAIN, seed, 1), generated(name, FRESH, seed, 2)
    best = optimal_cost(preset(name).config, float(1 - alpha))
    return cost_at(config, known, fresh, alpha, seed) / best


def cost_recorded(file: Path, alpha: Fraction, config: CcpoConfig, seed: int) -> float:
    """Train on half of recorded questions, and return the cost on the others, in USD per 1,000."""
    traces = read_arrays(file)
    traces = in_turn(traces) if is_thought(traces.roles) else traces
    order = np.random.default_rng([seed, 3]).permutation(len(traces))
    known, fresh = (traces.take(np.sort(half)) for half in np.array_split(order, 2))
    return 1_000 * cost_at(config, known, fresh, alpha, seed)


def reward_of(out: Path, updates: int, kind: Discount, seed: int) -> FloatArray:
    """Train a controller of pool `two`, and return the reward of its three modes."""
    course = TrainingSchedule(updates=updates, prompts=32)
    settings = Settings(advantage="gae", minibatch=16, discount=kind)
    plan = TrainingPlan(course=course, settings=settings, seed=seed)
    with PoolSession.of(built_in("two")) as opened:
        train(opened, plan, out / f"{kind}-{updates}-{seed}")
        found = evaluation_record(evaluate(opened, 300, seed=100 + seed))
    modes = found["modes"].values()
    print("  calls", [round(mode["call_ratio"], 3) for mode in modes], flush=True)
    return np.array([mode["reward"] for mode in modes])


def compared(updates: int, of: Callable[[int, Discount, int], FloatArray], seeds: int) -> None:
    """Print what each kind comes to, and the differences of pairs, each with their mean."""
    of_kind = {kind: np.array([of(updates, kind, seed) for seed in range(seeds)]) for kind in KINDS}
    for kind, found in of_kind.items():
        print(
            f"{updates:5}  {kind:9} {found.mean():.4f}  {np.round(found, 3).tolist()}", flush=True
        )
    apart = of_kind["automatic"] - of_kind["fixed"]
    error = apart.std(ddof=1) / np.sqrt(apart.size)
    print(f"{updates:5}  automatic less fixed {apart.mean():+.4f} ± {error:.4f}", flush=True)


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("of", choices=("ccpo", "recorded", "corl"))
    arguments.add_argument("path", type=Path, nargs="?", help="TRACES or OUT")
    arguments.add_argument("--updates", type=int)
    arguments.add_argument("--alpha", type=Fraction, default=Fraction(1, 5))
    arguments.add_argument("--seeds", type=int, default=3)
    given = arguments.parse_args()
    torch.set_num_threads(1)
    whole = given.updates or (16 if given.of == "corl" else 2_000)

    def figures(updates: int, kind: Discount, seed: int) -> FloatArray:
        config = CcpoConfig(updates=updates, discount=kind)
        if given.of == "ccpo":
            settings = product(PRESETS, ALPHAS)
            return np.array([over_optimum(config, *setting, seed) for setting in settings])
        if given.of == "recorded":
            return np.array([cost_recorded(given.path, given.alpha, config, seed)])
        return reward_of(given.path, updates, kind, seed)

    if given.of != "ccpo" and given.path is None:
        arguments.error(f"{given.of} needs a path")
    if given.of == "recorded":
        needed(given.path)
    for share in SHARES:
        compared(round(share * whole), figures, given.seeds)


if __name__ == "__main__":
    main()

"""The trainings of a comparison: each is run once, whoever shares it."""

import os
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import product

from farthing.methods.base import Dataset, Fitted
from farthing.methods.cards import cards
from farthing.recommendation.base import Candidate, Watch
from farthing.recommendation.candidates import tried_for
from farthing.traces.arrays import IntArray
from farthing_lab.comparison.collect_on_ray import preload_on_ray, train_on_ray
from farthing_lab.comparison.parallel import Job, preload, train_all
from farthing_lab.comparison.plan import Plan

READY = {"processes": preload, "ray": preload_on_ray}
"""What lets each engine's workers begin to load."""
ENGINES = {"processes": train_all, "ray": train_on_ray}
"""Where trainings run: on this machine, or on a Ray cluster."""
INTERRUPTED = "its training was interrupted"


def preload_workers(plan: Plan, dataset: Dataset) -> None:
    """Start to load what workers will need, where there will be any."""
    named = plan.policies is not None and not plan.everyone
    several = not named or len(plan.policies or ()) * len(plan.alphas) * plan.seeds > 1
    workers = plan.workers or cores()
    if plan.policies is None:
        methods = tried_for(dataset, plan.gives)
    else:
        methods = [
            one
            for one in cards()
            if plan.everyone or any(name.startswith(one.name) for name in plan.policies)
        ]
    modules = {module for method in methods for module in method.training_modules}
    if several and workers > 1 and modules:
        READY[plan.engine](sorted(modules), workers)


def cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


Trained = Callable[[Candidate, Fraction], list[Fitted | None]]
"""What a candidate's trainings at one alpha left, a seed each; None where one was interrupted."""


def train(
    chosen: Sequence[Candidate], plan: Plan, dataset: Dataset, rows: IntArray, watch: Watch
) -> Trained:
    """Run each training once, whoever shares it; those of one arrangement side by side."""
    done: dict[tuple[object, ...], Fitted | None] = {}
    for in_pool in (False, True):
        jobs: dict[tuple[object, ...], Job] = {}
        mine = [one for one in chosen if (one.method.space == "pool") == in_pool]
        for candidate, alpha, seed in product(mine, plan.alphas, plan.seeds_used):
            if candidate.learner is None:
                continue
            varies, parts = candidate.varies_with, [candidate.name]
            parts += [f"alpha {float(alpha):g}"] * ("alpha" in varies)
            parts += [f"seed {seed}"] * ("seed" in varies)
            job = Job(", ".join(parts), candidate.learner, alpha, seed, not varies)
            jobs.setdefault(_key(candidate, alpha, seed), job)
        questions = dataset.arranged("pool" if in_pool else "rounds").take(rows)
        found = ENGINES[plan.engine](list(jobs.values()), questions, plan.workers or cores(), watch)
        done |= dict(zip(jobs, found, strict=True))
    return lambda candidate, alpha: [
        done.get(_key(candidate, alpha, seed)) for seed in plan.seeds_used
    ]


def _key(candidate: Candidate, alpha: Fraction, seed: int) -> tuple[object, ...]:
    """Return what a training depends on: those that share it are one."""
    varies = candidate.varies_with
    return (
        id(candidate.learner),
        alpha if "alpha" in varies else None,
        seed if "seed" in varies else None,
    )

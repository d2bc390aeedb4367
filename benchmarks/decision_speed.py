"""How long does one decision take? Of every method that serves.

    python benchmarks/decision_speed.py [--decisions 500] [--only lookahead lazy]

Each decides about one question at a time, as live, and about a thousand at once, on the same
made-up questions, in microseconds: by the clock, and of processor time, which other work on the
machine stretches less. Features, forests and networks have the sizes that training by default
gives them; networks are trained for one update, which changes no size. Methods over a pool decide
at the operating point in the middle, about nine models; the last column is what each point of each
question takes when all points of a thousand are worked out at once.
"""

import argparse
import time
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

import numpy as np
from fit_speed import pool

from farthing.methods.base import Dataset, Method
from farthing.methods.cards import cards
from farthing.methods.pool import PoolPolicy
from farthing.process.base import Policy, State
from farthing.process.play import begin, initial_state
from farthing.traces.arrays import TraceArrays
from farthing_lab.generator.generate import generate
from farthing_lab.generator.presets import preset

PRESET = "hotpotqa-llama2-7b"
TRAIN = AT_ONCE = 1_000
TEXT = "Which of the following is true of the {} of a {} when the {} is held constant?"
WORDS = ("pressure", "matrix", "river", "contract", "enzyme", "treaty", "prime", "novel")
WARM_UP = 20


class Brief:
    """Ends long trainings at their first report."""

    def update(self, done: int, total: int, figures: Mapping[str, float]) -> None:  # noqa: ARG002
        """Show nothing."""
        if total > 100:
            raise KeyboardInterrupt


def questions(seed: int) -> TraceArrays:
    """Return made-up questions whose calls did not see one another, so that some can be skipped."""
    traces = generate(preset(PRESET).config, TRAIN, np.random.default_rng(seed))
    return replace(traces, independent=np.ones(TRAIN, dtype=bool))


def pooled(seed: int) -> TraceArrays:
    """Return made-up questions, with texts, to each of nine models."""
    rng = np.random.default_rng(seed)
    texts = [TEXT.format(*rng.choice(WORDS, 3)) for _ in range(TRAIN)]
    return replace(pool(TRAIN, rng), question=np.array(texts, dtype=object))


def states(policy: Policy, traces: TraceArrays, turns: int, rng: np.random.Generator) -> State:
    """Return questions after so many purchases, made at random where there are several lines."""
    state = replace(begin(traces, policy), parameter=0.5)
    for _ in range(turns):
        chance = rng.random(state.can_buy.shape) * state.can_buy
        state = state.buying(chance.argmax(axis=1))
    return initial_state(state)


def took(policy: Policy, state: State) -> tuple[float, float]:
    """Return microseconds, by clock and processor, to decide about a state not yet looked at."""
    fresh = replace(state)
    start = time.perf_counter_ns(), time.thread_time_ns()
    policy.decide(fresh)
    return (time.perf_counter_ns() - start[0]) / 1e3, (time.thread_time_ns() - start[1]) / 1e3


def of_points(policy: Policy, traces: TraceArrays) -> str:
    """Return microseconds of processor for each point of each question."""
    if not isinstance(policy, PoolPolicy):
        return ""
    start = time.thread_time_ns()
    policy.points(traces)
    taken = (time.thread_time_ns() - start) / 1e3
    return f"{taken / len(traces) / len(policy.values):.2f}"


def measure(method: Method, policy: Policy, traces: TraceArrays, decisions: int) -> str:
    """Return one row of the table."""
    rng = np.random.default_rng(0)
    steps = begin(traces, policy).space.steps
    alone = []
    for i in range(decisions + WARM_UP):
        one = traces.take(rng.integers(0, len(traces), 1))
        alone.append(took(policy, states(policy, one, 1 + i % (steps - 1), rng)))
    (clock, busy), (late, busy_late) = np.percentile(alone[WARM_UP:], [50, 99], axis=0)
    together = [took(policy, states(policy, traces, turns, rng)) for turns in range(1, steps)]
    each = np.median(together, axis=0) / AT_ONCE
    alone_in_words = f"{clock:,.0f}, {late:,.0f} | {busy:,.0f}, {busy_late:,.0f}"
    at_once = f"{each[0]:.1f} | {each[1]:.1f} | {of_points(policy, traces)}"
    return f"| {method.name} | {alone_in_words} | {at_once} |"


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--decisions", type=int, default=500)
    parser.add_argument("--only", nargs="*")
    chosen = parser.parse_args()
    config = preset(PRESET).config
    rounds, models = Dataset(PRESET, questions(0), config, PRESET), Dataset("pool", pooled(0))
    print(
        f"| method | one, clock: median, 99th % | processor | each of {AT_ONCE:,} | processor "
        "| each point |"
    )
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for method in cards():
        if not method.replayable or (chosen.only and method.name not in chosen.only):
            continue
        in_pool = method.space == "pool"
        dataset, fresh = (models, pooled(1)) if in_pool else (rounds, questions(1))
        for variant in method.on(dataset)[-1:]:
            if variant.learner is not None:
                fitted = variant.learner.fit(dataset.traces, Fraction(1, 10), 0, Brief())
                print(measure(method, fitted.policy, fresh, chosen.decisions), flush=True)


if __name__ == "__main__":
    main()

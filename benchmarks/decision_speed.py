"""How long does one decision take? In plain Python, in arrays, and scikit-learn's prediction.

    python benchmarks/decision_speed.py [TRACES] [--decisions 2000]

Times every way on the same states of the same questions, in microseconds: by the
clock, and of processor time, which other work on the machine stretches less.
"""

import argparse
import time
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np
from farthing.methods.lookahead.decide import Decider
from sklearn.ensemble import ExtraTreesClassifier

from farthing.methods.lookahead.learner import LAZY, LookaheadConfig, LookaheadLearner
from farthing.methods.lookahead.policy import LookaheadPolicy, outlooks
from farthing.process.action_space import protocol
from farthing.process.generator.generate import generate
from farthing.process.generator.presets import preset
from farthing.traces.arrays import FloatArray, TraceArrays
from farthing.traces.assemble import cascade, load
from farthing.traces.shapes import PROTOCOL_ROLES

RECORDED = Path(__file__).parents[1] / "../shared/data/traces/reasoning-llama2-13b-gpt4.jsonl.gz"
PRESET = "hotpotqa-llama2-7b"
TRAIN = 1_000
AT_ONCE = 1_000


class Silent:
    """Shows no progress."""

    def update(self, done: int, total: int, figures: object) -> None:
        """Show nothing."""


def timed(work: Callable[[int], object], times: int) -> FloatArray:
    """Return microseconds of each call by the clock and of the processor, [times, 2]."""
    found = np.empty((times, 2))
    for i in range(times):
        start = time.perf_counter_ns(), time.thread_time_ns()
        work(i)
        found[i] = time.perf_counter_ns() - start[0], time.thread_time_ns() - start[1]
    return found / 1e3


def measure(label: str, config: LookaheadConfig, traces: TraceArrays, decisions: int) -> None:
    """Print one row a way of deciding."""
    train, rest = traces.take(np.arange(TRAIN)), traces.take(np.arange(TRAIN, len(traces)))
    start = time.perf_counter()
    policy = LookaheadLearner(config).fit(train, Fraction(1, 10), 0, Silent()).policy
    fitting = time.perf_counter() - start
    assert isinstance(policy, LookaheadPolicy)
    rules, rng = protocol(config.rules, traces), np.random.default_rng(0)
    row = rng.integers(0, len(rest), decisions)
    bought = rng.integers(0, rules.items + 1, (decisions, rules.lines))
    bought[bought.sum(axis=1) == rules.steps] = 0
    bought[:, 0] = np.maximum(bought[:, 0], 1)
    bought[bought.sum(axis=1) == rules.steps, 0] -= 1
    answers = [rest.answer[q].ravel().tolist() for q in range(len(rest))]
    signals = [
        {name: values[q].ravel().tolist() for name, values in rest.signals.items()}
        for q in range(len(rest))
    ]
    state = bought.tolist()
    decider = Decider(policy)
    seen = policy.features.look(rest, row, rules.seen(bought))
    model = ExtraTreesClassifier(config.trees, min_samples_leaf=config.leaf, random_state=0)
    model.fit(seen, rng.random(decisions) < 0.5)

    def arrays(index: Sequence[int] | slice) -> object:
        asked, cases = rest.take(row[index]), np.arange(len(row[index]))
        looked = policy.features.look(asked, cases, rules.seen(bought[index]))
        outlook, step = outlooks(policy.latent, asked), bought[index].sum(axis=1)
        told = looked if outlook is None else outlook[cases, step]
        return policy.estimate.predict(looked, told, step)

    def alone(i: int) -> object:
        return decider.decide(state[i], answers[row[i]], signals[row[i]])

    few = max(decisions // 10, 1)
    for way, work, times in (
        ("plain Python", alone, decisions),
        ("in arrays, one at a time", lambda i: arrays([i]), few),
        ("scikit-learn, one forest", lambda i: model.predict_proba(seen[i : i + 1]), few),
    ):
        timed(work, few // 10 + 1)
        took = timed(work, times)
        (clock, busy), (clock_99, busy_99) = np.percentile(took, [50, 99], axis=0)
        print(f"| {label} | {way} | {clock:.0f}, {clock_99:.0f} | {busy:.0f}, {busy_99:.0f} |")
    clock, busy = timed(lambda _: arrays(slice(AT_ONCE)), 3).min(axis=0) / min(AT_ONCE, decisions)
    print(f"| {label} | in arrays, {AT_ONCE:,} at once | {clock:.0f} | {busy:.0f} |")
    print(f"| {label} | (fitting took {fitting:.1f} s) | | |", flush=True)


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("traces", nargs="?", type=Path, default=RECORDED)
    parser.add_argument("--decisions", type=int, default=2_000)
    chosen = parser.parse_args()
    print("| policy | way | clock: median, 99th percentile | processor: the same |")
    print("| --- | --- | --- | --- |")
    made_up = generate(preset(PRESET).config, 2 * TRAIN, np.random.default_rng(0))
    measure("lookahead", LookaheadConfig(), made_up, chosen.decisions)
    if not chosen.traces.exists():
        print(f"{chosen.traces} is not there; name a file of independent traces")
        return
    recorded = load(chosen.traces)
    if recorded.horizon == 1 and recorded.roles != PROTOCOL_ROLES:
        recorded = cascade(recorded)
    measure("lazy", LAZY, recorded, chosen.decisions)


if __name__ == "__main__":
    main()

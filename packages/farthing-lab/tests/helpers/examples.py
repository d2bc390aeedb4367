"""Policies of every method, and questions of every shape to ask them about."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import pairwise

import numpy as np

from farthing.features.rounds import FeatureSet
from farthing.methods.base import Method, Saveable, Silent
from farthing.methods.baselines.fixed import FixedDepthPolicy
from farthing.methods.cards import cards
from farthing.methods.lookahead.learner import LookaheadConfig, LookaheadLearner
from farthing.methods.lookahead.policy import LookaheadPolicy
from farthing.methods.selective.confidence import AnswerAgreement, OwnConfidence
from farthing.methods.selective.learner import Buying, Fit, by_votes, confident, learn
from farthing.methods.selective.policy import FixedRow, SelectivePolicy
from farthing.process.action_space import SpaceName
from farthing.process.base import Policy
from farthing.traces.arrays import PolicyReplies, TraceArrays
from farthing_lab.methods.baselines.llm_replies import LlmExitPolicy, LlmPolicy
from farthing_lab.methods.baselines.rounds import RandomPolicy
from farthing_lab.methods.baselines.uala import UalaPolicy
from farthing_lab.methods.ccpo.policy import NetworkPolicy
from farthing_lab.methods.routers.odar.learner import OdarLearner, OdarPolicy
from farthing_lab.methods.set_size_penalty import SetSizePenaltyLearner, SetSizePenaltyPolicy
from farthing_lab.methods.stopping import StoppingPolicy
from farthing_lab.methods.thinking.dtrec import STAYED, DtrecPolicy
from farthing_lab.methods.thinking.repeats import RepeatsPolicy
from farthing_lab.methods.thinking.settled import SettledPolicy

SHAPES: Mapping[str, tuple[int, tuple[str, ...]]] = {
    "talk": (4, ("base", "guide")),
    "pool": (1, ("small", "middle", "large")),
    "cascade": (5, ("model",)),
}
"""Rounds and roles of each kind of trace."""
EXIT = "exit-model"
POLICY = "policy-model"


def random_traces(seed: int, horizon: int, roles: tuple[str, ...], n: int = 40) -> TraceArrays:
    """Any questions at all, with answers and signals missing here and there, and with replies."""
    rng = np.random.default_rng(seed)
    shape = (n, horizon, len(roles))
    answer = rng.integers(-1, 4, shape).astype(np.int16)
    signals = {name: rng.random(shape).astype(np.float32) for name in ("confidence", "uncertainty")}
    signals["verdict"] = rng.integers(0, 2, shape).astype(np.float32)
    signals["input_tokens"] = rng.integers(1, 900, shape).astype(np.float32)
    for values in signals.values():
        values[rng.random(shape) < 0.2] = np.nan
    return TraceArrays(
        ids=np.array([f"q{i}" for i in range(n)]),
        roles=roles,
        models=("",) * len(roles),
        answer=answer,
        correct=answer == 0,
        cost_nano=rng.integers(1, 10**6, shape),
        signals=signals,
        group=np.full(n, -1, np.int32),
        group_names=(),
        split=np.full(n, -1, np.int8),
        recorded=np.full(n, horizon, np.int16),
        independent=np.ones(n, bool),
        replies={
            role: PolicyReplies(
                rng.integers(-1, len(roles) + 1, shape[:2]).astype(np.int8),
                rng.integers(0, 10**5, shape[:2]),
            )
            for role in (EXIT, POLICY)
        },
    )


def random_thoughts(seed: int) -> TraceArrays:
    """Any thoughts at all, their cuts in turn."""
    traces = random_traces(seed, 6, ("thought",))
    return replace(traces, cuts=True, independent=np.zeros(len(traces), bool))


def settled(traces: TraceArrays) -> SettledPolicy:
    return SettledPolicy(stopping(traces), np.linspace(0.9, 0.1, traces.horizon - 1))


def network(traces: TraceArrays) -> NetworkPolicy:
    rng = np.random.default_rng(1)
    features = FeatureSet.fit(traces)
    sizes = (len(features.names), 8, 8, traces.n_roles + 1)
    weights = [rng.normal(size=pair) for pair in pairwise(sizes)]
    return NetworkPolicy(features, weights, [rng.normal(size=size) for size in sizes[1:]])


def stopping(traces: TraceArrays) -> StoppingPolicy:
    rng = np.random.default_rng(2)
    features = FeatureSet.fit(traces)
    paid = traces.horizon - 1
    return StoppingPolicy(
        features, rng.normal(size=(paid, len(features.names))), rng.normal(size=paid)
    )


def lookahead(traces: TraceArrays, space: SpaceName, together: int = 1) -> LookaheadPolicy:
    config = LookaheadConfig(space, 2, 4, 3, together=together, wait_price=together - 1)
    learner = LookaheadLearner(config)
    policy = learner.fit(traces, Fraction(1, 10), 0, Silent()).policy
    assert isinstance(policy, LookaheadPolicy)
    return policy


def thrifty(traces: TraceArrays, space: SpaceName) -> SetSizePenaltyPolicy:
    learner = SetSizePenaltyLearner(LookaheadConfig(space, iterations=1, trees=4, leaf=3))
    policy = learner.fit(traces, Fraction(1, 10), 0, Silent()).policy
    assert isinstance(policy, SetSizePenaltyPolicy)
    return policy


def sure(policy: Saveable, traces: TraceArrays) -> SelectivePolicy:
    return confident(policy, traces, "argmax", Fraction(1, 2)).policy


def of_row(traces: TraceArrays, lines: tuple[int, ...], fit: Fit) -> SelectivePolicy:
    buying = Buying(FixedDepthPolicy(2), "argmax", FixedRow("calls", lines))
    return learn(buying, traces, Fraction(1, 2), fit, "").policy


def odar(traces: TraceArrays, learner: OdarLearner) -> OdarPolicy:
    policy = learner.fit(traces, Fraction(1, 10), 0, Silent()).policy
    assert isinstance(policy, OdarPolicy)
    return policy


EXAMPLES: Mapping[str, Callable[[TraceArrays], Saveable]] = {
    "cpo": network,
    "random": lambda _: RandomPolicy(),
    "fixed": lambda _: FixedDepthPolicy(2),
    "fixed, beyond the last round": lambda _: FixedDepthPolicy(9),
    "uala": lambda _: UalaPolicy(),
    "uala, by confidence": lambda _: UalaPolicy("confidence"),
    "uala, by disagreement": lambda _: UalaPolicy("disagreement"),
    "llm-policy-guide": lambda _: LlmPolicy(POLICY),
    "exit-guide": lambda traces: LlmExitPolicy(EXIT, traces.roles[-1]),
    "stopping": stopping,
    "lookahead": lambda traces: lookahead(traces, "rounds"),
    "lookahead, call by call": lambda traces: lookahead(traces, "calls"),
    "sequence": lambda traces: lookahead(traces, "calls", 3),
    "odar": lambda traces: odar(traces, OdarLearner()),
    "odar-recheck": lambda traces: odar(traces, OdarLearner(recheck=True)),
    "lookahead-lambda": lambda traces: thrifty(traces, "rounds"),
    "lookahead-lambda, call by call": lambda traces: thrifty(traces, "calls"),
    "selective": lambda traces: sure(stopping(traces), traces),
    "selective, call by call": lambda traces: sure(lookahead(traces, "calls"), traces),
    "selective, one call": lambda traces: of_row(traces, (0,), lambda *_: OwnConfidence()),
    "selective, by agreement": lambda traces: of_row(traces, (1, 0), lambda *_: AnswerAgreement()),
    "selective, by a mixture": lambda traces: of_row(traces, (0, 1), by_votes),
}
"""A policy for these traces, by the name of a method that makes such, and what is special."""


OF_THOUGHTS: Mapping[str, Callable[[TraceArrays], Saveable]] = {
    "repeats": lambda _: RepeatsPolicy(),
    "settled": settled,
    "dtrec": lambda traces: DtrecPolicy({STAYED: np.arange(1.0, traces.horizon)}),
}
"""Of methods that stop a thought, which need its cuts."""


def in_rounds_or_calls() -> list[Method]:
    """Return the methods that can be replayed, but those of pools and of thoughts."""
    return [card for card in cards() if card.replayable and card.space not in {"pool", "cuts"}]


@cache
def example(name: str, shape: str) -> Policy:
    return EXAMPLES[name](random_traces(0, *SHAPES[shape]))

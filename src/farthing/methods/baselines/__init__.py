"""What every method is held against: lots, fixed depths, models that decide for themselves."""

from collections.abc import Sequence

from farthing.methods.base import Dataset, Method, Variant
from farthing.methods.baselines.fixed_depth import FixedDepthPolicy
from farthing.methods.baselines.learner import AlwaysLearner, FixedLearner, UalaLearner
from farthing.methods.baselines.llm_replies import NO_REPLIES, LlmExitPolicy, LlmPolicy
from farthing.methods.baselines.models import AlwaysPolicy
from farthing.methods.baselines.optimum import OptimumPolicy
from farthing.methods.baselines.random import RandomPolicy

HERE = "farthing.methods.baselines"

RANDOM_LEARNER = FixedLearner(RandomPolicy())
UALA_LEARNER = UalaLearner()
ALWAYS_LEARNER = AlwaysLearner()

NOT_ALONE = "not recorded alone"
"""Why nothing is known of a role by itself: its calls saw those of others."""

RANDOM = Method(
    name="random",
    label="Random",
    meaning="Chooses among the allowed actions by lot: the floor that any policy must beat",
    paper="2511.11828",
    policy=f"{HERE}.random:RandomPolicy",
    learner=f"{HERE}:RANDOM_LEARNER",
    action_spaces=("rounds", "cascade"),
    calibration="none",
    varies_with=frozenset(),
    place=0,
)


def _depths(dataset: Dataset) -> Sequence[Variant]:
    return [
        Variant(f"fixed-{depth}", f"Fixed depth {depth}", FixedLearner(FixedDepthPolicy(depth)))
        for depth in range(1, dataset.arranged("rounds").horizon + 1)
    ]


FIXED = Method(
    name="fixed",
    label="Fixed depth",
    meaning="Runs 1, 2, ... or all rounds, whatever happens",
    policy=f"{HERE}.fixed_depth:FixedDepthPolicy",
    action_spaces=("rounds", "cascade"),
    calibration="none",
    varies_with=frozenset(),
    variants=_depths,
    tried_for=frozenset({"one", "set"}),
    place=20,
)
UALA = Method(
    name="uala",
    label="UALA",
    meaning="Goes on while the guide is unsure of its answer",
    paper="2401.14016",
    policy=f"{HERE}.uala:UalaPolicy",
    learner=f"{HERE}:UALA_LEARNER",
    action_spaces=("rounds", "cascade"),
    varies_with=frozenset(),
    place=30,
)


def _model(dataset: Dataset, role: str) -> str:
    traces = dataset.arranged("rounds")
    return dict(zip(traces.roles, traces.models, strict=True)).get(role) or role


def _replies(dataset: Dataset, kind: str, role: str) -> str | None:
    """Return the role under which replies were recorded: by the role, or by its model's name."""
    named = (f"{kind}-{role}", f"{kind}-{_model(dataset, role)}")
    known = dataset.arranged("rounds").replies
    return next((name for name in named if name in known), None)


def _llm_policy(role: str) -> Method:
    name = f"llm-policy-{role}"

    def variants(dataset: Dataset) -> Sequence[Variant]:
        label = f"LLM policy ({_model(dataset, role)})"
        replies = _replies(dataset, "policy", role)
        if replies is None:
            return [Variant(name, label, None, NO_REPLIES)]
        return [Variant(name, label, FixedLearner(LlmPolicy(replies)))]

    return Method(
        name=name,
        label=f"LLM policy ({role})",
        meaning=f"The {role}'s model is shown both answers and names the action",
        paper="2511.11828",
        policy=f"{HERE}.llm_replies:LlmPolicy",
        needs=("replies",),
        calibration="none",
        varies_with=frozenset(),
        variants=variants,
        place=10 if role == "guide" else 11,
    )


def _llm_exit(role: str) -> Method:
    name = f"exit-{role}"

    def variants(dataset: Dataset) -> Sequence[Variant]:
        label = f"LLM-EXIT ({_model(dataset, role)})"
        replies = _replies(dataset, "exit", role)
        if replies is None or role not in dataset.traces.roles:
            return [Variant(name, label, None, NO_REPLIES)]
        return [Variant(name, label, FixedLearner(LlmExitPolicy(replies, role)))]

    return Method(
        name=name,
        label=f"LLM-EXIT ({role})",
        meaning=f"The {role}'s model answers alone, and says itself when to stop",
        paper="2511.11828",
        policy=f"{HERE}.llm_replies:LlmExitPolicy",
        needs=("replies",),
        calibration="none",
        varies_with=frozenset(),
        variants=variants,
        place=12 if role == "guide" else 13,
    )


LLM_POLICY_GUIDE, LLM_POLICY_BASE = _llm_policy("guide"), _llm_policy("base")
EXIT_GUIDE, EXIT_BASE = _llm_exit("guide"), _llm_exit("base")


def _known(dataset: Dataset) -> Sequence[Variant]:
    if dataset.generator is None:
        return []
    learner = FixedLearner(OptimumPolicy(dataset.generator))
    return [Variant("optimum", "Optimum (known)", learner)]


OPTIMUM = Method(
    name="optimum",
    label="Optimum (known)",
    meaning="Knows the generator's probabilities, as no policy that ships can",
    policy=f"{HERE}.optimum:OptimumPolicy",
    needs=("generator",),
    varies_with=frozenset(),
    variants=_known,
    place=99,
)
BEST_SINGLE = Method(
    name="best-single",
    label="Best single model",
    meaning="One model answers everything; which one is the operating point",
    policy=f"{HERE}.models:BestSinglePolicy",
    learner=f"{HERE}.fit_models:BEST_SINGLE",
    action_spaces=("pool",),
    needs=("pool",),
    extras=("train",),
    varies_with=frozenset(),
    tried_for=frozenset({"one"}),
    place=93,
)


def _roles(dataset: Dataset) -> Sequence[Variant]:
    """Return a variant for each role; what one says alone is known where no call saw another."""
    traces = dataset.arranged("pool")
    alone = bool(traces.independent.all())
    return [
        Variant(
            f"{ALWAYS.name}-{role}",
            f"Always {role}",
            FixedLearner(AlwaysPolicy(place)) if alone else None,
            "" if alone else NOT_ALONE,
        )
        for place, role in enumerate(traces.roles)
    ]


ALWAYS = Method(
    name="always",
    label="Always one model",
    meaning="One model answers everything: what anything else is held against",
    policy=f"{HERE}.models:AlwaysPolicy",
    learner=f"{HERE}:ALWAYS_LEARNER",
    action_spaces=("pool", "calls"),
    needs=("independent calls",),
    calibration="none",
    varies_with=frozenset(),
    variants=_roles,
    tried_for=frozenset({"one"}),
    place=92,
)
ALWAYS_ALL = Method(
    name="always-all",
    label="Always all",
    meaning="Every model answers everything, and a vote decides",
    policy=f"{HERE}.models:AlwaysAllPolicy",
    learner=f"{HERE}.fit_models:ALWAYS_ALL",
    action_spaces=("pool",),
    needs=("pool",),
    extras=("train",),
    varies_with=frozenset(),
    place=94,
)

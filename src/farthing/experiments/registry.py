"""Who takes part in a comparison, by name: the built-in ones and a third party's register alike.

An entry point of the group `farthing.contenders` is a function of a `Setting` that returns the
contenders of that name: one, several (`fixed` is `fixed-1` to `fixed-T`), or none where it has no
place (`optimum` without a generator)::

    [project.entry-points."farthing.contenders"]
    mine = "my_package.contenders:mine"
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from farthing import plugins
from farthing.errors import InputError, MissingExtraError, UnknownNameError
from farthing.experiments.base import Calibration, Contender
from farthing.methods.base import Policy
from farthing.methods.baselines.fixed_depth import FixedDepthPolicy
from farthing.methods.baselines.learner import FixedLearner, UalaLearner
from farthing.methods.baselines.llm_replies import NO_REPLIES, LlmExitPolicy, LlmPolicy
from farthing.methods.baselines.random import RandomPolicy
from farthing.process.generator.generate import GeneratorConfig
from farthing.process.generator.optimum import optimal_scores
from farthing.traces.arrays import FloatArray, IntArray, TraceArrays
from farthing.traces.assemble import cascade, is_pool

GROUP = "contenders"
ORDER = (
    "random",
    "llm-policy-guide",
    "llm-policy-base",
    "exit-guide",
    "exit-base",
    "fixed",
    "uala",
    "cpo",
    "cpo-batch",
    "cpo-online",
    "ccpo",
    "ccpo-lambda",
    "ccpo-published",
    "stopping",
    "lookahead",
    "lookahead-lambda",
    "lazy",
    "optimum",
)
"""The built-in ones as tables list them; a third party's come after them."""


@dataclass(frozen=True)
class Setting:
    """What is compared on."""

    name: str
    """Name of the trace file or of the preset."""
    traces: TraceArrays
    generator: GeneratorConfig | None = None
    """What made the questions, where a generator did: then the optimum is known."""
    preset: str | None = None
    """Name of the preset, where the paper published figures to lay beside ours."""
    features: tuple[str, ...] = ()
    """Recorded numbers that policies are to see beside the built-in features."""

    @property
    def in_rounds(self) -> "Setting":
        """The same setting; a pool of models is laid out as a cascade, one model a round."""
        return replace(self, traces=cascade(self.traces)) if is_pool(self.traces) else self


def contenders(setting: Setting, names: Iterable[str] | None = None) -> list[Contender]:
    """Return the contenders of these names, or all that can run here, without doubles.

    A name is one of a contender (`fixed-2`) or of an entry point (`fixed`: all depths). Called by
    name, one for which nothing was recorded is returned too, and its note says so.

    Raises:
        UnknownNameError: nothing has that name; the message lists the names there are.
        MissingExtraError: a learner needs torch or scikit-learn.
        InputError: features are asked for, and none of these reads any.
    """
    if names is None:
        return [contender for contender in _everyone(setting) if contender.learner is not None]
    registered = plugins.names(GROUP)
    chosen: dict[str, Contender] = {}
    for name in names:
        for contender in _called(name, setting, registered):
            chosen.setdefault(contender.name, contender)
    if setting.features and not any(map(_reads_features, chosen.values())):
        asked = f"{', '.join(chosen)} read no features of their own choice"
        raise InputError(f"{asked}: leave {', '.join(setting.features)} out")
    return list(chosen.values())


def left_out(setting: Setting) -> dict[str, list[str]]:
    """Return who cannot run here and takes part only by name: why, and the names it is true of."""
    found: dict[str, list[str]] = {}
    for contender in _everyone(setting):
        if contender.learner is None:
            found.setdefault(contender.note, []).append(contender.name)
    return found


def _everyone(setting: Setting) -> list[Contender]:
    names = sorted(plugins.names(GROUP), key=_place)
    return [contender for name in names for contender in _built(name, setting)]


def _called(name: str, setting: Setting, registered: Sequence[str]) -> list[Contender]:
    if name in registered:
        return _built(name, setting)
    family = name.rpartition("-")[0]
    relatives = _built(family, setting) if family in registered else []
    found = [contender for contender in relatives if contender.name == name]
    if not found:
        here = [n for n in registered if n != "optimum" or setting.generator is not None]
        raise UnknownNameError("policy", name, [*here, *(c.name for c in relatives)])
    return found


def _built(name: str, setting: Setting) -> list[Contender]:
    try:
        build = plugins.load(GROUP, name)
    except ModuleNotFoundError as missing:
        raise MissingExtraError(f"the policy '{name}' ({missing.name})", "train") from None
    return [_with_features(contender, setting.features) for contender in build(setting)]


def _reads_features(contender: Contender) -> bool:
    return hasattr(contender.learner, "extra_features")


def _with_features(contender: Contender, names: tuple[str, ...]) -> Contender:
    if not names or not _reads_features(contender):
        return contender
    learner: Any = contender.learner
    return replace(contender, learner=_asking_for(learner, names))


@cache
def _asking_for(learner: Any, names: tuple[str, ...]) -> Any:
    """Return a learner that reads these features too; the same one for the same learner."""
    return replace(learner, extra_features=names)


def _place(name: str) -> tuple[int, str]:
    return (ORDER.index(name) if name in ORDER else len(ORDER), name)


def random(setting: Setting) -> list[Contender]:  # noqa: ARG001
    """Choose by lot."""
    return [_untrained("random", "Random", RandomPolicy())]


def fixed(setting: Setting) -> list[Contender]:
    """Run 1, 2, ..., T rounds, whatever happens."""
    return [
        _untrained(f"fixed-{depth}", f"Fixed depth {depth}", FixedDepthPolicy(depth))
        for depth in range(1, setting.traces.horizon + 1)
    ]


def uala(setting: Setting) -> list[Contender]:  # noqa: ARG001
    """Threshold the guide's uncertainty."""
    return [Contender("uala", "UALA", UalaLearner(), "split", varies_with=frozenset())]


def llm_policy_guide(setting: Setting) -> list[Contender]:
    """Let the guide's model choose the action."""
    return [_llm_policy(setting, "guide")]


def llm_policy_base(setting: Setting) -> list[Contender]:
    """Let the base's model choose the action."""
    return [_llm_policy(setting, "base")]


def exit_guide(setting: Setting) -> list[Contender]:
    """Let the guide's model answer alone and say when to stop."""
    return [_llm_exit(setting, "guide")]


def exit_base(setting: Setting) -> list[Contender]:
    """Let the base's model answer alone and say when to stop."""
    return [_llm_exit(setting, "base")]


def optimum(setting: Setting) -> list[Contender]:
    """Play the known optimum of a generator, with a calibrated threshold like any policy."""
    if setting.generator is None:
        return []
    return [_untrained("optimum", "Optimum (known)", OptimumPolicy(setting.generator), "split")]


@dataclass(frozen=True)
class OptimumPolicy:
    """Knows the generator's probabilities, as no policy that ships can."""

    generator: GeneratorConfig
    stochastic: bool = False

    def scores(self, traces: TraceArrays) -> FloatArray:
        """Return 1 for each role, and for `next` what it gains for its money, [n, T, 3]."""
        return optimal_scores(self.generator, traces)

    def decision_cost_nano(self, traces: TraceArrays) -> IntArray | None:  # noqa: ARG002
        """Deciding costs nothing."""
        return None


def _untrained(
    name: str, label: str, policy: Policy, calibration: Calibration = "none"
) -> Contender:
    return Contender(name, label, FixedLearner(policy), calibration, varies_with=frozenset())


def _llm_policy(setting: Setting, role: str) -> Contender:
    name, label = f"llm-policy-{role}", f"LLM policy ({_model(setting, role)})"
    replies = _replies(setting, "policy", role)
    if replies is None:
        return Contender(name, label, None, "none", note=NO_REPLIES)
    return _untrained(name, label, LlmPolicy(replies))


def _llm_exit(setting: Setting, role: str) -> Contender:
    name, label = f"exit-{role}", f"LLM-EXIT ({_model(setting, role)})"
    replies = _replies(setting, "exit", role)
    if replies is None or role not in setting.traces.roles:
        return Contender(name, label, None, "none", note=NO_REPLIES)
    return _untrained(name, label, LlmExitPolicy(replies, role))


def _replies(setting: Setting, kind: str, role: str) -> str | None:
    """Return the role under which replies were recorded: by the role, or by its model's name."""
    named = (f"{kind}-{role}", f"{kind}-{_model(setting, role)}")
    return next((name for name in named if name in setting.traces.replies), None)


def _model(setting: Setting, role: str) -> str:
    models = dict(zip(setting.traces.roles, setting.traces.models, strict=True))
    return models.get(role) or role

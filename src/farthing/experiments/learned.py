"""The contenders that are trained; only this module of the room loads torch and scikit-learn."""

from functools import cache

from farthing.experiments.base import Contender
from farthing.experiments.registry import Setting
from farthing.methods.ccpo.learner import PUBLISHED, CcpoConfig, CcpoLearner
from farthing.methods.cpo.learner import CpoLearner
from farthing.methods.lookahead.learner import LAZY, LookaheadLearner
from farthing.methods.set_size_penalty.learner import ThriftyLearner
from farthing.methods.stopping.learner import StoppingLearner

SET_SIZE_PRICE = 0.86
"""lambda of the contenders that have one: the paper's 2e-4 USD in units of its mean round."""


@cache
def _cpo() -> CpoLearner:
    """Return the one learner that the three CPO contenders share, and so train once."""
    return CpoLearner()


def cpo(setting: Setting) -> list[Contender]:  # noqa: ARG001
    """Constrained policy optimisation, acting by sampling."""
    return [Contender("cpo", "CPO", _cpo(), "none")]


def cpo_batch(setting: Setting) -> list[Contender]:  # noqa: ARG001
    """The same policy with an exact threshold."""
    return [Contender("cpo-batch", "CPO batch", _cpo(), "split")]


def cpo_online(setting: Setting) -> list[Contender]:  # noqa: ARG001
    """The same policy with the threshold of an online pass over its training episodes.

    That pass counts sets that may be empty, so these may be too.
    """
    return [Contender("cpo-online", "CPO online", _cpo(), "online", empty="allow")]


def ccpo(setting: Setting) -> list[Contender]:  # noqa: ARG001
    """Conformal constrained policy optimisation with the exact constraint and the exact cost."""
    return [Contender("ccpo", "CCPO (λ=0)", CcpoLearner(), "split")]


def ccpo_lambda(setting: Setting) -> list[Contender]:  # noqa: ARG001
    """The same with a price on each answer in the set."""
    learner = CcpoLearner(CcpoConfig(set_size_price=SET_SIZE_PRICE))
    return [Contender("ccpo-lambda", f"CCPO (λ={SET_SIZE_PRICE:g} rounds)", learner, "split")]


def ccpo_published(setting: Setting) -> list[Contender]:  # noqa: ARG001
    """Conformal constrained policy optimisation as published: leaf count, sampled cost."""
    learner = CcpoLearner(PUBLISHED)
    return [Contender("ccpo-published", "CCPO as published", learner, "split", empty="allow")]


def stopping(setting: Setting) -> list[Contender]:  # noqa: ARG001
    """Supervised stopping."""
    learner = StoppingLearner()
    return [
        Contender(
            "stopping", "Supervised stopping", learner, "split", varies_with=frozenset({"seed"})
        )
    ]


def lookahead(setting: Setting) -> list[Contender]:  # noqa: ARG001
    """Gain per dollar with look-ahead, in the paper's protocol."""
    return [Contender("lookahead", "Look-ahead", LookaheadLearner(), "split")]


def lookahead_lambda(setting: Setting) -> list[Contender]:  # noqa: ARG001
    """The same with a price on each answer in the set."""
    learner = ThriftyLearner(set_size_price=SET_SIZE_PRICE)
    label = f"Look-ahead (λ={SET_SIZE_PRICE:g} rounds)"
    return [Contender("lookahead-lambda", label, learner, "split")]


def lazy(setting: Setting) -> list[Contender]:
    """Gain per dollar, one call at a time; nowhere where calls saw each other."""
    if not setting.traces.independent.all():
        note = "calls saw earlier ones, so none can be skipped"
        return [Contender("lazy", "Lazy", None, "split", note=note)]
    learner = LookaheadLearner(LAZY)
    return [Contender("lazy", "Lazy (call by call)", learner, "split", in_rounds=False)]

"""What a policy is: a score for every action in every round."""

from typing import Protocol, runtime_checkable

from farthing.traces.arrays import FloatArray, IntArray, TraceArrays


@runtime_checkable
class Policy(Protocol):
    """Scores the actions of every round of every question.

    The actions are the roles of the traces in their order (return that role's answer) and then
    `next` (pay for another round). A decision in round t sees rounds 1..t only. For a stochastic
    policy the scores are probabilities, which sum to 1 in each round; a policy that only ever acts
    through a threshold may score each action on its own, in [0, 1].
    """

    @property
    def stochastic(self) -> bool:
        """Whether the scores of a round are probabilities that one action can be drawn from."""
        ...

    def scores(self, traces: TraceArrays) -> FloatArray:
        """Return the scores, [n, T, L + 1]; `next` scores 0 in the last round."""
        ...

    def decision_cost_nano(self, traces: TraceArrays) -> IntArray | None:
        """Return what deciding costs, [n, T] in nano-dollars; None where it costs nothing."""
        ...


@runtime_checkable
class Arranging(Policy, Protocol):
    """A policy that chooses the order of the calls as well, each question's own."""

    @property
    def in_rounds(self) -> bool:
        """Whether that order is the rounds' own; else `scores` refuses."""
        ...

    def arranged(self, traces: TraceArrays) -> tuple[TraceArrays, FloatArray]:
        """Lay the questions out as rounds of one purchase each, with the scores of that order.

        The order does not depend on any threshold, so that sets are nested in it.

        Returns:
            The same answers as [n, S, U], and scores [n, S, U + 1].
        """
        ...

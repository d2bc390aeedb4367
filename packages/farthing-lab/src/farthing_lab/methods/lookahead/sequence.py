"""One decision for several calls, which are made at the same time: fewer waits, for more money.

Of every set of at most three next calls the forest of `lazy` estimates the probability that one of
them is right where nothing is right yet, and what it costs: its money, and a price of waiting for
its slowest call. The call of the greatest gain per dollar leads, as in `lazy`. Of the sets with it
the one is bought whose gain, at the price of coverage that training found for single calls, exceeds
its cost by most; it is decided again once all have replied. The set's gain per dollar is the score,
so that answers are nested in the threshold as ever; above the score of the first set, its leading
call is made alone. With one call a decision, and waiting for free, it decides as `lazy`.

Its paper is Patel and Siegelmann, 2024: a controller that decides once about a sequence of actions,
which are carried out without a look in between. Their learning of such sequences is not needed
here: what any set would have brought and cost is known of recorded calls.
"""

from dataclasses import replace

from farthing.methods.base import Method
from farthing.methods.lookahead.learner import LAZY, LookaheadLearner, where_independent
from farthing.methods.lookahead.policy import LookaheadPolicy

TOGETHER = 3
"""The most calls of one decision."""
SEQUENCE_LEARNER = LookaheadLearner(replace(LAZY, together=TOGETHER, wait_price=1.0))
SEQUENCE = Method(
    name="sequence",
    label="Sequence (calls together)",
    meaning="Buys up to three calls at a time and waits for them once; then decides again",
    policy=LookaheadPolicy,
    learner=SEQUENCE_LEARNER,
    paper="2410.08979",
    action_spaces=("calls",),
    needs=("independent calls",),
    imports=("sklearn.ensemble", "sklearn.linear_model"),
    variants=where_independent("sequence", "Sequence (calls together)", SEQUENCE_LEARNER),
    place=73,
)

"""What the figures of a comparison are called, and what it notes."""

from farthing.promises.texts import ANSWERED, REALISED
from farthing.recommendation.base import FELL_BACK

SOLVABLE_ONLY = "thresholds promise coverage of the solvable questions"
"""The note of a comparison whose promises are about the solvable questions alone."""

SAVED = "saved"
"""1 - cost over that of the reference alone, on each test part; only where that is known."""

GAINED = "gained"
"""Accuracy of the single best answer less the reference's, likewise."""

GAIN_AT_EQUAL_COST, SAVING_AT_EQUAL_ACCURACY = "gain_at_equal_cost", "saving_at_equal_accuracy"
AIQ, ARENA_SCORE = "aiq", "arena_score"
ROUTER_FIGURES = (GAIN_AT_EQUAL_COST, SAVING_AT_EQUAL_ACCURACY, AIQ, ARENA_SCORE)
"""What benchmarks of routers print (`comparison.router_figures`): against the best single model of
all questions outside training, and RouterArena's score of mean cost and accuracy."""

KEPT = "kept"
PROMISE_METRICS = (
    "cost_usd",
    "total_cost_usd",
    "accuracy",
    REALISED,
    ANSWERED,
    KEPT,
    FELL_BACK,
)
"""What is measured on each test part where another promise than coverage is proved: money and
accuracy as above; the figure that is promised (accuracy less the reference's, agreement, accuracy
of the answers given, or USD a question); the share of questions answered; 1 where the figure is as
was promised; 1 where calibration proved nothing, so that the reference answered, or nobody."""

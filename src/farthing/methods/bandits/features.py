"""What bandits read of a question: a few numbers, since there is little to learn from yet."""

import numpy as np

from farthing.features.question_text import HASHED, word_vectors
from farthing.traces.arrays import FloatArray

WORDS, GROUPS = 16, 32
DIMENSIONS = 1 + WORDS + GROUPS


def features_of(text: str, group: str = "") -> FloatArray:
    """Return [d] a constant, the question's words and its group; the last two of length 1 each.

    Hashed words are folded once more, so that a regression with a few hundred grades can use them.

    >>> features_of("What is 4 + 3?", "sums").shape == (DIMENSIONS,)
    True
    """
    return np.concatenate([[1.0], _folded(text, WORDS), _folded(f"group {group}", GROUPS)])


def _folded(text: str, dimensions: int) -> FloatArray:
    folded = word_vectors([text])[0].reshape(HASHED // dimensions, dimensions).sum(axis=0)
    length = float(np.sqrt((folded * folded).sum()))
    found: FloatArray = folded / length if length > 0.0 else folded
    return found

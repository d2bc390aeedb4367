"""Questions before anybody answers them, as what estimates success reads them: text and group."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from farthing.features.question_text import word_vectors
from farthing.traces.arrays import FloatArray, TraceArrays

LEAST_GROUP = 5
"""Questions that a group needs to have a weight of its own; ours."""


@dataclass(frozen=True)
class QuestionFeatures:
    """Questions as estimates read them."""

    text: tuple[str, ...]
    group: tuple[str, ...]
    """'' where a question has none."""

    @classmethod
    def of(cls, traces: TraceArrays) -> "QuestionFeatures":
        """Return recorded questions."""
        text = [""] * len(traces) if traces.question is None else traces.question.tolist()
        names = (*traces.group_names, "")
        return cls(tuple(text), tuple(names[at] for at in traces.group.tolist()))

    def __len__(self) -> int:
        return len(self.text)


def groups_of(group: Sequence[str]) -> tuple[str, ...]:
    """Return the groups that have questions enough to be told apart."""
    names, counts = np.unique(np.array(group), return_counts=True)
    both = zip(names.tolist(), counts.tolist(), strict=True)
    return tuple(name for name, n in both if name and n >= LEAST_GROUP)


def seen_of(asked: QuestionFeatures, groups: Sequence[str]) -> FloatArray:
    """Return words, and one column a group, [n, F]."""
    member = np.array(asked.group)[:, None] == np.array(groups, dtype=str)[None, :]
    return np.hstack(
        [word_vectors(asked.text), member.reshape(len(asked), len(groups)).astype(float)]
    )

"""HotpotQA: exact match as its official evaluation script computes it.

Source: `hotpot_evaluate_v1.py` of Yang et al. (2018), which takes over SQuAD's normalisation.
"""

import re
import string
from typing import Any

from farthing.tasks.base import ExactMatch, Question
from farthing.tasks.questions import QuestionRow

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalise(answer: str) -> str:
    """Lower the case, drop punctuation, then articles, then superfluous white space.

    >>> normalise("The Eiffel-Tower,  an icon")
    'eiffeltower icon'
    """
    return " ".join(_ARTICLES.sub(" ", answer.lower().translate(_PUNCTUATION)).split())


HOTPOTQA = ExactMatch("hotpotqa", normalise)


def question(row: QuestionRow) -> Question:
    """Read a row of `hotpot_*_v1.json` (distractor and fullwiki), or of the data set on the Hub."""
    return Question(
        id=row.text("_id", "id"),
        text=row.text("question"),
        gold=(row.text("answer"),) if "answer" in row.values else (),
        group=row.label("type"),
        split=row.split,
        paragraphs=tuple(_paragraphs(row)),
    )


def _paragraphs(row: QuestionRow) -> list[tuple[str, str]]:
    """Read [[title, [sentence, ...]], ...], or the data set's title and sentences side by side."""
    context: Any = row.values.get("context", [])
    try:
        if isinstance(context, dict):
            context = zip(context["title"], context["sentences"], strict=True)
        return [(str(title), "".join(sentences)) for title, sentences in context]
    except (KeyError, TypeError, ValueError) as error:
        raise row.refusal("context", "is no list of [title, [sentence, ...]]") from error

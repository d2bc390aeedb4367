"""HotpotQA: exact match and F1 as its official evaluation script computes them.

Source: `hotpot_evaluate_v1.py` of Yang et al. (2018), which takes over SQuAD's normalisation.
"""

import re
import string
from collections import Counter
from typing import Any

from farthing.tasks.base import ExactMatch, Question
from farthing.tasks.questions import QuestionRow

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)
_CLOSED_FORM = frozenset({"yes", "no", "noanswer"})


def normalise(answer: str) -> str:
    """Lower the case, drop punctuation, then articles, then superfluous white space.

    >>> normalise("The Eiffel-Tower,  an icon")
    'eiffeltower icon'
    """
    return " ".join(_ARTICLES.sub(" ", answer.lower().translate(_PUNCTUATION)).split())


def f1(answer: str | None, gold: str) -> float:
    """Return the F1 of the words that answer and gold share, in [0, 1].

    Yes, no and noanswer score all or nothing: there, half a match means nothing.

    >>> f1("the Eiffel Tower in Paris", "Eiffel Tower"), f1("yes it is", "yes")
    (0.6666666666666666, 0.0)
    """
    if answer is None:
        return 0.0
    given, accepted = normalise(answer), normalise(gold)
    if given != accepted and not _CLOSED_FORM.isdisjoint((given, accepted)):
        return 0.0
    shared = (Counter(given.split()) & Counter(accepted.split())).total()
    if shared == 0:
        return 0.0
    precision, recall = shared / len(given.split()), shared / len(accepted.split())
    return 2 * precision * recall / (precision + recall)


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

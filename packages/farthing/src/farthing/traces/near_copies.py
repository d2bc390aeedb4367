"""Questions that are worded alike: no copies, and yet perhaps no independent draws.

In two that are near, what tells questions apart wherever it stands (numbers, symbols, single
letters, negations, who and when) is the same in the same order. So are the other words in any
order, but for filler and doubled letters; or one ends with the whole of the other. Templates that
differ in one slot are not near: Hamlet is no filler.
"""

import re
from collections import Counter
from collections.abc import Sequence
from itertools import chain

from farthing.traces.arrays import TraceArrays
from farthing.traces.canonical import canonical
from farthing.traces.copies import NO_TEXT, one_of_each

_FILLER = (
    "a an the this that these those is are was were be been am do does did done has have had can "
    "it could would will to of in on at for by with about as into and but then than so such we you "
    "me i us there here just also following what which please kindly tell know let like want give "
    "say answer question explain hello hi thanks thank advance re ve ll"
)
"""Words that come and go as a question is worded anew."""
_TELLING = (
    "not no nor never none neither without except or if who when where why how more less most "
    "least two three four five six seven eight nine ten hundred thousand million second last false"
)
_TOKEN = re.compile(r"[^\W_]*\d[^\W_]*(?:[.,:/]\d+)*|[^\W\d_]+|[^\w\s]+|_+")
_PROSE = ".,:;!?…'\"()[]{}"
LONG, ADDED, EXAMPLES = 6, 8, 3
"""Letters of words whose doubled ones count once; most words put first; pairs that a note names."""


def near_note(traces: TraceArrays) -> str:
    """Say how many questions are worded like another; of texts that options tell apart none is."""
    rows = one_of_each(traces.content)
    rows = rows[traces.content[rows] != NO_TEXT]
    texts = [] if traces.question is None else list(map(canonical, traces.question[rows]))
    digits = [re.sub(r"\D+", "", text) for text in texts]  # of near ones they are the same
    often, alike = Counter(texts), Counter(digits)
    alone = [i for i, text in enumerate(texts) if often[text] == 1 and alike[digits[i]] > 1]
    names, found = traces.ids[rows[alone]].tolist(), near([texts[i] for i in alone])
    if not found:
        return ""
    pairs = ", ".join(f"'{names[j]}' and '{names[i]}'" for i, j in list(found.items())[:EXAMPLES])
    return (
        f"worded much like another question, yet counted as independent of it: {len(found):,} "
        f"({pairs}); if they ask the same, import them with --cluster COLUMN, which they share"
    )


def near(texts: Sequence[str]) -> dict[int, int]:
    """Return which earlier one each text is near, by place, of distinct `canonical` ones.

    >>> near(["who wrote hamlet", "hamlet: please tell me who wrote it", "who wrote faust",
    ...       "an easy riddle: who wrote faust", "who did not write hamlet", "3 + 4", "5 + 9"])
    {1: 0, 3: 2}
    """
    words, filler = list(map(_words, texts)), set(_FILLER.split())
    known = set(chain.from_iterable(words)) - filler
    telling = {word for word in known if len(word) == 1 or not word.isalpha()}
    telling = {word for word in telling if word.strip(_PROSE)}.union(_TELLING.split())
    plain = {word for word in known - telling if word.isalpha()}
    others = {w: w if len(w) < LONG else re.sub(r"(.)\1", r"\1", w) for w in plain}
    tells = [[word for word in each if word in telling] for each in words]
    bags = [sorted([others[word] for word in each if word in others]) for each in words]
    first: dict[str, int] = {}
    asked = [first.setdefault(f"{tells[i]}{bags[i]}", i) for i in range(len(texts))]
    found = {i: j for i, j in enumerate(asked) if i != j and (tells[i] or bags[i])}
    ends, shorter = [f" {text}"[::-1] for text in texts], list[int]()
    for i in sorted(range(len(ends)), key=ends.__getitem__):
        while shorter and not ends[i].startswith(ends[shorter[-1]]):
            shorter.pop()
        j = shorter[-1] if shorter else i
        added = set(_words(ends[i][: len(ends[j]) - 1 : -1]))
        asks = added & (telling | {"what", "which"})
        if i != j and len(tells[j] + bags[j]) > 1 and not asks and len(added - filler) <= ADDED:
            found.setdefault(max(i, j), min(i, j))
        shorter.append(i)
    return found


def _words(text: str) -> list[str]:
    text = text.replace("n't", " not").replace("cannot", "can not").replace("whom", "who")
    return _TOKEN.findall(re.sub(r"(?<=\w)'s\b", "", text))

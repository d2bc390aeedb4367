"""Questions that are worded alike: no copies, and yet perhaps no independent draws.

Two are near where one of these holds, and what tells questions apart wherever it stands (numbers,
operators, single letters, negations, who and when) is the same in the same order:

- They have the same words but for filler, in any order; in a long word of one a letter may be
  doubled, left out or swapped.
- One is the other, whole, with a few words before it or after its end that ask nothing.

Templates that differ in one slot are not near: "Who wrote Hamlet?" and "Who wrote Faust?" differ in
a word that is no filler, 3 + 4 and 5 + 9 in numbers. Whether those that are near ask the same,
their user knows, whose cluster joins them.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain

from farthing.traces.arrays import TraceArrays
from farthing.traces.content import NO_TEXT, canonical
from farthing.traces.copies import one_of_each

_FILLER = frozenset(
    "a an the this that these those is are was were be been am do does did done has have had can "
    "could would will shall to of in on at for by with about as into and but then than so such it "
    "he she they we you i me us them there here just also following what which please kindly tell "
    "know let like want give say answer question explain hello hi hey thanks thank "
    "der die das den dem des ein eine einen einem einer ist sind war bitte und zu im am von mit "
    "le la les un une est et du el los las una del es y il lo gli e os um uma do da".split()
)
"""Words that come and go as a question is worded anew."""
_TELLING = frozenset(
    "not no nor never none neither without except or if who when where why how more less most least "
    "zero two three four five six seven eight nine ten hundred thousand million first second third "
    "last false true".split()
)
"""Words that ask something else wherever they are put."""
_CONTRACTED = re.compile(r"(?<=\w)'(?:s|re|ve|ll|d|m)\b")
_TOKEN = re.compile(r"\w*\d\w*(?:[.,:/]\d+)*|[^\W\d_]+|[+*/<>=^%$€£~|&#@\\]|-(?=\s?\d)")
_ENDED = re.compile(r"[.?!](?:\s|$)|\s?\(")
LONG, ADDED, DEPTH, EXAMPLES = 6, 8, 4, 3
"""Letters of a word that may be misspelt; most words that are put before or after a question;
questions that one is held against as what it begins or ends with; pairs that a note names."""


def near_note(traces: TraceArrays) -> str:
    """Say how many distinct questions are worded like another one; empty where none is known to be.

    Texts that do not tell questions apart, as of those with options beside them, are left out.
    """
    if traces.question is None:
        return ""
    rows = one_of_each(traces.content)
    texts = [canonical(text) for text in traces.question[rows].tolist()]
    often = Counter(texts)
    known = (traces.content[rows] != NO_TEXT).tolist()
    alone = [i for i, text in enumerate(texts) if text and known[i] and often[text] == 1]
    found = near([texts[i] for i in alone])
    if not found:
        return ""
    names = traces.ids[rows[alone]].tolist()
    pairs = ", ".join(f"'{names[j]}' and '{names[i]}'" for i, j in list(found.items())[:EXAMPLES])
    those = "1 question is" if len(found) == 1 else f"{len(found):,} questions are"
    return (
        f"{those} worded much like another one ({pairs}) and counted as independent of it; where "
        "they ask the same, name what they share: `farthing traces import` with --cluster COLUMN"
    )


def near(texts: Sequence[str]) -> dict[int, int]:
    """Return which earlier text each is near, by their places; those near none are absent.

    Args:
        texts: distinct ones, as `canonical` returns them.

    >>> asked = ("who wrote hamlet", "please tell me who has written this", "hamlet: who wrote it",
    ...          "who wrote faust", "an easy riddle: who wrote faust", "who did not write hamlet")
    >>> near(asked)
    {2: 0, 4: 3}
    """
    words = [_words(text) for text in texts]
    spelling = _spellings({word for each in words for word in each} - _FILLER - _TELLING)
    found: dict[int, int] = {}
    first: dict[tuple[tuple[str, ...], ...], int] = {}
    telling = [tuple(filter(_tells, each)) for each in words]
    others = [_others(each, spelling) for each in words]
    for place, asked in enumerate(zip(telling, others, strict=True)):
        if any(asked) and (earlier := first.setdefault(asked, place)) != place:
            found[place] = earlier
    for longer, shorter, more in _within(texts):
        added = _words(more)
        asks = {"what", "which"}.intersection(added) or any(map(_tells, added))
        enough = len(telling[shorter]) + len(others[shorter]) > 1
        if enough and not asks and len(_others(added, {})) <= ADDED:
            found.setdefault(max(longer, shorter), min(longer, shorter))
    return found


def _words(text: str) -> list[str]:
    plain = _CONTRACTED.sub("", text.replace("n't", " not").replace("cannot", "can not"))
    return ["who" if word == "whom" else word for word in _TOKEN.findall(plain)]


def _tells(word: str) -> bool:
    """Return whether a word asks something else wherever it is put."""
    return (not word.isalpha() or len(word) == 1 or word in _TELLING) and word not in _FILLER


def _others(words: Sequence[str], spelling: dict[str, str]) -> tuple[str, ...]:
    """Return the words that are neither filler nor telling, in the order of the alphabet."""
    return tuple(
        sorted(spelling.get(w, w) for w in words if w not in _FILLER and not _tells(w))
    )


def _spellings(words: set[str]) -> dict[str, str]:
    """Return one spelling of long words that differ in a letter left out or in two swapped.

    >>> _spellings({"hamlet", "hamelt", "hammlet", "faust", "omelet"})
    {'hamlet': 'hamelt', 'hammlet': 'hamelt'}
    """
    found: dict[str, str] = {}
    for word in sorted(words, key=lambda word: (len(word), word)):
        if len(word) < LONG or word.upper() == word:  # scripts without case write no words apart
            continue
        places = range(1, len(word) - 1)
        swapped = (word[:i] + word[i + 1] + word[i] + word[i + 2 :] for i in places)
        shorter = (word[:i] + word[i + 1 :] for i in range(1, len(word)))
        for other in chain(shorter, (one for one in swapped if one < word)):
            if other in words:
                found[word] = found.get(other, other)
                break
    return found


def _within(texts: Sequence[str]) -> Iterator[tuple[int, int, str]]:
    """Yield the places of a text and of one that it holds, whole, and what stands beside that."""
    for longer, shorter in _begin(texts):
        more = texts[longer][len(texts[shorter]) :]
        if _ENDED.match(more):
            yield longer, shorter, more
    for longer, shorter in _begin([text[::-1] for text in texts]):
        more = texts[longer][: -len(texts[shorter])]
        if not more[-1].isalnum():
            yield longer, shorter, more


def _begin(texts: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield the places of a text and of some shorter ones that it begins with."""
    before: list[int] = []  # each begins with the one before it
    for place in sorted(range(len(texts)), key=texts.__getitem__):
        while before and not texts[place].startswith(texts[before[-1]]):
            before.pop()
        yield from ((place, shorter) for shorter in before[-DEPTH:])
        before.append(place)

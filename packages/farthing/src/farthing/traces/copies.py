"""Copies: questions that ask the same under other ids, and so are no independent draws.

A division of questions keeps copies together, and a proof counts one of them, which chance draws. A
log that was read twice makes traffic look repetitive that is not, and should be left out.

Questions that are worded alike are no copies, and yet perhaps no independent draws. In two that are
near, what tells questions apart wherever it stands (numbers, symbols, single letters, negations,
who and when) is the same in the same order. So are the other words in any order, but for filler
and doubled letters; or one ends with the whole of the other. Templates that differ in one slot are
not near: Hamlet is no filler.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import chain
from operator import attrgetter
from typing import Self
from unicodedata import category, normalize

import numpy as np
from numpy.typing import NDArray

from farthing.errors import InputError
from farthing.traces.arrays import NO_SPLIT, SPLITS, IntArray, TraceArrays
from farthing.traces.base import Trace
from farthing.traces.grades.codes import normaliser

_TYPED: dict[int, str | int] = {**str.maketrans("‘’‚‛“”„‐‒–—−", "'" * 4 + '"' * 3 + "-" * 5)}
_TYPED |= {ord(digit): f"^{normalize('NFKC', digit)}" for digit in "⁰¹²³⁴⁵⁶⁷⁸⁹"}
_TYPED |= dict.fromkeys([0xAD, *range(0x200B, 0x2010), *range(0x2060, 0x2070), 0xFEFF], "")
"""Quotes and dashes as on keyboards, exponents apart from their base; what is not seen goes."""
_MARKS = "".join(c for c in map(chr, range(0x3100)) if category(c) in {"Po", "Pi", "Pf", "Pd"})
_MARKS = re.sub(r"[#%&*@/\\]", "", _MARKS) + " "
"""Punctuation but for brackets, and for what may be a part of a name or an amount."""


def canonical(text: str) -> str:
    r"""Return what a text says; empty where it says nothing.

    Unicode forms, case, white space and punctuation at the ends do not count, unless it is all.

    >>> canonical(" Who\u00a0wrote\n\u201cFaust\u201d?") == canonical('WHO wrote "Faust')
    True
    >>> [canonical(text) for text in ("-5?", "5!", "2\u00b3", "C#", "?!")]
    ['-5', '5!', '2^3', 'c#', '?!']
    """
    said = text.casefold()
    if not text.isascii():
        said = normalize("NFKC", normalize("NFKC", text.translate(_TYPED)).casefold())
    said = " ".join(said.split())
    if not (bare := said.strip(_MARKS)):
        return said
    before, _, after = said.partition(bare)
    if bare[0].isdigit() and before.endswith(("-", ".", "!")):
        bare = before[-1] + bare
    if bare[-1].isdigit() and after.startswith(("-", "!")):
        bare += after[0]
    return bare


Content = NDArray[np.uint64]
"""[n] the mark of what each question asks (`contents_of`)."""
NO_TEXT = 0
_OF_TEXTS = 1 << 63  # a bit that marks of texts have, and those of clusters have not
_asked = attrgetter("question", "system_prompt", "history", "options")
_ANY = 0
"""The seed of what is drawn among copies, which is always the same."""


def content_of(trace: Trace) -> int:
    r"""Return the mark, in 64 bits, of everything that was asked; 0 where no text was recorded.

    Copies have the same text, system prompt, history and options, however these are typed
    (`canonical`). Accepted answers do not count.

    >>> from farthing.traces.base import Call
    >>> def mark(text: str, **more: str) -> int:
    ...     return content_of(Trace(id="q", question=text, calls=[Call(round=1, role="m")], **more))
    >>> mark("A b.") == mark("a\nb "), mark("a b") == mark("a, b"), mark(" ")
    (True, False, 0)
    >>> mark("Which?", options="A B") == mark("Which?", options="A C")
    False
    """
    return _mark(*(canonical(part or "") for part in _asked(trace)))


def contents_of(traces: Iterable[Trace]) -> Content:
    """Return the marks of questions, [n], of which those of one cluster have one.

    A cluster joins questions and parts none: where two share a question, all of both are joined.
    """
    each = [(content_of(one), _mark(one.cluster) % _OF_TEXTS) for one in traces]
    joined: dict[int, int] = {}

    def root(mark: int) -> int:
        while mark in joined:
            mark = joined[mark]
        return mark

    for text, cluster in each:
        low, high = sorted((root(text or cluster), root(cluster or text)))
        if low != high:  # a cluster's mark is below a text's, and stays
            joined[high] = low
    return np.array([root(cluster or text) for text, cluster in each], dtype=np.uint64)


def asked_first(content: Content) -> IntArray:
    """Return the first question that asks the same as each, [n]: itself where it is no copy.

    >>> asked_first(np.array([7, 5, 7, 0, 0, 5], np.uint64)).tolist()
    [0, 1, 0, 3, 4, 1]
    """
    found = np.arange(len(content))
    asks = np.flatnonzero(content != NO_TEXT)
    _, first, which = np.unique(content[asks], return_index=True, return_inverse=True)
    found[asks] = asks[first][which]
    return found


def check_every_request(traces: TraceArrays) -> None:
    """Refuse questions that stand for several requests, of which one reply a model is known."""
    several = traces.requests > 1
    if several.any():
        raise InputError(
            f"{int(several.sum()):,} of {len(traces):,} questions stand for "
            f"{int(traces.requests[several].sum()):,} requests, and an import kept the first reply "
            "of each model alone, so a promise per request cannot be tested; give every request an "
            "id of its own (traces import --column id=COLUMN, or Farthing's own form), or leave "
            "--per request out"
        )


def n_distinct(content: Content) -> int:
    """Return how many questions there are if each is counted once.

    >>> n_distinct(np.array([7, 5, 7, 0, 0], np.uint64))
    4
    """
    return len(np.unique(asked_first(content)))


def one_of_each(content: Content) -> IntArray:
    """Return one row of each distinct question, in ascending order; chance draws it among copies.

    The lots are always the same and depend on no answer and no grade.

    >>> one_of_each(np.array([7, 5, 7, 0, 0], np.uint64)).tolist()
    [1, 2, 3, 4]
    """
    first, order = asked_first(content), np.random.default_rng(_ANY).permutation(len(content))
    _, drawn = np.unique(first[order], return_index=True)
    return np.sort(order[drawn])


def said(requests: int, distinct: int) -> str:
    """Say how many questions are distinct; empty where all are.

    >>> said(2_000, 400)
    '2,000 requests, 400 distinct questions'
    """
    if requests == distinct:
        return ""
    return f"{requests:,} requests, {distinct:,} distinct questions"


def note(requests: int, distinct: int) -> str:
    """Say how many questions are distinct, and what follows; empty where all are.

    >>> note(2_000, 400)
    '2,000 requests, 400 distinct questions; those that ask the same do the same'
    """
    some = said(requests, distinct)
    return f"{some}; those that ask the same do the same" if some else ""


@dataclass(frozen=True)
class CopyGroups:
    """Some questions, of which copies stay together."""

    rows: IntArray
    """All of them, in ascending order."""
    distinct: IntArray
    """One of each that ask the same, which chance drew, in ascending order."""
    _drawn: IntArray
    """[len(rows)] the row that was drawn among those that ask the same."""

    @classmethod
    def of(cls, content: Content, rows: IntArray) -> Self:
        """Find the copies among some questions.

        Args:
            content: [n] of all questions.
            rows: some of them, in ascending order.
        """
        drawn, first = one_of_each(content[rows]), asked_first(content[rows])
        of_first = np.arange(len(rows))
        of_first[first[drawn]] = drawn
        return cls(rows, rows[drawn], rows[of_first[first]])

    def all_of(self, distinct: IntArray) -> IntArray:
        """Return some distinct questions and their copies, in ascending order.

        >>> some = CopyGroups.of(np.array([7, 5, 7, 5, 3], np.uint64), np.arange(5))
        >>> some.distinct.tolist(), some.all_of(np.array([4, 2])).tolist()
        ([2, 3, 4], [0, 2, 4])
        """
        return self.rows[np.isin(self._drawn, distinct)]

    @property
    def said(self) -> str:
        """How many there are, and how many of them are distinct; empty where all are."""
        return said(len(self.rows), len(self.distinct))


def agreed_marks(split: NDArray[np.int8], content: Content) -> NDArray[np.int8]:
    """Return the part that each question is marked for, [n]; a copy that has no mark follows.

    Copies that are marked for several parts do what the first of these does, to train before to
    calibrate before to test, so that nothing is proved or measured on what has trained.

    Args:
        split: [n] index into `SPLITS`; -1 where the file names none.
        content: [n] what is asked.

    >>> agreed_marks(np.array([0, -1, -1, 2, 1]), np.array([7, 7, 5, 3, 3], np.uint64)).tolist()
    [0, 0, -1, 1, 1]
    """
    first = asked_first(content)
    agreed = np.full(len(split), len(SPLITS), dtype=np.int8)
    marked = split != NO_SPLIT
    np.minimum.at(agreed, first[marked], split[marked])
    found: NDArray[np.int8] = np.where(agreed == len(SPLITS), np.int8(NO_SPLIT), agreed)[first]
    return found


_MEASURED = (
    "round", "role", "answer", "input_tokens", "output_tokens", "latency_s", "confidence",
    "uncertainty",
)  # fmt: skip
"""What tells two calls apart; costs do not, as they may be worked out by another price."""
FEW = 20
"""Stored questions of which half say nothing: any log may have them again."""


@dataclass
class DuplicateCounter:
    """Counts questions of the same text, to the letter, as traces pass by; empty ones do not count.

    >>> from farthing.traces.base import Call
    >>> def trace(name: str, said: str) -> Trace:
    ...     return Trace(id=name, question="2 + 2?", calls=[Call(round=1, role="m", answer=said)])
    >>> repeats = DuplicateCounter()
    >>> [each.id for each in repeats.count([trace("a", "4"), trace("b", "4"), trace("c", "5")])]
    ['a', 'b', 'c']
    >>> repeats.copies, repeats.asked_again
    (1, 1)
    """

    texts: int = 0
    """Questions that passed by and have a text."""
    copies: int = 0
    """Of these, those that ask the same as another one, with the same calls."""
    stored: int = 0
    """Of the copies, those of a question that was stored before."""
    asked_again: int = 0
    """Of the texts, those of another question with other calls."""
    pair: tuple[str, str] | None = None
    """The first copy's id, after the id of what it copies."""
    other_pair: tuple[str, str] | None = None
    """The same of a question that was asked again."""
    _noted: set[bytes] = field(default_factory=set)
    _by_calls: dict[bytes, str] = field(default_factory=dict)
    _by_text: dict[bytes, str] = field(default_factory=dict)

    @classmethod
    def beside(cls, stored: Iterable[Trace]) -> Self:
        """Return a counter of traces that are to stand beside others."""
        repeats = cls()
        for trace in stored:
            if trace.question.strip():
                repeats._noted.add(repeats._note(trace)[0])
        return repeats

    def count(self, traces: Iterable[Trace]) -> Iterator[Trace]:
        """Yield traces that are to be added, and count those that repeat another one."""
        for trace in traces:
            if trace.question.strip():
                self.texts += 1
                calls, copied, asked = self._note(trace)
                if copied is not None:
                    self.copies += 1
                    self.stored += calls in self._noted
                    self.pair = self.pair or (copied, trace.id)
                elif asked is not None:
                    self.asked_again += 1
                    self.other_pair = self.other_pair or (asked, trace.id)
            yield trace

    def refuse(self, source: str, store: str) -> None:
        """Refuse what is in the store already, under other ids.

        Some texts come again in any log; so the copies must be at least half of the questions, or
        half of what is stored.
        """
        fewer = min(self.texts, max(len(self._noted), FEW))
        if self.pair is None or 2 * self.stored < fewer:
            return
        before, now = self.pair
        raise InputError(
            f"{store}: {self.stored:,} of the {self.texts:,} questions of {source} are stored "
            f"already under other ids, with the same text and the same answers ('{now}' is "
            f"'{before}' there); nothing was imported: what was imported once need not be again, "
            "and with the options of the first import (--column id=COLUMN) ids are the same"
        )

    def notes(self) -> Iterator[str]:
        """Yield a line for each way in which questions repeat others."""
        if self.pair is not None:
            yield twice(self.copies, self.pair)
        if self.other_pair is not None:
            before, now = self.other_pair
            n = self.asked_again
            have = f"{n:,} question has" if n == 1 else f"{n:,} questions have"
            yield (
                f"{have} the text of another one under another id, and other "
                f"answers ('{before}' and '{now}'); calls come together where ids are the same"
            )

    def _note(self, trace: Trace) -> tuple[bytes, str | None, str | None]:
        """Return the mark of a trace's calls, and who had these, and its text, before."""
        calls, text = _digest(*_asked(trace), _told(trace)), _digest(*_asked(trace))
        before = calls, self._by_calls.get(calls), self._by_text.get(text)
        self._by_calls.setdefault(calls, trace.id)
        self._by_text.setdefault(text, trace.id)
        return before


def repetition(traces: TraceArrays, records: Sequence[Trace]) -> str | None:
    """Say how many questions ask the same as another one, with the same calls; None: none does.

    Where one file was imported under two kinds of ids, that is all of them.

    Args:
        traces: the questions.
        records: what they were made of, which counts as an import does.
    """
    seen: dict[bytes, str] = {}
    pairs: list[tuple[str, str]] = []
    first = asked_first(traces.content)
    for row in np.flatnonzero(np.bincount(first, minlength=len(first))[first] > 1).tolist():
        name = str(traces.ids[row])
        said = _digest(*_asked(records[row]), _told(records[row]))
        if (before := seen.setdefault(said, name)) != name:
            pairs.append((before, name))
    return twice(len(pairs), pairs[0]) if pairs else None


def contradiction(traces: TraceArrays, records: Sequence[Trace]) -> str:
    """Say how many questions have other accepted answers than a copy of theirs; empty: none has."""
    first: dict[int, tuple[str, set[str]]] = {}
    others: list[str] = []
    for mark, record in zip(traces.content.tolist(), records, strict=True):
        gold = set(map(normaliser(record.task), record.gold))
        if gold and mark >= _OF_TEXTS:  # those of a cluster may ask anything
            name, accepted = first.setdefault(mark, (record.id, gold))
            others += [f"'{name}' and '{record.id}'"] if gold.isdisjoint(accepted) else []
    return (
        f"questions that have other accepted answers under another id: {len(others):,} (first "
        f"{others[0]}); a proof counts one of them, by its own: mend those that are wrong"
        if others
        else ""
    )


def twice(copies: int, pair: tuple[str, str]) -> str:
    """Say that questions are there twice, and what follows.

    >>> twice(1, ("a", "b")).partition("; ")[0]
    "1 question stands here twice, with the same text and answers under two ids ('a' and 'b')"
    """
    stand = "question stands" if copies == 1 else "questions stand"
    return (
        f"{copies:,} {stand} here twice, with the same text and answers under two ids "
        f"('{pair[0]}' and '{pair[1]}'); a proof counts each of them once, and a proof per request "
        "each time; if one log was read twice, leave one of each out"
    )


def _told(trace: Trace) -> bytes:
    calls = [tuple(repr(getattr(call, name)) for name in _MEASURED) for call in trace.calls]
    return repr(sorted(calls)).encode()


def _mark(part: str | None, *others: str) -> int:
    digest = _digest(part, *others)[:8]
    return int.from_bytes(digest, "little") | _OF_TEXTS if part else NO_TEXT


def _digest(*parts: str | bytes | None) -> bytes:
    digest = blake2b(digest_size=16)
    for part in parts:
        raw = part if isinstance(part, bytes) else (part or "").encode("utf-8", "surrogatepass")
        digest.update(len(raw).to_bytes(8, "little") + raw)
    return digest.digest()


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

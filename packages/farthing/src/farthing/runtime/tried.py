"""What a store remembers of a try: how its models are reached, and the proofs made on it.

Whoever buys, proves, and buys again until a proof succeeds would find one by chance. So proof k on
the same questions spends 0.6 / k^2 of delta: all proofs together spend delta at most, however
many there are. The same proof of the same questions again is no new one.

Of a store that no try made, the first proof spends all of delta and proof k after it as much as
above: all together at most 1.39 times delta.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from typing import Any, Self
from uuid import uuid4

import msgspec

from farthing.errors import InputError, StoreError
from farthing.models.openai_compatible import OpenAISettings
from farthing.promises import wording
from farthing.promises.base import Promise
from farthing.promises.kinds.parity import Parity
from farthing.promises.levels import exact_level
from farthing.runtime.replay import Replay
from farthing.runtime.trying import FIRST_LOOK
from farthing.traces.arrays import TraceArrays
from farthing.traces.fingerprint import question_hashes
from farthing.traces.store import STORES, Store, transaction

MARK = 8
"""Bytes of the hash of a question's id, and of what it asks."""
_TABLES = """
CREATE TABLE IF NOT EXISTS tried (id INTEGER PRIMARY KEY CHECK (id = 1), said TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS proofs (
    number INTEGER PRIMARY KEY,
    proof TEXT NOT NULL UNIQUE,
    questions BLOB NOT NULL,
    made_at TEXT DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))
);
"""


class Tried(msgspec.Struct, frozen=True, kw_only=True):
    """How the models of a try are reached, and what its requests have in common."""

    reference: str
    """The role that is paid for today."""
    logged: str = ""
    """What the log calls it, where `--reference` names it otherwise; empty: the same."""
    task: str
    """How answers are compared."""
    models: dict[str, OpenAISettings]
    """Role to how it is reached; the reference only where that is known."""
    prices: dict[str, dict[str, float]] = {}
    """Prices that were given, by model, in USD per million tokens."""
    system: str | None = None
    """The system prompt of all requests; None where there are several."""
    judge: str | None = None
    """Who says which answers are the same; None: the task does."""
    unread: int = 0
    """Answers of which the judge said neither yes nor no."""
    single: bool = True
    """Whether all requests are one question each, without a history."""
    temperature: float | None = None
    max_tokens: int = 0
    alike: bool = True
    """Whether temperature and limit are those of all requests."""

    @classmethod
    def of(
        cls, replay: Replay, prices: dict[str, dict[str, float]], judge: str | None = None
    ) -> Self:
        """Return what is to be remembered of a replay, with the prices that were given."""
        said = replay.asked_alike()
        return cls(
            reference=replay.role,
            logged=replay.reference,
            task=replay.task.name,
            models={
                name: section.settings
                for name, section in replay.models.sections.items()
                if isinstance(section.settings, OpenAISettings)
            },
            prices=prices,
            judge=judge,
            **said,
        )


def remember(store: Store, tried: Tried) -> None:
    """Write down how models are reached; what earlier tries said of other models stays."""
    _make(store)
    before = recall(store)
    if before is not None:
        tried = msgspec.structs.replace(
            tried,
            models={**before.models, **tried.models},
            prices={**before.prices, **tried.prices},
            unread=before.unread,
        )
    _write(store, tried)


def recall(store: Store) -> Tried | None:
    """Return what a store remembers; None where no try made it."""
    found = store.connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name = 'tried'"
    ).fetchone()
    row = found and store.connection.execute("SELECT said FROM tried").fetchone()
    return msgspec.json.decode(row[0], type=Tried) if row else None


def judged_whole(store: Store) -> None:
    """Write down that the judge was asked of every answer that a store has."""
    tried = recall(store)
    if tried is not None:
        _write(store, msgspec.structs.replace(tried, unread=_without_verdict(store, tried)))


def check_judged(path: Path) -> None:
    """Refuse the store of a try in which answers wait for what the judge says of them.

    Raises:
        InputError: some do.
    """
    with Store.read(path) as store:
        tried = recall(store)
        if tried is None or tried.judge is None:
            return
        waiting = _without_verdict(store, tried) - tried.unread
    if waiting > 0:
        raise InputError(
            f"{path}: {tried.judge} was not asked yet about {waiting:,} answers, so nothing can be "
            "proved; run the same `farthing try ... --judge` again, with a larger --max-cost where "
            "that ended it"
        )


def usual_promise(tries: Sequence[Path]) -> Promise | None:
    """Return what is promised where a judge said what is right; None: as of other questions."""
    judged = [tried for tried in map(_recalled, tries) if tried is not None and tried.judge]
    return Parity(judged[0].reference) if judged else None


def look(store: Store, arrays: TraceArrays, proof: Any) -> int:
    """Write down, before it is made, that a proof looks at some questions; return its number k.

    Every earlier proof that shares a question counts, whatever was bought for it since.

    Args:
        store: that the questions are from.
        arrays: the questions.
        proof: JSON values that tell this proof from another one of the same traces.
    """
    _make(store)
    asked = {sha256(str(name).encode()).digest()[:MARK] for name in arrays.ids}
    asked |= {text.to_bytes(MARK, "little") for text in arrays.content.tolist() if text}
    content = [sorted(question_hashes(arrays)), proof]
    name = sha256(msgspec.json.encode(content, order="sorted")).hexdigest()
    with transaction(store.connection):
        made = store.connection.execute("SELECT proof, questions FROM proofs ORDER BY number")
        earlier = [
            known for known, packed in made.fetchall() if known == name or asked & _unpacked(packed)
        ]
        if name in earlier:
            return earlier.index(name) + 1
        store.connection.execute(
            "INSERT INTO proofs (proof, questions) VALUES (?, ?)", (name, b"".join(sorted(asked)))
        )
    return len(earlier) + 1


def stores_of(paths: Sequence[Path]) -> tuple[Path, ...]:
    """Return which of some files are stores, each of which counts its proofs."""
    return tuple(path for path in paths if path.suffix in STORES)


def are_tries(paths: Sequence[Path]) -> tuple[Path, ...]:
    """Return which of some files are stores that a try made."""
    return tuple(path for path in stores_of(paths) if _recalled(path) is not None)


@dataclass(frozen=True)
class Look:
    """A proof on the questions of stores, before it is made."""

    promise: Promise
    """At the share of its delta that the proof may spend."""
    note: str = ""
    """What to say of it; empty: nothing."""
    conditions: tuple[str, ...] = ()
    """What its certificate rests on besides: who said what is right."""


def at_next_look(
    stores: Sequence[Path], arrays: TraceArrays, asked: Promise, how: Sequence[Any] = ()
) -> Look:
    """Return a promise at the share of its delta that a proof may spend, and what to say of it.

    Where the questions are of no store, or the promise has no delta, it is returned as it is. The
    look is written down before the proof is made.

    Args:
        stores: those that the questions are from.
        arrays: the questions.
        asked: the promise, with the delta of all proofs on them together.
        how: JSON values that tell the proof from another one of this promise on these questions;
            where there are none, it counts as a new one each time, and on those of tries alone.

    Raises:
        InputError: answers wait for what the judge of a try says of them.
    """
    conditions = said_right(stores, asked)
    stores = stores if how else are_tries(stores)
    delta = getattr(asked, "delta", None)
    if not stores or delta is None:
        return Look(asked, conditions=conditions)
    tries = are_tries(stores)
    try:
        looks = [_looked(path, arrays, [repr(asked), *(how or [uuid4().hex])]) for path in stores]
    except StoreError as problem:
        if tries:
            raise
        return Look(asked, f"this proof is not counted, as a store cannot be written: {problem}")
    k = max(looks)
    share = share_of_look(k) if tries or k > 1 else Fraction(1)
    spent = exact_level(delta) * share
    of = " and ".join(path.name for path in stores)
    said = f"this is proof {k} on questions of {of}; all proofs on them share the risk of error of "
    said += f"{float(exact_level(delta)):g}, and this one has {float(spent):.3g} of it"
    if not tries:
        said = said.replace("share the risk of error of ", "have at most 1.39 times the risk of ")
        conditions = (*conditions, wording.look(k)) if k > 1 else conditions
    at_share: Promise = replace(asked, delta=spent)  # type: ignore[type-var]
    return Look(at_share if share < 1 else asked, said if share < 1 else "", conditions)


def _looked(path: Path, arrays: TraceArrays, proof: Sequence[Any]) -> int:
    with Store.open(path) as store:
        return look(store, arrays, proof)


def said_right(tries: Sequence[Path], asked: Promise) -> tuple[str, ...]:
    """Return who said what is right, for the certificate of a promise on the questions of tries.

    Raises:
        InputError: answers wait for what the judge of a try says of them.
    """
    for path in tries:
        check_judged(path)
    found = [tried for tried in map(_recalled, tries) if tried is not None]
    said = [wording.judged(one.judge, one.reference) for one in found if one.judge]
    return tuple(dict.fromkeys(said)) if asked.needs_gold else ()


def _unpacked(packed: bytes) -> set[bytes]:
    return {packed[at : at + MARK] for at in range(0, len(packed), MARK)}


def share_of_look(k: int) -> Fraction:
    """Return what of delta proof k spends; over all k it is less than 1.

    >>> float(share_of_look(1)), float(share_of_look(2))
    (0.6, 0.15)
    """
    return FIRST_LOOK / k**2


def _make(store: Store) -> None:
    store.connection.executescript(_TABLES)


def _write(store: Store, tried: Tried) -> None:
    text = msgspec.json.encode(tried).decode()
    store.connection.execute("INSERT OR REPLACE INTO tried (id, said) VALUES (1, ?)", (text,))


def _recalled(path: Path) -> Tried | None:
    with Store.read(path) as store:
        return recall(store)


def _without_verdict(store: Store, tried: Tried) -> int:
    query = (
        "SELECT count(*) FROM calls WHERE trim(answer) <> '' AND correct IS NULL"
        " AND trace IN (SELECT trace FROM calls WHERE role = ?)"
    )
    return int(store.connection.execute(query, (tried.reference,)).fetchone()[0])

"""Feedback: what somebody who knows says of a reply, at once or days later.

A grade of an audited request enters the interval once, the first that comes; what is sent later is
kept in its place and shown, and moves no interval. Without a comment it leaves the one before. A
grade of any other request is volunteered: who sends one may have chosen which.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any
from uuid import uuid4

import msgspec

from farthing.tasks.base import Particular, Task, is_answer
from farthing_gateway.config_sections import AUDIT
from farthing_gateway.errors import ApiError
from farthing_gateway.monitoring.audits import Audit, find_audit, grade
from farthing_gateway.monitoring.events import Volunteered, event_row, inserted, under
from farthing_gateway.monitoring.promises import is_difference, is_right, kept
from farthing_gateway.recording.record import RequestRecord
from farthing_gateway.recording.text_retention import TextRetention
from farthing_gateway.recording.traffic import Traffic
from farthing_gateway.recording.traffic_rows import plain
from farthing_gateway.request_schema import RequestError
from farthing_gateway.storage.database import Database, Step, microseconds

MOST_ID, MOST_GOLD, MOST_COMMENT = 64, 10_000, 2_000
"""Most characters of an id, an accepted answer, and a comment."""
ID = "^[A-Za-z0-9_-]+$"
"""What the id of a request looks like."""
TRIES = 20
"""How often a write is tried again that another one to the same request was faster than."""

_FIND = "SELECT grade, revision FROM feedback WHERE id = $1"
_INSERT = """
INSERT INTO feedback (id, at_us, key_id, grade, gold, comment, revision, writer)
VALUES ($1, $2, $3, $4, $5, $6, 1, $7) ON CONFLICT DO NOTHING"""
_UPDATE = """
UPDATE feedback SET at_us = $2, key_id = $3, grade = $4, gold = $5,
    comment = COALESCE($6, comment), revision = revision + 1, writer = $7
WHERE id = $1 AND revision = $8"""
_MINE = "WHERE EXISTS (SELECT 1 FROM feedback WHERE id = $1 AND writer = $8)"
_WRITTEN = "UPDATE feedback SET writer = $2 WHERE id = $1 AND writer = $2"
_GOLD = "SELECT gold FROM feedback WHERE id = $1"


class Feedback(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The body of `POST /v1/feedback`."""

    trace_id: Annotated[str, msgspec.Meta(max_length=MOST_ID, pattern=ID)]
    """The request's, as its reply says it."""
    grade: Annotated[float, msgspec.Meta(ge=0, le=1)] | bool | None = None
    """Whether the answer is right, or how right it is."""
    gold: Annotated[str, msgspec.Meta(min_length=1, max_length=MOST_GOLD)] | None = None
    """In place of a grade: an accepted answer, by which the task grades what was returned."""
    comment: Annotated[str, msgspec.Meta(max_length=MOST_COMMENT)] | None = None


@dataclass(frozen=True)
class Noted:
    """What became of feedback."""

    trace_id: str
    grade: float | None
    """As it was given, or as the task says; None where the answers were not kept."""
    audit: bool
    """Whether chance had drawn the request to be graded by feedback: then the grade is in the
    interval."""
    says: str

    def to_json(self) -> dict[str, Any]:
        """Return the reply's body."""
        return {"object": "feedback", **msgspec.to_builtins(self)}


def read_feedback(body: bytes) -> Feedback:
    """Read the body of a request.

    >>> read_feedback(b'{"trace_id": "a", "grade": true}').grade
    True
    """
    try:
        said = msgspec.json.decode(body, type=Feedback)
    except msgspec.ValidationError as error:
        raise RequestError(f"the feedback does not fit: {error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RequestError(f"the body is not JSON: {error}") from None
    if (said.grade is None) == (said.gold is None):
        raise RequestError("give either 'grade' or 'gold'")
    if said.gold is not None and not is_answer(said.gold):
        raise RequestError("'gold' is blank; give an accepted answer", "gold")
    return said


@dataclass(frozen=True)
class Grading:
    """Takes feedback."""

    database: Database
    """Of a gateway."""
    traffic: Traffic
    keeping: TextRetention
    """Which texts are kept."""

    async def note(
        self, said: Feedback, passed: RequestRecord, task: Task, key: str | None
    ) -> Noted:
        """Write feedback, and grade the request's audit by it, all in one transaction.

        Args:
            said: the feedback.
            passed: the request that it is about.
            task: says which answers are right.
            key: the id of the key that sent it.
        """
        if said.gold is not None and isinstance(task, Particular) and not task.accepts(said.gold):
            text = f"no answer to the task {task.name} can be this; see what its answers look like"
            raise ApiError(422, text, param="gold")
        right, (gold, comment) = _grade(said, passed, task), _kept(self.keeping, said)
        audit = await find_audit(self.database, passed.id)
        for _ in range(TRIES):
            value = _value(said, passed, task, audit, right)
            writer, at = uuid4().hex, microseconds(datetime.now(UTC))
            before = await self.database.read(_FIND, passed.id)
            row = (passed.id, at, key, right, gold, comment, writer)
            first = Step(_UPDATE, [(*row, before[0][1])]) if before else Step(_INSERT, [row])
            was = before[0][0] if before else None
            steps = [first, *_counted(passed, audit, right, value, (was, writer))]
            written = Step(_WRITTEN, [(passed.id, writer)])
            if not await self.database.write(*steps, written):
                continue
            now = await find_audit(self.database, passed.id)
            if now is not None and audit is not None and now.state != audit.state:
                # Its models were asked meanwhile, so that it may be graded now.
                audit, passed = now, await self.traffic.find(passed.id) or passed
                continue
            return Noted(passed.id, right, _is_drawn(audit), _says(passed, audit, right, value))
        raise ApiError(409, "others grade this request; send it again", code="conflict")


async def gold_of(database: Database, id: str) -> str | None:  # noqa: A002
    """Return the accepted answer that somebody sent for a request; None: nobody did."""
    rows = await database.read(_GOLD, id)
    return rows[0][0] if rows else None


def _grade(said: Feedback, passed: RequestRecord, task: Task) -> float | None:
    if said.grade is not None:
        return float(said.grade)
    gold = said.gold or ""
    if passed.decided is not None:
        right = is_right(passed.decided, gold, task)
        return None if right is None else float(right)
    answers = [call.answer for call in passed.trace.calls if call.role == passed.answered_by]
    known = [answer for answer in answers if answer is not None]
    return float(task.grade(known[0], [gold])) if known else None  # the first is the reply's


def _value(
    said: Feedback, passed: RequestRecord, task: Task, audit: Audit | None, right: float | None
) -> float | None:
    """Return what an audit's grade is by this; None: it says nothing of its promise yet."""
    decided = passed.decided
    if audit is None or decided is None or not _is_drawn(audit):
        return None
    if said.gold is None:
        return None if is_difference(decided.kind) else right
    whole = audit.state == "done"
    return kept(decided, passed.trace.calls, said.gold, task, whole=whole)


def _counted(
    passed: RequestRecord,
    audit: Audit | None,
    right: float | None,
    value: float | None,
    write: tuple[float | None, str],
) -> list[Step]:
    found, (was, writer) = under(passed), write
    if audit is not None and _is_drawn(audit):
        return [] if value is None else grade(audit, value, passed.group, writer)
    if found is None or right is None:
        return []
    event = Volunteered(group=passed.group, value=right, was=was)
    row = event_row(passed.id, found, event, datetime.now(UTC), writer)
    return [inserted(row, _MINE, writer)]


def _is_drawn(audit: Audit | None) -> bool:
    return audit is not None and audit.purpose == AUDIT and audit.graded_by == "feedback"


def _kept(keeping: TextRetention, said: Feedback) -> tuple[str | None, str | None]:
    if not keeping.prompts:
        return None, None
    try:
        comment = None if said.comment is None else keeping.text(said.comment)
        same = said.gold is not None and keeping.text(said.gold) == said.gold
    except Exception:  # noqa: BLE001 - a hook that fails lets no text through
        return None, None
    return plain(said.gold) if same else None, plain(comment)


def _says(
    passed: RequestRecord, audit: Audit | None, right: float | None, value: float | None
) -> str:
    if right is None:
        return (
            "The answers were not kept as they were given, so nothing can be compared; send a "
            "grade instead."
        )
    if passed.certificate is None:
        return "It is kept; nothing was promised of this reply."
    if not _is_drawn(audit):
        why = "no audit drew this request for a grade."
        if audit is not None and audit.purpose == AUDIT:
            why = (
                "the audit for which chance drew this request is graded by the reference's answer."
            )
        return f"It is kept and shown as volunteered: {why}"
    if value is not None:
        return "It grades an audit; of several grades the first enters the interval."
    if audit is not None and audit.state == "failed":
        return "It is kept; its audit was given up, since a model could not be asked."
    return (
        "It is kept. An accepted answer grades the audit once the other models were asked; where "
        "prompts are not kept, send it again then."
    )

"""What of a promise can be watched in live traffic, and whether one reply kept it.

What counts is what the certificate was proved of: for an agreement, an answer that is the same as
the reference's under the task, a missing one never; for sets, a right answer among those returned,
or no model that had one.
"""

from collections.abc import Sequence

import msgspec

from farthing.promises.certificate import Certificate, payload_of
from farthing.runtime.answer import Answer
from farthing.tasks.base import Task, is_answer
from farthing.traces.base import Call
from farthing.traces.trace_kind import is_reply
from farthing_gateway.recording.audit_sampling import Draw
from farthing_gateway.recording.record import PolicyDecision, answered_directly


def is_difference(kind: str) -> bool:
    """Return whether a kind promises a difference of accuracies, watched as a number in [0, 1]."""
    return payload_of(kind).difference


def watched(certificate: Certificate, *, pooled: bool = True) -> PolicyDecision:
    """Return what is watched of a certificate's promise; what its reply was is filled in later.

    Args:
        certificate: of the bundle that decides.
        pooled: whether every model answers by itself, so that an audit can ask those that were not.

    >>> from fractions import Fraction
    >>> from farthing.promises.kinds.agreement import AgreementPromise
    >>> promise = AgreementPromise(
    ...     epsilon=Fraction(1, 20), delta=Fraction(1, 20), points=2, point=0, reference="large")
    >>> found = watched(Certificate(promise=promise))
    >>> found.kind, found.graded_by, found.promised, found.reference
    ('agreement', 'reference', 0.95, 'large')
    """
    promise, can = certificate.promise, certificate.promise.watched
    return PolicyDecision(
        kind=promise.kind(),
        graded_by="reference" if can.by_reference and pooled else "feedback",
        promised=can.promised,
        reference=can.reference,
        pooled=pooled,
    )


def tested(decided: PolicyDecision) -> bool:
    """Return whether what audits find can be tested against the promise.

    Not where a miss may be one that the promise allows for and nobody can tell: sets of questions
    that no model could answer, where the other calls cannot be made.
    """
    return decided.promised is not None and (
        decided.pooled or not payload_of(decided.kind).whole_sets
    )


def replied(
    decided: PolicyDecision, answer: Answer, draw: Draw, explore: float, task: Task
) -> PolicyDecision:
    """Fill in what a reply was.

    Args:
        decided: what is watched of the promise.
        answer: what came of the question.
        draw: what chance drew it for.
        explore: the probability of exploration.
        task: says which answers are the same.
    """
    returned = given_answers(decided.kind, answer)
    calls = [*answer.trace.calls, *([answer.escalated] if answer.escalated else [])]
    said = [call for call in calls if call.error is None and not is_reply(call.role)]
    first = returned[0] if returned else None
    alike = [same(call.answer, first, task) for call in said]
    return msgspec.structs.replace(
        decided,
        returned=returned,
        agreement=sum(alike) / len(alike) if alike else None,
        confidence=answer.answers[0].score if answer.answers else None,
        ended_by=answer.ended_by,
        explore=explore,
        explored=draw.explored,
    )


def given_answers(kind: str, answer: Answer) -> tuple[str, ...]:
    """Return the answers that a client gets: of a promise about sets all, else the best."""
    texts = tuple(one.text for one in answer.answers)
    if texts:
        return texts if payload_of(kind).whole_sets else texts[:1]
    alone = answer.escalated.answer if answer.escalated is not None else answer.best
    return () if alone is None else (alone,)


def of_difference(difference: float) -> float:
    """Return a difference of two shares, in [-1, 1], as a number in [0, 1].

    >>> of_difference(-0.02)
    0.49
    """
    return (difference + 1) / 2


def agrees(decided: PolicyDecision, calls: Sequence[Call], task: Task) -> bool | None:
    """Return whether the returned answer is the reference's; None where that is not known.

    A missing answer is never the same as another.
    """
    theirs = _of(calls, decided.reference)
    if theirs is None or None in decided.returned:
        return None
    return bool(decided.returned) and same(decided.returned[0], theirs.answer, task)


def kept(
    decided: PolicyDecision, calls: Sequence[Call], gold: str, task: Task, *, whole: bool
) -> float | None:
    """Return in [0, 1] how an accepted answer says that a promise was kept; None: not known yet.

    Args:
        decided: the promise, and what was returned.
        calls: what is known of what models say to the question.
        gold: an accepted answer.
        task: says which answers are right.
        whole: whether `calls` are all that there will be.
    """
    right = is_right(decided, gold, task)
    if right is None:
        return None
    if is_difference(decided.kind):
        theirs = _of(calls, decided.reference)
        return None if theirs is None else of_difference(right - task.grade(theirs.answer, [gold]))
    if not payload_of(decided.kind).whole_sets or not decided.pooled:
        return float(right)
    # Also where it is right: else what is right would be graded sooner than what is not.
    own = [call for call in calls if not decided.pool or call.role in decided.pool]
    known = any(task.grade(call.answer, [gold]) for call in own if not is_reply(call.role))
    return float(right or not known) if whole else None


def is_right(decided: PolicyDecision, gold: str, task: Task) -> bool | None:
    """Return whether a right answer was returned; None where answers were not kept."""
    if any(task.grade(answer, [gold]) for answer in decided.returned):
        return True
    return None if None in decided.returned else False


def same(one: str | None, other: str | None, task: Task) -> bool:
    """Return whether two answers are the same under a task; a missing one never is."""
    if one is None or other is None or not (is_answer(one) and is_answer(other)):
        return False
    return task.normalise(one) == task.normalise(other)


def _of(calls: Sequence[Call], role: str | None) -> Call | None:
    """Return the call of a role; of two the first counts, as where a bundle was proved."""
    return next((call for call in calls if call.role == role and answered_directly(call)), None)

"""Which questions a collection has yet to ask, by what its store has."""

from collections.abc import Iterable, Sequence

from farthing.errors import InputError
from farthing.runtime.protocol import Protocol, RecordingPlan
from farthing.tasks.base import Question
from farthing.traces.base import Trace
from farthing.traces.store import Store


def lacking(
    questions: Sequence[Question], recording: RecordingPlan, store: Store
) -> tuple[list[Question], dict[str, Trace]]:
    """Return the questions that are still to be asked, and what the store has of these."""
    if recording.stored is None:
        return unrecorded(questions, recording.protocol, store.traces()), {}
    roles = {agent.role for _, agent in recording.protocol.turns()}
    asked = {question.id for question in questions}
    stored = {trace.id: trace for trace in store.traces() if trace.id in asked}
    whole = {name for name, trace in stored.items() if roles <= {call.role for call in trace.calls}}
    return [question for question in questions if question.id not in whole], stored


def unrecorded(
    questions: Sequence[Question], protocol: Protocol, stored: Iterable[Trace]
) -> list[Question]:
    """Return the questions that have no trace yet.

    Raises:
        InputError: one has a trace of another kind. A thought may have ended before its last cut.
    """
    ids = {question.id for question in questions}
    turns = sorted((number, agent.role) for number, agent in protocol.turns())
    for trace in stored:
        if trace.id not in ids:
            continue
        ids.remove(trace.id)
        made = sorted((call.round, call.role) for call in trace.calls)
        ended = any(call.ended for call in trace.calls)
        same = made == (turns[: len(made)] if ended else turns)
        if not same or trace.independent != protocol.independent:
            raise InputError(
                f"the store has question '{trace.id}' with other rounds, roles or another mode "
                "than this job records; collect into another store"
            )
    return [question for question in questions if question.id in ids]

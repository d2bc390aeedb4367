"""A controller and its experts as ordinary traces of a pool, for any method and any promise.

Each expert is a model of the pool, and so is the controller in each of its modes: what an episode
answers and what it costs, its own writing and all calls included. So a mode is held against a
method on features, and is certified, as any single model is.
"""

from collections.abc import Sequence

from msgspec import structs

from farthing.errors import InputError
from farthing.money import usd_from_nano
from farthing.tasks.base import Question, Task
from farthing.traces.arrays import TraceArrays
from farthing.traces.assemble import assemble
from farthing.traces.base import Call, CallError, SplitName, Trace
from farthing.traces.pool import in_order, is_pool
from farthing.traces.trace_kind import CONTROLLER
from farthing_lab.corl.base import Episode, Mode
from farthing_lab.corl.evaluation import greedy
from farthing_lab.corl.population import alone, check_replies
from farthing_lab.corl.rollouts import ExpertReply
from farthing_lab.corl.session import PoolSession

ALONE = f"{CONTROLLER}-alone"
"""The role of the controller where it may not call."""
Column = Sequence[Call]
"""A call a question, all of one role."""


def role_of(mode: Mode) -> str:
    """Return the role of a controller in a mode.

    >>> role_of(Mode("low", 0))
    'controller-low'
    """
    return f"{CONTROLLER}-{mode.name}"


def experts_of(
    opened: PoolSession, questions: Sequence[Question], names: Sequence[str]
) -> list[Column]:
    """Return what experts reply, a column each."""
    found: list[Column] = []
    for name in names:
        replies = opened.experts.ask([(name, question.text) for question in questions])
        check_replies([name], [replies])
        model = opened.pool.models.sections[name].settings.model
        found.append([_replied(name, model, reply, opened.task) for reply in replies])
    return found


def modes_of(
    opened: PoolSession, questions: Sequence[Question], modes: Sequence[Mode]
) -> list[Column]:
    """Return what the controller's episodes come to, a column a mode; the likeliest tokens."""
    return [
        [_played(role_of(mode), one, opened) for one in greedy(opened, questions, mode)]
        for mode in modes
    ]


def alone_of(opened: PoolSession, questions: Sequence[Question]) -> Column:
    """Return what the controller answers where it may not call."""
    return [_played(ALONE, episode, opened) for episode in alone(opened, questions)]


def traces_of(
    opened: PoolSession, questions: Sequence[Question], part: SplitName, columns: Sequence[Column]
) -> list[Trace]:
    """Return questions of a part as traces of a pool, with a call of each column."""
    rows = zip(questions, zip(*columns, strict=True), strict=True)
    return [
        Trace(
            id=question.id,
            question=question.text,
            gold=list(question.gold),
            calls=list(calls),
            task=opened.task.name,
            group=question.group,
            split=part,
            **question.beside,
            independent=True,
        )
        for question, calls in rows
    ]


def laid_out(traces: Sequence[Trace], roles: Sequence[str]) -> TraceArrays:
    """Return these roles of traces as arrays, in this order whatever they cost.

    So no question has a say in how others are laid out.
    """
    kept = [
        structs.replace(trace, calls=[call for call in trace.calls if call.role in roles])
        for trace in traces
    ]
    arrays = assemble(kept)
    if not is_pool(arrays):
        raise InputError("these traces are no pool of models; use the protocol paper")
    return in_order(arrays, [arrays.roles.index(role) for role in roles])


def _replied(role: str, model: str, reply: ExpertReply, task: Task) -> Call:
    usage = reply.usage
    return Call(
        round=1,
        role=role,
        model=model,
        answer=None if reply.error else task.normalise(reply.text),
        input_tokens=usage.input_tokens if usage else None,
        output_tokens=usage.output_tokens if usage else None,
        cost_usd=usd_from_nano(reply.cost_nano),
        error=CallError(type="failed", message=reply.error) if reply.error else None,
    )


def _played(role: str, episode: Episode, opened: PoolSession) -> Call:
    wrote = [one for one in episode.segments if one.author == "controller"]
    answer = episode.answer
    return Call(
        round=1,
        role=role,
        model=opened.pool.models.sections[opened.pool.controller].settings.model,
        answer=None if answer is None else opened.task.normalise(answer),
        output_tokens=sum(len(one.ids) for one in wrote),
        cost_usd=usd_from_nano(episode.cost_nano),
    )

"""What CORL's commands show: tables for a terminal, and the same as JSON values."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from farthing.money import dollars, rounded_usd, significant, usd_from_nano
from farthing.process.value import AnswerFigures
from farthing.reports.table import Table as ReportTable
from farthing_lab.corl.certificate import Certified, role_of
from farthing_lab.corl.evaluation import ControllerEvaluation, IntervalEstimate, ModeEvaluation
from farthing_lab.corl.live import LiveAnswer
from farthing_lab.corl.plan import PlanOutcome

Record = dict[str, Any]
SHARES = ("accuracy", "call_ratio", "over_budget", "reward")
"""What has an interval in each mode, beside the cost."""


def evaluation_record(found: ControllerEvaluation) -> Record:
    """Return an evaluation as JSON values; `NAME_interval` stands beside each estimate.

    Money is in whole nano-dollars.
    """
    return {
        "pool": found.pool,
        "questions": found.questions,
        "seed": found.seed,
        "hard_budget_usd": found.hard_usd,
        "modes": {one.mode.name: _mode(one) for one in found.modes},
    }


def _mode(found: ModeEvaluation) -> Record:
    record: Record = {"budget_usd": usd_from_nano(found.mode.budget_nano)}
    record |= _estimate("cost_usd", _rounded(found.cost_usd))
    for name in SHARES:
        record |= _estimate(name, getattr(found, name))
    single = found.best_single
    return {
        **record,
        "malformed": found.malformed,
        "refused": found.refused,
        "failed": found.failed,
        "dearest_usd": found.dearest_usd,
        "best_plan": _outcome(found.best_plan),
        "best_plan_in_hindsight": _outcome(found.hindsight),
        "baselines": {name: _outcome(one) for name, one in found.baselines.items()},
        "best_single": {
            "expert": single.expert,
            "accuracy": single.accuracy,
            "cost_usd": rounded_usd(single.cost_usd),
            **_estimate("accuracy_difference", single.accuracy_difference),
            **_estimate("cost_difference_usd", _rounded(single.cost_difference_usd)),
        },
        "reward_ahead_of": {
            name: {"value": one.value, "interval": [one.low, one.high]}
            for name, one in found.ahead.items()
        },
        "cells": [{**asdict(cell), "cost_usd": rounded_usd(cell.cost_usd)} for cell in found.cells],
    }


def _estimate(name: str, one: IntervalEstimate) -> Record:
    return {name: one.value, f"{name}_interval": [one.low, one.high]}


def _rounded(one: IntervalEstimate) -> IntervalEstimate:
    return IntervalEstimate(*map(rounded_usd, (one.value, one.low, one.high)))


def _outcome(one: PlanOutcome) -> Record:
    return {
        "reward": one.reward,
        "accuracy": one.accuracy,
        "cost_usd": rounded_usd(usd_from_nano(one.cost_nano)),
        "call_ratio": one.call_ratio,
        "over_budget": one.over_budget,
    }


def evaluation(found: ControllerEvaluation) -> RenderableType:
    """Return an evaluation as tables: the modes, then other ways to choose."""
    hard = "" if found.hard_usd is None else f", no more than ${significant(found.hard_usd)} each"
    head = f"{found.questions:,} fresh questions of the pool {found.pool} (seed {found.seed}){hard}"
    best = found.modes[-1].best_single
    explained = (
        "Below each figure its 95 % interval. B: the mode's budget, in USD. called: share of the "
        "questions on which an expert was; over B: share that cost more; reward: share right "
        "within B; best plan: the reward of the best fixed plan, chosen on other questions."
    )
    beside = (
        f"{found.modes[-1].mode.name} beside {best.expert} alone, the best single expert: accuracy "
        f"{_signed(best.accuracy_difference)}, cost a question "
        f"{_signed(best.cost_difference_usd, '$')}."
    )
    others = (
        "Instead of it: the controller writes no more than a call and its answer, which is in the "
        "cost. What threshold costs, and how often it is right, is of the mode "
        f"{found.modes[-1].mode.name}."
    )
    if found.hard_usd is not None:
        others += f" They are not held to ${significant(found.hard_usd)} a question."
    return Group(
        Text(f"{head}\n"),
        _modes(found),
        Text(f"\n{explained}{_went_wrong(found)}\n"),
        _others(found),
        Text(f"\n{others}\n\n{beside}"),
    )


def _went_wrong(found: ControllerEvaluation) -> str:
    """Say how often a turn could not be read, and a call was refused or failed; mostly nothing."""
    said = []
    for one in found.modes:
        if one.malformed:
            unread = f"turns that could not be read on {one.malformed:.3f} of the questions"
            said.append(f"{one.mode.name} {unread}")
        for n, what in ((one.refused, "refused"), (one.failed, "failed")):
            said += [f"{one.mode.name} calls {what} {n:,}"] * bool(n)
    return f" Not as it should be: {'; '.join(said)}." if said else ""


def _modes(found: ControllerEvaluation) -> Table:
    table = _table(
        *("Mode", "USD a question", "accuracy", "called", "over B", "reward", "best plan")
    )
    for one in found.modes:
        cost = one.cost_usd
        table.add_row(
            f"{one.mode.name}\nB {significant(usd_from_nano(one.mode.budget_nano), 2)}",
            f"{significant(cost.value)}\n{significant(cost.low, 2)}–{significant(cost.high, 2)}",
            *map(_shared, (one.accuracy, one.call_ratio, one.over_budget, one.reward)),
            f"{one.best_plan.reward:.3f}",
        )
    return table


def _shared(one: IntervalEstimate) -> str:
    return f"{one.value:.3f}\n{one.low:.2f}–{one.high:.2f}"


def _others(found: ControllerEvaluation) -> Table:
    """Return what others come to; cost and accuracy of `threshold` are those of the last mode."""
    names = [one.mode.name for one in found.modes]
    table = _table("Instead of it", "USD a question", "accuracy", *(f"reward {n}" for n in names))
    for name, last in found.modes[-1].baselines.items():
        rewards = [f"{one.baselines[name].reward:.3f}" for one in found.modes]
        cost = significant(usd_from_nano(last.cost_nano))
        table.add_row(name, cost, f"{last.accuracy:.3f}", *rewards)
    return table


def _table(first: str, *others: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=0, pad_edge=False, show_edge=False)
    table.add_column(first, no_wrap=True)
    for name in others:
        least = len(name) if len(name) < 10 else None
        table.add_column(name, justify="right", overflow="fold", min_width=least)
    return table


def _signed(one: IntervalEstimate, unit: str = "") -> str:
    def said(value: float) -> str:
        size = significant(abs(value)) if unit else f"{abs(value):.3f}"
        return f"{'−' if value < 0 else '+'}{unit}{size}"

    return f"{said(one.value)} (95 % interval {said(one.low)} to {said(one.high)})"


def live_record(live: LiveAnswer) -> Record:
    """Return an answered question as JSON values."""
    episode, dearest = live.done.episode, live.dearest
    nano = dearest.cost_nano
    return {
        "question": episode.question,
        "answer": episode.answer,
        "mode": live.mode.name,
        "budget_usd": usd_from_nano(live.mode.budget_nano),
        "hard_budget_usd": None if live.hard_nano is None else usd_from_nano(live.hard_nano),
        "cost_usd": usd_from_nano(episode.cost_nano),
        "over_budget": episode.over_budget,
        "ended_by": episode.ended_by,
        "why": live.done.why,
        "refused": episode.refused,
        "malformed": episode.malformed,
        "steps": [{"by": who, "text": text, "cost_usd": usd} for who, text, usd in steps(live)],
        "dearest": {
            "expert": dearest.expert,
            "cost_usd": None if nano is None else usd_from_nano(nano),
            "measured": dearest.measured,
        },
    }


def steps(live: LiveAnswer) -> list[tuple[str, str, float | None]]:
    """Return who wrote what for how much; messages of the environment cost nothing."""
    episode = live.done.episode
    own = [call for call in live.done.trace.calls if call.role == "controller"]
    calls, found = list(episode.calls), []
    turn = 0
    for segment in episode.segments:
        if segment.author == "controller":
            cost = own[turn].cost_usd if turn < len(own) else None
            turn += 1
            found.append(("controller", segment.text, cost))
        elif calls and calls[0].turn == turn:
            call = calls.pop(0)
            found.append((call.expert, segment.text, usd_from_nano(call.cost_nano)))
        else:
            found.append(("", segment.text, None))
    return found


def live(found: LiveAnswer) -> RenderableType:
    """Return an answered question as its steps, the answer, and what it cost."""
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, show_header=False)
    table.add_column("cost", no_wrap=True, justify="right")
    table.add_column("who", no_wrap=True)
    table.add_column("text", ratio=1)
    for who, text, usd in steps(found):
        table.add_row("" if usd is None else f"${significant(usd)}", who, Text(text))
    return Group(table, Text(f"\n{_answered(found)}\n{_paid(found)}"))


def _answered(found: LiveAnswer) -> str:
    episode = found.done.episode
    if episode.answer is not None:
        return f"answer  {episode.answer}"
    ended = {
        "turns": "no turn was left",
        "budget": "the budget cannot pay for another turn",
        "failure": "the controller failed",
        "answer": "",
    }[episode.ended_by or "answer"]
    return f"no answer: {ended}{f' ({found.done.why})' if found.done.why else ''}"


def _paid(found: LiveAnswer) -> str:
    episode, dearest = found.done.episode, found.dearest
    over = f"mode {found.mode.name}: {'above' if episode.over_budget else 'within'} its "
    paid = f"cost    {dollars(episode.cost_nano)} ({over}{dollars(found.mode.budget_nano)})"
    if found.hard_nano is not None:
        most = dollars(found.hard_nano)
        paid += f"; no more than {most} could be paid, calls refused {episode.refused}"
    if dearest.cost_nano is None:
        return paid
    about = "" if dearest.measured else "about "
    return f"{paid}; {dearest.expert} alone costs {about}{dollars(dearest.cost_nano)}"


def certified(found: Certified) -> Group:
    """Say which mode to use and what that saves, what is promised, and what came of it."""
    reference, mode = found.recorded.reference, found.mode
    theirs, ours = found.figures[reference], found.found.value.yours
    money = f"Keep asking {reference}, ${significant(theirs.cost_usd)} a question: nothing cheaper "
    money += "is proved."
    if mode is not None:
        money = (
            f"Use the mode {mode.name}: ${significant(ours.cost_usd)} a question, where "
            f"{reference} alone costs ${significant(theirs.cost_usd)}."
        )
    figures = {
        f"{one.name}, proved" if one == mode else one.name: found.figures[role_of(one)]
        for one in found.recorded.modes
    }
    modes = ReportTable(
        (
            ("", lambda line: line[0]),
            ("USD a question", lambda line: significant(line[1].cost_usd)),
            (found.found.value.measure, lambda line: f"{line[1].accuracy:.3f}"),
        ),
        [*figures.items(), (f"{reference} alone (reference)", theirs)],
    )
    lines = map(Text, _lines(found))
    return Group(Text(money, style="bold"), Text(""), modes, Text(""), *lines)


def certified_record(found: Certified) -> Record:
    """Return the same as JSON values; costs are those of a question."""
    judged, value = found.found.judged, found.found.value
    return {
        "pool": found.pool,
        "mode": found.mode and found.mode.name,
        "reference": {
            "name": found.recorded.reference,
            **_figures(found.figures[found.recorded.reference]),
        },
        "measure": value.measure,
        "saved": value.saved,
        "saved_interval": value.saved_interval,
        "gained": value.gained,
        "gained_interval": value.gained_interval,
        "promise": found.certificate.sentence(),
        "kept": judged is None or judged.verdict == "kept",
        "verdict": judged and judged.sentence(),
        "modes": {
            mode.name: {
                "budget_usd": usd_from_nano(mode.budget_nano),
                **_figures(found.figures[role_of(mode)]),
            }
            for mode in found.recorded.modes
        },
        "questions": found.sizes,
        "outlook": found.outlook,
        "certificate": found.certificate.to_json(),
    }


def _lines(found: Certified) -> Iterator[str]:
    judged, n = found.found.judged, found.sizes
    which = ""
    if found.mode is not None:
        yield found.found.value.findings()[0]
        which = f" That point is the mode {found.mode.name}."
    yield f"Promise: {found.certificate.sentence()}{which}"
    yield f"In plain words: {found.certificate.plain_language()}"
    if judged is not None:
        yield judged.sentence()
    if found.outlook:
        yield found.outlook
    yield (
        f"{n['train']:,} questions chose the reference and the order, {n['calibrate']:,} proved; "
        f"the figures are of {n['test']:,} others."
    )


def _figures(figures: AnswerFigures) -> Record:
    return {"cost_usd": rounded_usd(figures.cost_usd), "accuracy": figures.accuracy}

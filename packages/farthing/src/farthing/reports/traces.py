"""What a file of traces holds, for a terminal."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from rich.console import Group, RenderableType
from rich.text import Text

from farthing.features.rounds import FeatureSet
from farthing.methods.base import Dataset
from farthing.money import significant, usd_from_nano
from farthing.reports.table import Table
from farthing.traces.arrays import NO_ANSWER, SPLITS, BoolArray, TraceArrays
from farthing.traces.copies import n_distinct, said
from farthing.traces.grades.overlay import ungraded_questions
from farthing.traces.pool import is_samples, leaders, missing, sampled

LATENCIES = (0.5, 0.95)
"""The quantiles of a role's latencies that are said."""
NAMED = 6
"""Names of a long list that are spelled out."""


def describe(source: str, traces: TraceArrays) -> Group:
    """Say how many questions there are, who answered how well for how much, and what is known.

    Costs and accuracies are per call that was made; features are those that training would use,
    where a pool of models is asked one after another.
    """
    facts = [Text(f"{name:<10}{value}", overflow="fold") for name, value in _facts(traces)]
    if is_samples(traces):
        said = Text(_sampled(traces), overflow="fold")
        return Group(Text(source, style="bold"), *facts, Text(""), _roles(traces), Text(""), said)
    rounds = Dataset(source, traces).arranged("rounds")
    return Group(
        Text(source, style="bold"),
        *facts,
        Text(""),
        _roles(traces),
        Text(""),
        *_cascade(traces, rounds),
        *_features(rounds),
    )


def _sampled(traces: TraceArrays) -> str:
    """Say what voting on samples comes to, which `farthing study samples` says more of."""
    answer, right, _ = sampled(traces)
    vote = leaders(answer)[:, -1]
    voted = ((answer == vote[:, None]) & right).any(axis=1).mean()
    said = f"one is right {right.mean():.1%} of the time, the vote of all {voted:.1%}; "
    return (
        f"{traces.horizon} samples of one model for each question: "
        f"{'' if traces.ungraded.any() else said}`farthing study samples` says how many to take"
    )


def _cascade(traces: TraceArrays, rounds: TraceArrays) -> list[Text]:
    """Say in what rounds a pool is played, which its file knows nothing of."""
    if rounds.roles == traces.roles:
        return []
    if traces.cuts:
        end = (
            f"a thought of {rounds.horizon} cuts: what a cut costs and takes is that of the whole "
        )
        said = f"{end}thought so far, and {traces.roles[-1]} is the full thought"
        return [Text(f"{said}; the features below are those of cuts in turn")]
    played = f"a pool of models, played as a cascade of {rounds.horizon} rounds, one model each, "
    order = f"the cheapest first: {rounds.models[0]}"
    if unknown := _unpriced(traces):
        order = f"in the order of their costs, which are not known of {', '.join(unknown)}"
    return [Text(f"{played}{order}; the features below are those of its rounds")]


def record(source: str, traces: TraceArrays, notes: Sequence[str] = ()) -> dict[str, Any]:
    """Return the same as JSON values; `cost_usd` is the mean of a question, in US dollars.

    Both costs are None where those of a role are not known.
    """
    rounds = Dataset(source, traces).arranged("rounds")
    fitted = FeatureSet.fit(rounds)
    total = None if _unpriced(traces) else usd_from_nano(int(traces.round_cost_nano.sum()))
    return {
        "source": source,
        "questions": len(traces),
        "incomplete": len(traces) - int(traces.complete.sum()),
        "ungraded": int(ungraded_questions(traces).sum()),
        "rounds": traces.horizon,
        "solvable": _solvable(traces),
        "cost_usd": None if total is None else total / len(traces),
        "total_cost_usd": total,
        "independent": bool(traces.independent.all()),
        "pool": rounds.roles != traces.roles and not traces.cuts,
        "cuts": traces.cuts,
        "samples": is_samples(traces),
        "splits": _splits(traces),
        "groups": _groups(traces),
        "missing": dict(missing(traces)),
        "roles": [_role(traces, place) for place in range(traces.n_roles)],
        "features": {"on": list(fitted.names), "off": dict(fitted.off)},
        "notes": list(notes),
    }


def _role(traces: TraceArrays, place: int) -> dict[str, Any]:
    """Return what is known of a role's calls; what was not recorded is None."""
    answered = int((traces.answer[:, :, place] != NO_ANSWER).sum())
    times = traces.signals.get("latency_s", np.full(traces.answer.shape, np.nan))[:, :, place]
    known = times[np.isfinite(times)]
    return {
        "role": traces.roles[place],
        "model": traces.models[place] or None,
        "answers": answered,
        "accuracy": _right(traces, place),
        "accuracy_by_round": _right_by_round(traces, place),
        "call_cost_usd": _call_cost_usd(traces, place),
        "latency_s": [float(q) for q in np.quantile(known, LATENCIES)] if known.size else None,
    }


def _right(traces: TraceArrays, place: int) -> float | None:
    """Return the share of a role's graded calls that are right; None where none is graded."""
    return _share_right(traces, place, slice(None))


def _right_by_round(traces: TraceArrays, place: int) -> list[float | None]:
    """Return the same of the calls in each round."""
    return [_share_right(traces, place, slice(t, t + 1)) for t in range(traces.horizon)]


def _share_right(traces: TraceArrays, place: int, rounds: slice) -> float | None:
    """Return the share of right calls among those that were made and graded in some rounds.

    One that failed counts as not right, but says nothing where no answer beside it is graded.
    """
    known = (traces.made & ~traces.ungraded)[:, rounds, place]
    answered = traces.answer[:, rounds, place] != NO_ANSWER
    if not known.any() or (answered.any() and not (known & answered).any()):
        return None
    return float(traces.correct[:, rounds, place][known].mean())


def _unpriced(traces: TraceArrays) -> list[str]:
    """Return the roles of which no call has a known cost."""
    return [role for role in traces.roles if traces.unpriced.get(role) == 1]


def _call_cost_usd(traces: TraceArrays, place: int) -> float | None:
    """Return the mean cost of a role's calls, in US dollars; None where it is not known."""
    made = traces.made[:, :, place]
    if not made.any() or traces.roles[place] in _unpriced(traces):
        return None
    return usd_from_nano(float(traces.cost_nano[:, :, place][made].mean()))


def _graded(traces: TraceArrays) -> BoolArray:
    """Return which questions are known to have a right answer, or to have none, [n].

    Where some answers are not graded, a question without any answer says nothing.
    """
    silent = ~np.any(traces.answer != NO_ANSWER, axis=(1, 2)) & traces.ungraded.any()
    found: BoolArray = traces.solvable | ~(ungraded_questions(traces) | silent)
    return found


def _solvable(traces: TraceArrays) -> float | None:
    """Return the share of the graded questions that have a right answer; None: none is graded."""
    known = _graded(traces)
    return float(traces.solvable[known].mean()) if known.any() else None


def _splits(traces: TraceArrays) -> dict[str, int]:
    found = {name: int((traces.split == place).sum()) for place, name in enumerate(SPLITS)}
    return {name: n for name, n in found.items() if n}


def _groups(traces: TraceArrays) -> dict[str, int]:
    found = Counter(traces.group_names[group] for group in traces.group if group >= 0)
    return dict(found.most_common())


def _facts(traces: TraceArrays) -> list[tuple[str, str]]:
    n = len(traces)
    cut = n - int(traces.complete.sum())
    incomplete = f" ({cut:,} incomplete)" if cut else ""
    lack = sorted(missing(traces).items(), key=lambda item: -item[1])
    return [
        ("questions", f"{n:,}{incomplete}"),
        *([("copies", some)] if (some := said(n, n_distinct(traces.content))) else []),
        *([("missing", _missing(dict(lack)))] if lack else []),
        _length(traces),
        ("solvable", _said_solvable(traces)),
        *_grades(traces),
        ("cost", _said_cost(traces)),
        ("splits", _counts(_splits(traces)) or "none; divided at random"),
        ("groups", _counts(_groups(traces)) or "none"),
        ("calls", _calls(traces)),
    ]


def _length(traces: TraceArrays) -> tuple[str, str]:
    if traces.cuts:
        return "cuts", f"{traces.n_roles}"
    return "samples" if is_samples(traces) else "rounds", f"{traces.horizon}"


def _calls(traces: TraceArrays) -> str:
    if traces.cuts:
        return "each goes on from the one before"
    return "independent" if traces.independent.all() else "later ones saw earlier ones"


def _said_cost(traces: TraceArrays) -> str:
    """Say what all calls cost; a role whose costs nobody knows is not free."""
    unknown, total = _unpriced(traces), int(traces.round_cost_nano.sum())
    if len(unknown) == traces.n_roles:
        return "unknown"
    if unknown:
        return f"${usd_from_nano(total):,.4f} of those known; unknown of {', '.join(unknown)}"
    each = significant(usd_from_nano(total / len(traces)))
    return f"${usd_from_nano(total):,.4f} in all, ${each} a question"


def _said_solvable(traces: TraceArrays) -> str:
    share, known = _solvable(traces), int(_graded(traces).sum())
    if share is None:
        return "–, since nobody graded a question"
    of = "" if known == len(traces) else f" of the {known:,} graded ones"
    return f"{share:.1%}{of} have a right answer among those recorded"


def _grades(traces: TraceArrays) -> list[tuple[str, str]]:
    """Say how many questions nobody graded, and what can be promised all the same."""
    unknown = int(ungraded_questions(traces).sum())
    if not unknown:
        return []
    said = (
        f"{unknown:,} questions have answers that nobody graded; agreement with a model can be "
        "promised, and parity counts unknown answers that differ as losses"
    )
    return [("grades", said)]


def _missing(lack: dict[str, int]) -> str:
    """Say how many questions lack which model.

    >>> print(_missing({"large": 1_200, "small": 1}))
    1,200 questions lack a call of large, 1 of small; a model cannot be asked where it is missing
    """
    (first, n), *others = list(lack.items())[:NAMED]
    also = "".join(f", {count:,} of {role}" for role, count in others)
    more = f" and some of {len(lack) - NAMED} more" if len(lack) > NAMED else ""
    lacks = "question lacks" if n == 1 else "questions lack"
    whom = f"{n:,} {lacks} a call of {first}{also}{more}"
    return f"{whom}; a model cannot be asked where it is missing"


def _roles(traces: TraceArrays) -> Table:
    lines = []
    for place, (role, model) in enumerate(zip(traces.roles, traces.models, strict=True)):
        answered = traces.answer[:, :, place] != NO_ANSWER
        cost_usd = _call_cost_usd(traces, place)
        lines.append(
            (
                role,
                model or "–",
                f"{int(answered.sum()):,}",
                _shown(_right(traces, place), 3),
                " ".join(_shown(share, 2) for share in _right_by_round(traces, place)[:NAMED]),
                "–" if cost_usd is None else significant(cost_usd),
            )
        )
    headings = ("Role", "Model", "Answers", "Right", "by round", "USD a call")
    return Table.of(headings, lines, layout=("text", "text", "figure", "figure", "figures"))


def _shown(share: float | None, digits: int) -> str:
    return "–" if share is None else f"{share:.{digits}f}"


def _features(traces: TraceArrays) -> list[RenderableType]:
    fitted = FeatureSet.fit(traces)
    off: dict[str, list[str]] = {}
    for name, reason in fitted.off.items():
        off.setdefault(_in_short(reason), []).append(name)
    lines = [f"{len(fitted.names)} features on: {', '.join(fitted.names)}"]
    lines += [f"{len(names)} off, {why}: {', '.join(names)}" for why, names in off.items()]
    return [Text(line) for line in lines]


def _in_short(reason: str) -> str:
    """Say alike what is alike for every role.

    >>> _in_short("no gpt-4o call records confidence"), _in_short("the same in every round")
    ('not recorded', 'the same in every round')
    """
    return "not recorded" if reason.startswith("no ") else reason


def _counts(counts: dict[str, int]) -> str:
    shown = [f"{name} {count:,}" for name, count in list(counts.items())[:NAMED]]
    more = f" and {len(counts) - NAMED} more" if len(counts) > NAMED else ""
    return ", ".join(shown) + more

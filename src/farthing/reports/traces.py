"""What a file of traces holds, for a terminal."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from rich import box
from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from farthing.features.rounds import FeatureSet
from farthing.methods.base import Dataset
from farthing.money import significant, usd_from_nano
from farthing.traces.arrays import NO_ANSWER, SPLITS, TraceArrays
from farthing.traces.grades import ungraded_questions
from farthing.traces.pool import missing

LATENCIES = (0.5, 0.95)
"""The quantiles of a role's latencies that are said."""
NAMED = 6
"""Names of a long list that are spelled out."""


def describe(source: str, traces: TraceArrays) -> Group:
    """Say how many questions there are, who answered how well for how much, and what is known.

    Costs and accuracies are per call that was made; features are those that training would use,
    where a pool of models is asked one after another.
    """
    rounds = Dataset(source, traces).arranged("rounds")
    return Group(
        Text(source, style="bold"),
        *(Text(f"{name:<10}{value}", overflow="fold") for name, value in _facts(traces)),
        Text(""),
        _roles(traces),
        Text(""),
        *_cascade(traces, rounds),
        *_features(rounds),
    )


def _cascade(traces: TraceArrays, rounds: TraceArrays) -> list[Text]:
    """Say in what rounds a pool is played, which its file knows nothing of."""
    if rounds.roles == traces.roles:
        return []
    order = rounds.models[0]
    return [
        Text(
            f"a pool of models, played as a cascade of {rounds.horizon} rounds, one model each, "
            f"the cheapest first: {order}; the features below are those of its rounds"
        )
    ]


def record(source: str, traces: TraceArrays, notes: Sequence[str] = ()) -> dict[str, Any]:
    """Return the same as JSON values; `cost_usd` is the mean of a question, in US dollars."""
    rounds = Dataset(source, traces).arranged("rounds")
    fitted = FeatureSet.fit(rounds)
    total = usd_from_nano(int(traces.round_cost_nano.sum()))
    return {
        "source": source,
        "questions": len(traces),
        "incomplete": len(traces) - int(traces.complete.sum()),
        "ungraded": int(ungraded_questions(traces).sum()),
        "rounds": traces.horizon,
        "solvable": float(traces.solvable.mean()),
        "cost_usd": total / len(traces),
        "total_cost_usd": total,
        "independent": bool(traces.independent.all()),
        "pool": rounds.roles != traces.roles,
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
    right, cost = traces.correct[:, :, place], traces.cost_nano[:, :, place]
    paid = cost[cost > 0]
    times = traces.signals.get("latency_s", np.full(traces.answer.shape, np.nan))[:, :, place]
    known = times[np.isfinite(times)]
    return {
        "role": traces.roles[place],
        "model": traces.models[place] or None,
        "answers": answered,
        "accuracy": int(right.sum()) / answered if answered else None,
        "accuracy_by_round": [float(share) for share in right.mean(axis=0)],
        "call_cost_usd": usd_from_nano(float(paid.mean())) if paid.size else None,
        "latency_s": [float(q) for q in np.quantile(known, LATENCIES)] if known.size else None,
    }


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
    total = int(traces.round_cost_nano.sum())
    each = significant(usd_from_nano(total / n))
    lack = sorted(missing(traces).items(), key=lambda item: -item[1])
    return [
        ("questions", f"{n:,}{incomplete}"),
        *([("missing", _missing(dict(lack)))] if lack else []),
        ("rounds", f"{traces.horizon}"),
        ("solvable", f"{traces.solvable.mean():.1%} have a right answer among those recorded"),
        *_grades(traces),
        ("cost", f"${usd_from_nano(total):,.4f} in all, ${each} a question"),
        ("splits", _counts(_splits(traces)) or "none; divided at random"),
        ("groups", _counts(_groups(traces)) or "none"),
        ("calls", "independent" if traces.independent.all() else "later ones saw earlier ones"),
    ]


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
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 2, 0, 0), pad_edge=False, show_edge=False)
    for heading in ("Role", "Model"):
        table.add_column(heading, overflow="fold")
    for heading in ("Answers", "Right", "by round", "USD a call"):
        table.add_column(heading, justify="right")
    for place, (role, model) in enumerate(zip(traces.roles, traces.models, strict=True)):
        answered = traces.answer[:, :, place] != NO_ANSWER
        right = traces.correct[:, :, place]
        cost = traces.cost_nano[:, :, place]
        paid = cost[cost > 0]
        table.add_row(
            escape(role),
            escape(model) or "–",
            f"{int(answered.sum()):,}",
            f"{right.sum() / max(int(answered.sum()), 1):.3f}",
            " ".join(f"{share:.2f}" for share in right.mean(axis=0)[:NAMED]),
            significant(usd_from_nano(float(np.mean(paid)))) if paid.size else "–",
        )
    return table


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

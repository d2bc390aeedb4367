"""What a file of traces holds, for a terminal."""

from collections import Counter

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
from farthing.traces.assemble import missing
from farthing.traces.grades import ungraded_questions

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


def _facts(traces: TraceArrays) -> list[tuple[str, str]]:
    n = len(traces)
    cut = n - int(traces.complete.sum())
    incomplete = f" ({cut:,} incomplete)" if cut else ""
    groups = Counter(traces.group_names[g] for g in traces.group if g >= 0)
    splits = {name: int((traces.split == place).sum()) for place, name in enumerate(SPLITS)}
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
        ("splits", _counts({k: v for k, v in splits.items() if v}) or "none; divided at random"),
        ("groups", _counts(dict(groups.most_common())) or "none"),
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

"""Grades by which hardly any answer is right: gold and answers in different forms look like that.

Where every answer counts as wrong, each is as good as the reference's, and any saving is proved.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import islice

from farthing import plugins
from farthing.errors import InputError, MissingExtraError
from farthing.promises.statistics.binomial import binomial_cdf, binomial_upper
from farthing.tasks import multiple_choice
from farthing.tasks.base import is_answer
from farthing.traces.arrays import NO_ANSWER, RIGHT, TraceArrays
from farthing.traces.base import Trace
from farthing.traces.grades.codes import accepted
from farthing.traces.importers.row import shown
from farthing.traces.trace_kind import laid_out

FEWEST, RARE, SELDOM = 40, 0.01, 0.05
"""Graded questions below which nothing is said; the share of them with a right answer below which
gold is taken for another form; and how often that is said of a log that has as many."""
ACCIDENT = 0.001
"""How often chance makes a model that guesses as bad as one that is taken for worse."""
SAMPLE, MATCHING = 200, 0.1
"""Answers that tasks are tried on, and the share of them that the task which is named matches."""
LETTERS = "ABCDEFGHIJ"


def check_gold(traces: TraceArrays, *, needed: bool = True, reference: str | None = None) -> None:
    """Refuse questions on which the models are right less often than by chance.

    That is where fewer than one question of a hundred has any right answer, or one of the reference
    that others are held to; or of multiple choice where every model is right less often than one
    that guesses. Other grades than `right` pass.

    Raises:
        InputError: with gold beside answers, and the task by which most of them would match.
    """
    if needed and traces.grade == RIGHT and (problem := _below(traces, reference)):
        says = traces.beside_gold[1] or "check what says which answers are right (`correct`)"
        raise InputError(
            f"{problem}, so every answer would be as good as another: {says}; or promise agreement "
            "with a model, which reads no gold"
        )


def with_gold_beside(arrays: TraceArrays, traces: Sequence[Trace]) -> TraceArrays:
    """Return the arrays of traces with what their gold looks like beside answers, for a refusal."""
    golds = {multiple_choice.normalise(gold) for one in traces for gold in accepted(one)[:1]}
    letters = {*golds} <= {*LETTERS} and len(golds) > 1
    chance = 1 / (1 + max(map(LETTERS.index, golds))) if letters else 0.0
    arrays = replace(arrays, beside_gold=(chance, ""))
    bad = [role for role in arrays.roles if _below(arrays, role)]
    return replace(arrays, beside_gold=(chance, _examples(traces, bad))) if bad else arrays


def _below(traces: TraceArrays, role: str | None = None) -> str:
    """Say how seldom answers are right, where that is less often than by chance; '': it is not."""
    given = (traces.answer != NO_ANSWER) & ~traces.ungraded
    one = [place for place, name in enumerate(traces.roles) if name == role]
    for some, by in ((slice(None), ""), (one, f" by {role}, which others are held to")):
        graded, correct = given[:, :, some].any(axis=(1, 2)), traces.correct[:, :, some]
        n, right = int(graded.sum()), int(correct.any(axis=(1, 2)).sum())
        if n >= FEWEST and (not right or binomial_upper(right, n, SELDOM) < RARE):
            return f"{right:,} of {n:,} graded questions have a right answer{by}"
    if int(given.any(axis=(1, 2)).sum()) < FEWEST:
        return ""
    chance, each = traces.beside_gold[0], (traces.correct[:, 0], given[:, 0])
    for k, of in zip(*(one.sum(axis=0).tolist() for one in each), strict=True):
        if binomial_cdf(k, of, chance) >= ACCIDENT:
            return ""
    return f"every model is right less often than one that guesses, which is {chance:.0%} of times"


def _examples(traces: Sequence[Trace], roles: Collection[str]) -> str:
    beside = (
        (accepted(trace), call.answer)
        for trace in traces
        for call in laid_out(trace)
        if call.role in roles
        and call.correct is None
        and accepted(trace)
        and is_answer(call.answer)
    )
    if not (some := list(islice(beside, SAMPLE))):
        return ""
    pairs = dict.fromkeys(f"{shown(gold[0])} beside {shown(said)}" for gold, said in some)
    examples = f"gold and answers are {', '.join(list(pairs)[:3])}"
    matched: dict[str, int] = {}
    likely = "json" if some[0][0][0].lstrip()[:1] in {"{", "["} else "multiple_choice"
    for name in sorted(plugins.names("tasks"), key=lambda name: name != likely):  # of equals first
        task = plugins.load("tasks", name)
        try:
            matched.setdefault(task.name, sum(task.grade(said, gold) for gold, said in some))
        except MissingExtraError:
            continue
    best = max(matched, key=matched.__getitem__)
    if matched[best] < MATCHING * len(some):
        return f"{examples}; no task matches them, so mend the accepted answers"
    return (
        f"{examples}; {matched[best]:,} of {len(some):,} match as the task {best}, which `farthing "
        f"traces import FILE --task {best} --store traces.db` sets (`task` in our own form)"
    )

"""What imported traces lack, each gap as one line that names the option that supplies it."""

from collections.abc import Iterator, Mapping, Sequence

from farthing.tasks.base import is_answer
from farthing.traces.base import Trace
from farthing.traces.importers.base import Options
from farthing.traces.importers.gather import Gathered
from farthing.traces.importers.supply import Priced

ALONE = (
    "every question was asked of one model alone, so there is nothing to choose from; "
    "import the files of several models together"
)
SHOWN = 5
"""Most models that a line names."""


def notes_on(
    traces: Sequence[Trace], gathered: Gathered, priced: Priced, options: Options
) -> list[str]:
    """Return a line for each thing that was left out, worked out, or is not known."""
    return [
        *gathered.remarks,
        *(f"{_n(n, 'row')} left out: {why}" for why, n in gathered.left_out.items()),
        *_on_repeats(gathered, traces),
        *_on_questions(traces),
        *_on_grades(traces, options),
        *_on_answers(traces),
        *_on_prices(priced),
    ]


def _on_repeats(gathered: Gathered, traces: Sequence[Trace]) -> Iterator[str]:
    if gathered.repeats:
        alone = len({call.role for trace in traces for call in trace.calls}) == 1
        yield (
            f"{_n(gathered.repeats, 'call')} left out: the model was asked the same question "
            "before; of each model the first answer is kept"
            + (f" ({gathered.otherwise:,} have another answer or grade)" * bool(gathered.otherwise))
            + ", so that nothing is promised per request"
            + ("; --samples keeps all, where they are independent samples" if alone else "")
        )


def _on_questions(traces: Sequence[Trace]) -> Iterator[str]:
    textless = sum(not trace.question for trace in traces)
    if textless:
        yield (
            f"{_n(textless, 'question')} without a text, so that policies cannot go by it, and "
            "calls come together by the file's own ids alone"
        )
    alone = sum(len(trace.calls) == 1 for trace in traces)
    if len(traces) > 1 and alone == len(traces):
        yield ALONE


def _on_grades(traces: Sequence[Trace], options: Options) -> Iterator[str]:
    ungraded = sum(not trace.gold and _lacks_grade(trace) for trace in traces)
    if ungraded:
        of = "no question is" if ungraded == len(traces) else f"{ungraded} of {len(traces)} are not"
        yield (
            f"{of} graded; --gold FILE has accepted answers by question id or text (without them, "
            "agreement with a model can be promised)"
        )
    scores = {call.score for trace in traces for call in trace.calls} - {None, 0.0, 1.0}
    if scores:
        yield f"scores are fractions; at least {options.threshold:g} is right (--threshold)"


def _on_answers(traces: Sequence[Trace]) -> Iterator[str]:
    graded_by_text = any(
        trace.task == "text" and trace.gold and _lacks_grade(trace, replies=True)
        for trace in traces
    )
    if graded_by_text:
        yield (
            "whole replies are compared with accepted answers as plain text; --task NAME reads an "
            "answer off each"
        )
    silent = sum(
        not is_answer(call.answer) and call.error is None
        for trace in traces
        for call in trace.calls
    )
    if silent:
        yield f"{_n(silent, 'call')} without an answer that could be read"
    failed = sum(call.error is not None for trace in traces for call in trace.calls)
    if failed:
        yield f"{_n(failed, 'call')} failed and kept as such"


def _on_prices(priced: Priced) -> Iterator[str]:
    for model, price in priced.found.items():
        yield (
            f"costs of {model} are worked out from its tokens at its list price, {price}; "
            f"--price {model}=IN,OUT has yours"
        )
    if priced.unpriced:
        yield (
            f"costs are not known of {_models(priced.unpriced)}; "
            "--price MODEL=IN,OUT, in USD per million tokens"
        )
    if priced.uncounted:
        yield (
            f"neither costs nor tokens are recorded of {_models(priced.uncounted)}; record one of "
            "them in the file"
        )


def _lacks_grade(trace: Trace, *, replies: bool = False) -> bool:
    """Return whether an answer (of those read from whole replies) has no recorded grade."""
    return any(
        call.correct is None and is_answer(call.answer) and (call.text is not None or not replies)
        for call in trace.calls
    )


def _models(calls: Mapping[str, int]) -> str:
    named = [f"{model} ({_n(n, 'call')})" for model, n in list(calls.items())[:SHOWN]]
    more = len(calls) - len(named)
    return ", ".join(named) + (f" and {more} more" if more else "")


def _n(n: int, thing: str) -> str:
    return f"{n:,} {thing}{'' if n == 1 else 's'}"

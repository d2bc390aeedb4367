"""What a log lacks: accepted answers come from a file, costs from prices of tokens.

What then is still missing is a line each, which names the option that supplies it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from farthing.errors import InputError
from farthing.models.base import Usage
from farthing.models.prices import Price, charge_nano
from farthing.money import usd_from_nano
from farthing.tasks.base import is_answer
from farthing.traces.aliases import proposals
from farthing.traces.base import Call, Trace
from farthing.traces.grades.codes import accepted
from farthing.traces.importers.base import ImportedCall, Options
from farthing.traces.importers.gather import Gathered
from farthing.traces.importers.row import MOST_USD, FileRow, unpacked
from farthing.traces.importers.source import Source

FindPrice = Callable[[str, str | None], Price | None]
"""From a model's name, and its seller where one is known, to its published price."""
_QUESTION = ("id", "question_id", "custom_id", "sample_id", "question", "prompt", "input", "text")
_ACCEPTED = (
    "gold", "answers", "answer", "target", "expected", "reference", "ground_truth", "label",
)  # fmt: skip


@dataclass
class AcceptedAnswers:
    """Accepted answers by question: by its id, or by its text."""

    path: str
    answers: Mapping[str, list[str]]
    used: set[str] = field(default_factory=set)

    def of(self, *names: str | None) -> list[str]:
        """Return the answers under the first of these names that has any."""
        for name in names:
            if name and name.strip() in self.answers:
                self.used.add(name.strip())
                return self.answers[name.strip()]
        return []


def read_gold(path: str | Path) -> AcceptedAnswers:
    """Read accepted answers: CSV or JSON Lines with a question's id or text, and its answers.

    Rows of the same question add to its answers; in JSON a list is several at once.
    """
    answers: dict[str, list[str]] = {}
    source = Source(path)
    for row in source.rows():
        named = FileRow({name.casefold(): value for name, value in row.values.items()}, row.place)
        accepted = _accepted(named)
        names = {str(named.find(name)[1]).strip() for name in _QUESTION if named.text(name)}
        if not names:
            raise row.place.refusal("id", "is missing; give the question's id or text")
        if not accepted:
            raise row.place.refusal("gold", "is missing; give the accepted answer")
        for name in names:
            known = answers.setdefault(name, [])
            known += [answer for answer in accepted if answer not in known]
    if not answers:
        raise InputError(f"{path}: holds no accepted answer; give a row a question")
    return AcceptedAnswers(str(path), answers)


@dataclass
class TokenCosts:
    """Costs that were worked out from tokens, and those that stay unknown."""

    own: Mapping[str, Price]
    """The user's prices, by model."""
    published: FindPrice
    found: dict[str, Price] = field(default_factory=dict)
    """Published prices that were used, by model."""
    unpriced: dict[str, int] = field(default_factory=dict)
    """Models that nothing prices, to the calls that so have no cost."""
    uncounted: dict[str, int] = field(default_factory=dict)
    """Models with calls whose tokens are not recorded, to these calls."""
    _known: dict[tuple[str, str | None], Price | None] = field(default_factory=dict)

    def fill(self, call: Call, recorded: ImportedCall) -> Call:
        """Return a call with its cost, where it can be worked out."""
        usages = recorded.usages
        billed = [used.billed_nano for used in usages]
        if call.cost_usd is not None or (billed and None not in billed):
            own = sum(nano for nano in billed if nano is not None)
            usd = usd_from_nano(own) if call.cost_usd is None else call.cost_usd
            return msgspec.structs.replace(call, cost_usd=usd)
        if call.error is not None and not (call.input_tokens and call.output_tokens):
            return call
        model = recorded.model
        # No request reads nothing, and no reply of words is nothing: such a 0 was not counted.
        wrote = call.output_tokens if call.output_tokens or not call.text else None
        if not call.input_tokens or wrote is None:
            self.uncounted[model] = self.uncounted.get(model, 0) + 1
            return call
        price = self._price(recorded)
        if price is None:
            self.unpriced[model] = self.unpriced.get(model, 0) + 1
            return call
        usages = usages or (Usage(call.input_tokens, wrote),)
        seconds = (call.latency_s or 0.0) / len(usages)
        at = recorded.asked_at or recorded.priced_at
        nano = [charge_nano(price, used, seconds, at) for used in usages]
        if None in nano:
            names = {name for used in usages for name in price.unpriced(used, at)}
            what = f"{model}, which took what has no known price: {', '.join(sorted(names))}"
            self.unpriced[what] = self.unpriced.get(what, 0) + 1
            return call
        usd = usd_from_nano(sum(cost for cost in nano if cost is not None))
        if usd > MOST_USD:
            problem = f"make the call cost ${usd:g}; check them, and the price of {model}"
            raise recorded.place.refusal("tokens", problem)
        return msgspec.structs.replace(call, cost_usd=usd)

    def _price(self, recorded: ImportedCall) -> Price | None:
        if recorded.model in self.own:
            return self.own[recorded.model]
        listed = recorded.priced_as or recorded.model, recorded.provider
        if listed not in self._known:
            self._known[listed] = self.published(*listed)
        price = self._known[listed]
        if price is not None:
            self.found[recorded.model] = price
        return price


def with_gold(trace: Trace, gold: AcceptedAnswers | None, also: Iterable[str | None] = ()) -> Trace:
    """Return a trace with its accepted answers, where it has none and the file has some."""
    if gold is None:
        return trace
    found = gold.of(trace.id, *also, trace.question)
    return trace if accepted(trace) or not found else msgspec.structs.replace(trace, gold=found)


def _accepted(row: FileRow) -> list[str]:
    name, value = row.find(*_ACCEPTED)
    several: Any = unpacked(value)
    if isinstance(several, list) and all(isinstance(answer, str) for answer in several):
        return [answer for answer in several if is_answer(answer)]
    answer = str(value).strip() if isinstance(value, str) else row.text(name)
    return [answer] if answer else []


ALONE = (
    "every question was asked of one model alone, so there is nothing to choose from; "
    "import the files of several models together"
)
SHOWN = 5
"""Most models that a line names."""


def notes_on(
    traces: Sequence[Trace], gathered: Gathered, priced: TokenCosts, options: Options
) -> list[str]:
    """Return a line for each thing that was left out, worked out, or is not known."""
    return [
        *gathered.remarks,
        *(f"{_n(n, 'row')} left out: {why}" for why, n in gathered.left_out.items()),
        *proposals(traces),
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
    ungraded = sum(not accepted(trace) and _lacks_grade(trace) for trace in traces)
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


def _on_prices(priced: TokenCosts) -> Iterator[str]:
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

"""Foreign files as traces: which importer reads a file, and what the traces then lack.

The calls of one question, one a model, become a pool; where the user says that calls are samples,
all of a model are kept, a round each. Accepted answers come from a file, costs from prices of
tokens. What then is still missing is a line each, which names the option that supplies it.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import reduce
from pathlib import Path
from typing import Any

import msgspec
from msgspec import structs

from farthing import plugins
from farthing.errors import InputError, MissingExtraError
from farthing.models.base import Usage
from farthing.models.prices import Price, charge_nano, list_price
from farthing.models.thinking import EFFORT
from farthing.models.usage import added
from farthing.money import usd_from_nano
from farthing.tasks.base import is_answer
from farthing.tasks.replies import read_answer
from farthing.traces.base import Call, Trace
from farthing.traces.costs import kept as usage_kept
from farthing.traces.grades.codes import accepted
from farthing.traces.importers.base import (
    ImportedCall,
    Importer,
    ImportEvent,
    ImportNote,
    LeftOut,
    Options,
)
from farthing.traces.importers.chat import Messages
from farthing.traces.importers.row import MOST_USD, FileRow, RowPlace, unpacked
from farthing.traces.importers.source import Source
from farthing.traces.importers.table import columns_of, known
from farthing.traces.jsonl import LINES, plain
from farthing.traces.system import BY_ROLE, prompt_mark, written
from farthing.traces.trace_kind import PROTOCOL_ROLES, Checker, is_reply

_SELLER = re.compile(r"(.*/|[a-z]+:(chat|responses|messages|completion):|(openai|anthropic):)")
_VERSION = re.compile(r"-((\d{4}-\d{2}-\d{2}|\d{8})(-v\d+(:\d+)?)?|latest|\d{4})$|@\d{8}$")


def plain_name(model: str) -> str:
    """Return a model's name without who sells it and the day of its version.

    >>> [plain_name(name) for name in ("openai/gpt-4o", "gpt-4o-2024-08-06@low", "llama3:8b")]
    ['gpt-4o', 'gpt-4o@low', 'llama3:8b']
    """
    name = _VERSION.sub("", model.casefold())
    name, sign, effort = name.partition(EFFORT)
    return _VERSION.sub("", _SELLER.sub("", name)).replace(".", "-") + sign + effort


def proposals(traces: Sequence[Trace]) -> Iterator[str]:
    """Propose an alias for each name that looks like another's, where no question has both."""
    asked: dict[str, set[str]] = {}
    for trace in traces:
        for call in trace.calls:
            asked.setdefault(call.role, set()).add(trace.id)
    names = sorted(asked, key=lambda name: (len(name), name))
    for i, name in enumerate(names):
        for short in names[:i]:
            if plain_name(name) == plain_name(short) and not asked[name] & asked[short]:
                yield (
                    f"{name} and {short} may be one model under two names; "
                    f"--alias {name}={short} makes them one"
                )
                break


def renamed(traces: Sequence[Trace], aliases: Mapping[str, str]) -> list[Trace]:
    """Return traces whose roles and models have their new names; others keep theirs."""

    def new(name: Any) -> Any:
        model, sign, effort = str(name).partition(EFFORT)
        short = aliases.get(model)
        return aliases.get(name, name if short is None else short + sign + effort)

    return [
        structs.replace(
            trace,
            calls=[
                structs.replace(call, role=new(call.role), model=new(call.model))
                for call in trace.calls
            ],
        )
        for trace in traces
    ]


LONGEST = 2_000
"""Most characters of a system prompt or a history that a trace keeps as text."""
DIGITS = 16
"""Hexadecimal digits of a question's hash: 64 bits, so that no two of a million agree."""
_OF_CALL = (
    "correct", "text", "confidence", "uncertainty", "input_tokens", "output_tokens", "latency_s",
    "cost_usd", "asked_probability", "error", "score",
)  # fmt: skip
_SAID = ("answer", "text", "correct", "score")
"""What two calls that say the same have in common."""


@dataclass
class QuestionCalls:
    """The calls of one question so far, in the order of the file."""

    first: ImportedCall
    calls: dict[tuple[str, int], ImportedCall] = field(default_factory=dict)
    """By role (a model, or a model at an effort) and round."""
    asked: Counter[str] = field(default_factory=Counter)
    """Role to how often it was asked; its samples are one request."""


@dataclass
class Gathered:
    """Questions with their calls, and what had to be left out."""

    questions: dict[str, QuestionCalls] = field(default_factory=dict)
    repeats: int = 0
    """Calls of a model that was asked the same question before."""
    otherwise: int = 0
    """Of these, those with another answer or grade than the one that is kept."""
    left_out: Counter[str] = field(default_factory=Counter)
    """Reason to rows."""
    remarks: dict[str, None] = field(default_factory=dict)
    """What is to be said of the files, in order."""
    times: list[datetime] = field(default_factory=list)
    """When calls were made, repeated ones among them, as far as the files say."""

    def add(self, call: ImportedCall, *, samples: bool) -> None:
        """Put a call to its question.

        Of several calls of one model the first that was answered counts, unless they are samples.
        """
        _refuse_unusable(call)
        asked = filter(None, (call.cluster, call.key or call.question))
        name = call.id or short_hash("\n\n".join(asked))
        question = self.questions.setdefault(name, QuestionCalls(call))
        first = question.first
        for what, before, now in (
            ("question", first.question or None, call.question or None),
            ("system prompt", first.system, call.system),
            ("conversation before the question", first.history, call.history),
            ("accepted answer", first.gold or None, call.gold or None),
            ("group", first.group or None, call.group or None),
            ("split", first.split or None, call.split or None),
            ("cluster", first.cluster, call.cluster),
            ("missing_because", first.missing_because, call.missing_because),
        ):
            if None not in (before, now) and before != now:
                problem = f"'{name}' has another {what} in {first.place}; one id is one question"
                raise call.place.refusal("id", problem)
        place = call.role, len(question.calls) + 1 if samples else 1
        if not samples:
            question.asked[call.role] += 1
        kept = question.calls.get(place)
        self.repeats += kept is not None
        self.times += [] if call.asked_at is None else [call.asked_at]
        if kept is None or (_unanswered(kept) and not _unanswered(call)):
            question.calls[place] = call
        elif not _unanswered(call):
            self.otherwise += any(getattr(kept, name) != getattr(call, name) for name in _SAID)


def short_hash(text: str) -> str:
    """Return the id of a question that has none: the start of its SHA-256.

    >>> short_hash("2 + 2?")
    '70b499c547e0a11f'
    """
    return hashlib.sha256(text.encode()).hexdigest()[:DIGITS]


def _unanswered(call: ImportedCall) -> bool:
    return call.error is not None or not (is_answer(call.answer) or is_answer(call.text))


def _refuse_unusable(call: ImportedCall) -> None:
    if is_reply(call.model) or call.model in PROTOCOL_ROLES:
        problem = "is a name that traces keep for other roles; rename the model in the file"
        raise call.place.refusal("model", f"'{call.model}' {problem}")
    texts = (call.id, call.key, call.question, call.model, call.text, call.answer, call.group)
    for text in (*texts, *call.gold, call.system, call.history):
        try:
            (text or "").encode()
        except UnicodeEncodeError:
            problem = "holds half a character (a lone surrogate); mend the text"
            raise call.place.refusal("row", problem) from None


def _refuse_no_samples(questions: Mapping[str, QuestionCalls]) -> None:
    begun = next(iter(questions), "")
    for name, question in questions.items():
        first = questions[begun]
        one, n = first.first.role, len(first.calls)
        for model, number in question.calls:
            if model != one:
                problem = f"is '{model}' and before it was '{one}'; import samples of one model"
                raise question.calls[model, number].place.refusal("model", f"{problem} at a time")
        if len(question.calls) != n or n == 1:
            counts = f"'{begun}' has {n} and '{name}' has {len(question.calls)}"
            problem = f"stands for {len(question.calls)} samples of '{name}' alone"
            problem = problem if begun == name else f"is of samples of which {counts}"
            needed = "at least 2 for each question, and as many for all"
            raise question.first.place.refusal("row", f"{problem}; record {needed}")


def trace_of(name: str, question: QuestionCalls, task: str) -> Trace:
    """Return the trace of a question, its answers read as the task reads them."""
    calls = list(question.calls.values())

    def said(field: str) -> Any:
        return next((found for call in calls if (found := getattr(call, field))), None)

    gold = list(said("gold") or ())
    unscored = any(call.unscored for call in calls)  # accepted answers would grade it
    made = [_call(call, number, task) for (_, number), call in question.calls.items()]
    for call, kept in zip(calls, made, strict=True) if unscored and gold else ():
        if call.correct is None and not call.unscored and call.error is None:
            kept["correct"] = plugins.load("tasks", task).grade(kept["answer"], gold)
    by_role = {call.role: call.parameters for call in calls}
    parameters: Any = calls[0].parameters
    if any(one != parameters for one in by_role.values()):
        parameters = {BY_ROLE: by_role}
    fields = {
        "id": name,
        "question": said("question") or "",
        "gold": [] if unscored else gold,
        "task": task,
        "group": said("group"),
        "split": said("split"),
        "cluster": said("cluster"),
        "missing_because": said("missing_because"),
        "independent": True,
        "system_prompt": _kept([call.system for call in calls]),
        "history": _kept([call.history for call in calls]),
        "parameters": None if parameters is None else written(parameters),
        "requests": max(question.asked.values(), default=1),
        "calls": made,
    }
    try:
        return msgspec.convert(fields, Trace)
    except msgspec.ValidationError as error:
        expected, _, where = str(error).partition(" - at `$.")
        field = where.rstrip("`")
        raise question.first.place.refusal(field or "row", plain(expected, field)) from None


def _kept(texts: Sequence[str | None]) -> str | None:
    """Return what all calls say, or its fingerprint where that is long; None where one says none.

    Calls that say otherwise were refused.
    """
    text = None if None in texts else texts[0]
    return text if text is None or len(text) <= LONGEST else prompt_mark(text)


def _call(call: ImportedCall, number: int, task: str) -> dict[str, Any]:
    if call.error is not None:  # what failed is no answer, whatever was written down
        call = replace(call, answer=None, text=None, correct=None, score=None, confidence=None)
    answer = call.answer
    if answer is None and call.text is not None:
        # Plain text takes the reply as it is. Other tasks take what it says is its answer, or else
        # find a number or a letter in it as they normalise it.
        stated = None if task == "text" else read_answer(call.text)
        answer = stated or call.text.strip() or None
    kept = {name: getattr(call, name) for name in _OF_CALL}
    kept["error"] = call.error and msgspec.to_builtins(call.error)
    if (used := reduce(added, call.usages, None)) is not None:
        told = {name: getattr(used, name) for name in ("input_tokens", "output_tokens")}
        kept |= {name: None if name in used.unknown else n for name, n in told.items()}
        kept["extra"] = usage_kept(used)
    return {"round": number, "role": call.role, "model": call.model, "answer": answer, **kept}


FindPrice = Callable[[str, str | None], Price | None]
"""From a model's name, and its seller where one is known, to its published price."""
_QUESTION = ("id", "question_id", "custom_id", "sample_id", "question", "prompt", "input", "text")
_ACCEPTED = (
    "gold", "answers", "answer", "target", "expected", "reference", "ground_truth", "label",
)  # fmt: skip


def read_gold(path: str | Path) -> dict[str, list[str]]:
    """Read accepted answers by question, by its id or by its text.

    That is CSV or JSON Lines. Rows of the same question add to its answers; in JSON a list is
    several at once.
    """
    answers: dict[str, list[str]] = {}
    for row in Source(path).rows():
        named = FileRow({name.casefold(): value for name, value in row.values.items()}, row.place)
        field, value = named.find(*_ACCEPTED)
        found: Any = unpacked(value)
        if isinstance(found, list) and all(isinstance(answer, str) for answer in found):
            found = [answer for answer in found if is_answer(answer)]
        else:
            answer = str(value).strip() if isinstance(value, str) else named.text(field)
            found = [answer] if answer else []
        names = {str(named.find(name)[1]).strip() for name in _QUESTION if named.text(name)}
        if not names:
            raise row.place.refusal("id", "is missing; give the question's id or text")
        if not found:
            raise row.place.refusal("gold", "is missing; give the accepted answer")
        for name in names:
            known = answers.setdefault(name, [])
            known += [answer for answer in found if answer not in known]
    if not answers:
        raise InputError(f"{path}: holds no accepted answer; give a row a question")
    return answers


@dataclass
class TokenCosts:
    """Costs that were worked out from tokens, and those that stay unknown."""

    own: Mapping[str, Price]
    """The user's prices, by model."""
    published: FindPrice
    found: dict[str, Price] = field(default_factory=dict)
    """Published prices that were used, by model."""
    unpriced: Counter[str] = field(default_factory=Counter)
    """Models that nothing prices, to the calls that so have no cost."""
    uncounted: Counter[str] = field(default_factory=Counter)
    """Models with calls whose tokens are not recorded, to these calls."""
    _known: dict[tuple[str, str | None], Price | None] = field(default_factory=dict)

    def fill(self, call: Call, recorded: ImportedCall) -> Call:
        """Return a call with its cost, where it can be worked out."""
        usages = recorded.usages
        billed = [used.billed_nano for used in usages]
        if call.cost_usd is not None or (billed and None not in billed):
            own = sum(nano for nano in billed if nano is not None)
            usd = usd_from_nano(own) if call.cost_usd is None else call.cost_usd
            return structs.replace(call, cost_usd=usd)
        if call.error is not None and not (call.input_tokens and call.output_tokens):
            return call
        # No request reads nothing, and no reply of words is nothing: such a 0 was not counted.
        wrote = call.output_tokens if call.output_tokens or not call.text else None
        if not call.input_tokens or wrote is None:
            self.uncounted[recorded.model] += 1
            return call
        price = self._price(recorded)
        if price is None:
            self.unpriced[recorded.model] += 1
            return call
        usages = usages or (Usage(call.input_tokens, wrote),)
        seconds = (call.latency_s or 0.0) / len(usages)
        at = recorded.asked_at or recorded.priced_at
        nano = [charge_nano(price, used, seconds, at) for used in usages]
        if None in nano:
            names = {name for used in usages for name in price.unpriced(used, at)}
            what = f"which took what has no known price: {', '.join(sorted(names))}"
            self.unpriced[f"{recorded.model}, {what}"] += 1
            return call
        usd = usd_from_nano(sum(cost for cost in nano if cost is not None))
        if usd > MOST_USD:
            problem = f"make the call cost ${usd:g}; check them, and the price of {recorded.model}"
            raise recorded.place.refusal("tokens", problem)
        return structs.replace(call, cost_usd=usd)

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


ALONE = (
    "every question was asked of one model alone, so there is nothing to choose from; "
    "import the files of several models together"
)
SHOWN = 5
"""Most models that a line names."""


def notes_on(
    traces: Sequence[Trace], gathered: Gathered, priced: TokenCosts, options: Options
) -> Iterator[str]:
    """Yield a line for each thing that was left out, worked out, or is not known."""
    yield from gathered.remarks
    for why, n in gathered.left_out.items():
        yield f"{_n(n, 'row')} left out: {why}"
    yield from proposals(traces)
    if gathered.repeats:
        alone = len({call.role for trace in traces for call in trace.calls}) == 1
        yield (
            f"{_n(gathered.repeats, 'call')} left out: the model was asked the same question "
            "before; of each model the first answer is kept"
            + (f" ({gathered.otherwise:,} have another answer or grade)" * bool(gathered.otherwise))
            + ", so that nothing is promised per request"
            + ("; --samples keeps all, where they are independent samples" if alone else "")
        )
    yield from _lacks(traces, options)
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


def _lacks(traces: Sequence[Trace], options: Options) -> Iterator[str]:
    calls = [call for trace in traces for call in trace.calls]
    if textless := sum(not trace.question for trace in traces):
        yield (
            f"{_n(textless, 'question')} without a text, so that policies cannot go by it, and "
            "calls come together by the file's own ids alone"
        )
    if len(traces) > 1 and all(len(trace.calls) == 1 for trace in traces):
        yield ALONE
    open_calls = [[c for c in t.calls if c.correct is None and is_answer(c.answer)] for t in traces]
    lacking = list(zip(traces, open_calls, strict=True))
    if ungraded := sum(bool(some) and not accepted(trace) for trace, some in lacking):
        of = "no question is" if ungraded == len(traces) else f"{ungraded} of {len(traces)} are not"
        yield (
            f"{of} graded; --gold FILE has accepted answers by question id or text (without them, "
            "agreement with a model can be promised)"
        )
    if {call.score for call in calls} - {None, 0.0, 1.0}:
        yield f"scores are fractions; at least {options.threshold:g} is right (--threshold)"
    as_text = [some for trace, some in lacking if trace.task == "text" and trace.gold]
    if any(call.text is not None for some in as_text for call in some):
        yield (
            "whole replies are compared with accepted answers as plain text; --task NAME reads an "
            "answer off each"
        )
    if silent := sum(not is_answer(call.answer) and call.error is None for call in calls):
        yield f"{_n(silent, 'call')} without an answer that could be read"
    if failed := sum(call.error is not None for call in calls):
        yield f"{_n(failed, 'call')} failed and kept as such"


def _models(calls: Mapping[str, int]) -> str:
    named = [f"{model} ({_n(n, 'call')})" for model, n in list(calls.items())[:SHOWN]]
    more = len(calls) - len(named)
    return ", ".join(named) + (f" and {more} more" if more else "")


def _n(n: int, thing: str) -> str:
    return f"{n:,} {thing}{'' if n == 1 else 's'}"


OWN = "jsonl"
"""What `--from` calls our own form, which no importer reads: see `traces/jsonl.py`."""
_LAST = "table"
"""Any table may look like one of calls; so other importers are asked first."""


@dataclass(frozen=True, kw_only=True)
class Supplied:
    """What the user says of the files."""

    task: str = "text"
    """How answers are read and compared."""
    gold: Path | None = None
    """A file of accepted answers."""
    prices: Mapping[str, Price] = field(default_factory=dict)
    """What models cost, for calls without a recorded cost."""
    aliases: Mapping[str, str] = field(default_factory=dict)
    """Name of a model in the files to the one that it is to have."""
    requests: tuple[Path, ...] = ()
    """The input files of OpenAI's batches: one, or one for each file."""
    options: Options = field(default_factory=Options)


@dataclass(frozen=True)
class Imported:
    """Traces, where each stands in its file, and what they lack."""

    traces: list[Trace]
    places: list[RowPlace]
    """Of each trace's first call."""
    notes: list[str]
    """A line for each thing that was left out, worked out, or is not known."""
    messages: Mapping[str, Messages | None] = field(default_factory=dict)
    """What was sent, whole, by question; None where it was more than texts."""
    period: tuple[datetime, datetime] | None = None
    """When the first and the last call was made; None where no file says."""


def names() -> list[str]:
    """Return what `--from` takes, our own form included.

    >>> names()
    ['inspect', 'jsonl', 'langfuse', 'litellm', 'llm', 'llmrouterbench', 'openai', 'promptfoo', \
'routerarena', 'routerbench', 'table']
    """
    return sorted({OWN, *plugins.names("importers")})


def importer(name: str) -> Importer:
    """Return the importer of a format."""
    found: Importer = plugins.load("importers", name)
    return found


def sniffed(source: str | Path | Source, options: Options | None = None) -> str:
    """Return the format of a file, going by its first record; one with mapped columns is a table.

    A file that is named as traces are, and looks like nothing else, is taken for traces, whose
    reader says best what is wrong with it.
    """
    source = source if isinstance(source, Source) else Source(source)
    options = options or Options()
    named_so = source.path.name.endswith(LINES)
    try:
        first = source.first
    except InputError:
        if named_so:
            return OWN
        raise
    if first is None and not named_so:
        raise InputError(f"{source.name}: holds no records")
    if first is None or isinstance(first.values.get("calls"), list):
        return OWN
    found = [name for name in plugins.names("importers") if importer(name).sniff(source)]
    found = [name for name in found if name != _LAST] or found
    if not found and options.columns:
        return _LAST
    if len(found) == 1 or (named_so and not found):
        return found[0] if found else OWN
    columns = ""
    if not found and source.kind == "csv":
        if known(source.fields):
            columns_of(source, Options())  # which says what is lacking
        columns = ", or the columns of a table of calls with --column model=COLUMN and so on"
    what = f"may be {' or '.join(found)}" if found else "looks like none of the known formats"
    raise InputError(
        f"{source.name}: {what}; name its format with --from ({', '.join(names())}){columns}"
    )


def read_foreign(
    paths: Sequence[str | Path | Source], form: str | None = None, supplied: Supplied | None = None
) -> Imported:
    """Read files of other tools as one pool of traces; calls of one question come together.

    Args:
        paths: the files; often one a model. Or sources, such as records in memory.
        form: the name of their format; None: each is looked at.
        supplied: what the files do not say.
    """
    supplied = supplied or Supplied()
    plugins.load("tasks", supplied.task)
    if len(supplied.requests) not in {0, 1, len(paths)}:
        given = len(supplied.requests)
        raise InputError(f"{len(paths)} files and {given} of requests; give one, or one for each")
    gold = {} if supplied.gold is None else read_gold(supplied.gold)
    gathered, samples = Gathered(), supplied.options.samples
    for i, path in enumerate(paths):
        options = supplied.options
        if supplied.requests:
            several = len(supplied.requests) > 1
            options = replace(options, requests=supplied.requests[i if several else 0])
        source = path if isinstance(path, Source) else Source(path)
        for event in _events(source, form, options):
            if isinstance(event, LeftOut):
                gathered.left_out[event.why] += 1
            elif isinstance(event, ImportNote):
                gathered.remarks[event.text] = None
            else:
                gathered.add(_aliased(event, supplied.aliases), samples=samples)
    if samples:
        _refuse_no_samples(gathered.questions)
    if not gathered.questions:
        why = "; ".join(f"{n} rows: {why}" for why, n in gathered.left_out.items())
        raise InputError(f"{', '.join(map(str, paths))}: holds no calls{why and f' ({why})'}")
    priced, matched = TokenCosts(supplied.prices, published), False
    traces = []
    for name, question in gathered.questions.items():
        trace = trace_of(name, question, supplied.task)
        also = [call.also for call in question.calls.values()]
        keys = [key.strip() for key in (name, *also, trace.question) if key]
        answers = next((gold[key] for key in keys if key in gold), None)
        matched = matched or answers is not None
        if answers is not None and not accepted(trace):
            trace = structs.replace(trace, gold=answers)
        calls = [priced.fill(call, question.calls[call.role, call.round]) for call in trace.calls]
        traces.append(structs.replace(trace, calls=calls))
    if gold and not matched:
        raise InputError(
            f"{supplied.gold}: none of its questions is in the imported files, by id or by text; "
            "check how they are named"
        )
    firsts = {name: question.first for name, question in gathered.questions.items()}
    return Imported(
        traces,
        places=[first.place for first in firsts.values()],
        notes=list(notes_on(traces, gathered, priced, supplied.options)),
        messages={name: first.messages for name, first in firsts.items()},
        period=(min(gathered.times), max(gathered.times)) if gathered.times else None,
    )


def check(imported: Imported, checker: Checker) -> None:
    """Refuse traces that break the form, or do not fit those that they are to stand beside."""
    for place, trace in zip(imported.places, imported.traces, strict=True):
        for _, where, problem in checker.problems(trace, place.line or 1):
            raise place.refusal(where, problem)


def _events(source: Source, form: str | None, options: Options) -> Iterator[ImportEvent]:
    form = form or sniffed(source, options)
    if form == OWN:
        raise InputError(f"{source.name}: is in the form of traces already; import it by itself")
    reader = importer(form)
    if options.samples and not getattr(reader, "samples", False):
        every = sorted(plugins.names("importers"))
        readers = ", ".join(name for name in every if getattr(importer(name), "samples", False))
        raise InputError(
            f"{source.name}: {form} does not say which of its calls are samples of their own; "
            f"--samples reads {readers}"
        )
    # Columns that nobody would read are refused, so that no mapping is ignored; a table says itself
    # what is wrong with a name.
    for meaning, column in () if form == _LAST else options.columns.items():
        if meaning not in getattr(reader, "columns", ()):
            raise InputError(
                f"{source.name}: {form} reads no --column {meaning}={column}; leave it out, or "
                f"read the file as a table of calls (--from {_LAST})"
            )
        if column not in source.fields:
            there = ", ".join(sorted(source.fields))
            raise InputError(f"{source.name}: has no column {column}; there are {there}")
    yield from reader.read(source, options)


def _aliased(call: ImportedCall, aliases: Mapping[str, str]) -> ImportedCall:
    """Return a call under its model's new name, at the price that the old one has."""
    if call.model not in aliases:
        return call
    return replace(call, model=aliases[call.model], priced_as=call.priced_as or call.model)


def published(model: str, provider: str | None) -> Price | None:
    """Return a list price; without the library that has them, none is known."""
    try:
        return list_price(model.removeprefix(f"{provider}/"), provider)
    except MissingExtraError:
        return None
